//go:build unix

package gitexec

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup puts git, and what it starts, into a separate process group.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// interrupt asks git, and the processes it has started, to stop.
func interrupt(p *os.Process) error {
	if err := syscall.Kill(-p.Pid, syscall.SIGTERM); err == syscall.ESRCH {
		return os.ErrProcessDone
	} else {
		return err
	}
}

// kill ends what git has left running.
func kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
