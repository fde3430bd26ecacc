//go:build !linux && !darwin

package ondisk

import "os"

// refused reports whether a file is marked as read-only; nothing more is known before it is written.
func refused(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && info.Mode().Perm()&0o200 == 0
}
