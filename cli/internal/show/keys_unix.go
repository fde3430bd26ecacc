//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package show

import "golang.org/x/sys/unix"

// readKeys makes a terminal hand over each key at once, without showing it. Signals and
// output stay as they are.
func readKeys(fd int) (restore func(), err error) {
	old, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	keys := *old
	keys.Lflag &^= unix.ICANON | unix.ECHO
	keys.Cc[unix.VMIN], keys.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, setTermios, &keys); err != nil {
		return nil, err
	}
	return func() { _ = unix.IoctlSetTermios(fd, setTermios, old) }, nil
}
