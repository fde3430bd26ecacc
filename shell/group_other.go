//go:build !unix

package shell

import (
	"os"
	"os/exec"
)

// Without process groups, only the command itself is ended.
func ownGroup(*exec.Cmd) {}

func stopGroup(pid int) { killGroup(pid) }

func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

func signalOf(*os.ProcessState) string { return "" }

func killMarked([]string) int { return 0 }
