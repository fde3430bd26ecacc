package shell

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// dieWithParent makes the system kill a command when this process dies, however it
// dies. What the command has started itself is ended when the command is run again.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// Constants of waitid(2).
const (
	waitPID    = 1         // P_PID
	waitExited = 4         // WEXITED
	waitOnly   = 0x1000000 // WNOWAIT
)

// awaitExit waits until a child has ended, without reaping it: until it is reaped its
// process id cannot be reused. It reports whether it could wait.
func awaitExit(pid int) bool {
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, waitPID, uintptr(pid), 0, waitExited|waitOnly, 0, 0)
		if errno != syscall.EINTR {
			return errno == 0
		}
	}
}

// killMarked ends all processes that have inherited one of these variables
// ("NAME=value"), and returns how many there were. It checks again, because they may
// start others meanwhile.
func killMarked(variables []string) (killed int) {
	if len(variables) == 0 {
		return 0
	}
	seen, none := map[int]bool{}, 0
	for range 50 {
		pids := marked(variables)
		if len(pids) > 0 {
			none = 0
		} else if none++; none == 2 { // a process in the middle of exec shows no variables for a moment
			break
		}
		for _, pid := range pids {
			seen[pid] = true
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(10 * time.Millisecond) // a killed process stays visible for a moment
	}
	return len(seen)
}

// marked returns the processes with one of the variables, among those that this user
// may inspect. A process that has ended but is not yet reaped has none.
func marked(variables []string) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err != nil {
			continue
		}
		for v := range bytes.SplitSeq(env, []byte{0}) {
			if slices.Contains(variables, string(v)) {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}
