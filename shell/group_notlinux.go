//go:build unix && !linux

package shell

import "syscall"

// dieWithParent: the system has no such thing.
func dieWithParent(*syscall.SysProcAttr) {}

// killMarked: the system does not show the variables of other processes in a way
// that is the same everywhere.
func killMarked([]string) int { return 0 }

// awaitExit: the standard library has no call for it there.
func awaitExit(int) bool { return false }
