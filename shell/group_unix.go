//go:build unix

package shell

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup puts a command into its own process group.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// stopChild asks a command and its group to stop, and killChild ends them. A
// command that has moved to another group gets its own signal; otherwise it gets
// only the group's.
func stopChild(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGTERM)
	if group, err := syscall.Getpgid(p.Pid); err == nil && group != p.Pid {
		_ = p.Signal(syscall.SIGTERM)
	}
}

func killChild(p *os.Process) {
	killGroup(p.Pid)
	_ = p.Kill()
}

// killGroup ends all processes of a group.
func killGroup(pgid int) { _ = syscall.Kill(-pgid, syscall.SIGKILL) }

// signalOf returns the name of the signal that ended a process, or nothing.
func signalOf(s *os.ProcessState) string {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return w.Signal().String()
	}
	return ""
}
