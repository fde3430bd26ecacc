//go:build !unix

package gitexec

import (
	"os"
	"os/exec"
)

// Without process groups, git alone is ended, and cannot be asked to.
func ownGroup(*exec.Cmd) {}

func interrupt(p *os.Process) error { return p.Kill() }

func kill(*os.Process) {}
