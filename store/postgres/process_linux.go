package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// bootID changes with each boot of the machine.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func pidSpace() string {
	s, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return s
}

// startOf returns when a process started, in ticks since boot, and whether it
// exists. A zombie counts as ended. A process that cannot be read counts as
// existing, with an unknown start.
func startOf(pid int) (start string, exists bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) {
		// The process does not exist or is hidden: /proc may be missing, or mounted
		// with hidepid, which hides other users' processes. Signals reach them all.
		return "", !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}
	if err != nil {
		return "", true
	}
	// The name, in parentheses, may hold anything; state is the first field
	// after it, the start the twentieth.
	i := bytes.LastIndexByte(b, ')')
	fields := strings.Fields(string(b[i+1:]))
	if i < 0 || len(fields) < 20 {
		return "", true
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return "", false
	}
	return fields[19], true
}
