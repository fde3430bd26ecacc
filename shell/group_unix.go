//go:build unix

package shell

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup gives a command a process group of its own.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// stopGroup asks all processes of a group to stop, and killGroup ends them. A
// group that is gone is none's: its number is not given out again at once.
func stopGroup(pgid int) { _ = syscall.Kill(-pgid, syscall.SIGTERM) }
func killGroup(pgid int) { _ = syscall.Kill(-pgid, syscall.SIGKILL) }

// signalOf returns the name of the signal that has ended a process, or nothing.
func signalOf(s *os.ProcessState) string {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return w.Signal().String()
	}
	return ""
}
