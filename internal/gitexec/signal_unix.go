//go:build unix

package gitexec

import "syscall"

// interrupt asks git to stop.
const interrupt = syscall.SIGTERM
