//go:build unix && !linux

package shell

import "syscall"

// dieWithParent: the system does not support it.
func dieWithParent(*syscall.SysProcAttr) {}

// killMarked: there is no portable way to read the variables of other processes.
func killMarked([]string) int { return 0 }

// awaitExit: the standard library has no call for it here.
func awaitExit(int) bool { return false }
