//go:build !unix

package shell

import (
	"os"
	"os/exec"
)

// Without process groups, only the command itself is ended.
func ownGroup(*exec.Cmd) {}

func stopChild(p *os.Process) { _ = p.Kill() }

func killChild(p *os.Process) { _ = p.Kill() }

func killGroup(int) {}

func awaitExit(int) bool { return false }

func signalOf(*os.ProcessState) string { return "" }

func killMarked([]string) int { return 0 }
