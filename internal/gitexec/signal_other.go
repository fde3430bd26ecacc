//go:build !unix

package gitexec

import (
	"os"
	"os/exec"
)

// Without process groups, only git itself is ended, and it cannot be asked to stop.
func ownGroup(*exec.Cmd) {}

func interrupt(p *os.Process) error { return p.Kill() }

func kill(*os.Process) {}
