//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package show

import "errors"

// readKeys fails: this system has no such terminal. Ctrl-C ends a watch.
func readKeys(int) (restore func(), err error) { return nil, errors.New("no single keys here") }
