//go:build linux || darwin

package ondisk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// refused reports whether the system would not let this process write to a file or into a directory. It
// is asked, and nothing is opened: to close a file again would drop the locks that SQLite has on it.
func refused(path string) bool {
	err := unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS)
	return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS)
}
