package pgtest

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

const (
	memory       = "/dev/shm"
	memoryNeeded = 6 << 30  // the log of a busy server has 1 GiB before the data begin
	memoryPlenty = 12 << 30 // beside the server's: compilers and browsers need their share
)

// MemoryTemp makes a directory in memory for the temporary files of tests, and returns
// what removes it, which also happens if the process ends before. Where TMPDIR names a
// place, or memory is scarce, or programs may not be run from it, it makes none and
// returns "".
func MemoryTemp() (dir string, remove func() error) {
	if os.Getenv("TMPDIR") != "" || freeMemory() < memoryPlenty {
		return "", nil
	}
	dir, err := os.MkdirTemp(memory, "holdfast-tmp-")
	if err != nil {
		return "", nil
	}
	// As /tmp is: the server runs as another user.
	err = os.Chmod(dir, 0o777|os.ModeSticky)
	watchdog := exec.Command("/bin/sh", "-c", `while read -r line; do :; done; rm -rf "$1"`, "sh", dir)
	ownGroup(watchdog)
	pipe, errPipe := watchdog.StdinPipe()
	if errors.Join(err, errPipe) != nil || watchdog.Start() != nil {
		_ = os.Remove(dir)
		return "", nil
	}
	return dir, func() error { return errors.Join(pipe.Close(), watchdog.Wait()) }
}

// MemoryLeftOut returns what to say where the test of MemoryTemp is left out, or "".
func MemoryLeftOut() (line string, err error) {
	free := freeMemory()
	if free >= memoryPlenty {
		return "", nil
	}
	return fmt.Sprintf("the test of temporary files in memory was left out: %s has room for %d GiB of the %d that it wants, or may not run programs", memory, free>>30, memoryPlenty>>30), nil
}

// inMemory reports whether a directory is in memory.
func inMemory(dir string) bool { return strings.HasPrefix(dir, memory+"/") }

// memoryDir makes a directory in memory for the server's data, or on disk if TMPDIR
// names a place there, or if there is little memory.
func memoryDir(a *account) (string, error) {
	if tmp := os.Getenv("TMPDIR"); (tmp == "" || inMemory(tmp)) && freeMemory() >= memoryNeeded && (a == nil || open(memory)) {
		if dir, err := os.MkdirTemp(memory, "durable-pg-"); err == nil {
			return dir, a.own(dir)
		}
	}
	return tempDir(a)
}

// freeMemory returns how many bytes fit into files in memory, 0 if tests could not build
// programs there and run them: the file system, the
// machine and the container each have a bound.
func freeMemory() uint64 {
	var fs syscall.Statfs_t
	const noExec = 8 // ST_NOEXEC
	if syscall.Statfs(memory, &fs) != nil || fs.Flags&noExec != 0 {
		return 0
	}
	return min(fs.Bavail*uint64(fs.Bsize), available(), containerLimit())
}

// available returns what the machine can give without swapping.
func available() uint64 {
	b, _ := os.ReadFile("/proc/meminfo") // what cannot be read has no such line
	_, line, _ := strings.Cut(string(b), "\nMemAvailable:")
	var kib uint64
	_, _ = fmt.Sscan(line, &kib)
	return kib << 10
}

// containerLimit returns the limit of this process's container, if it has one.
func containerLimit() uint64 {
	b, _ := os.ReadFile("/sys/fs/cgroup/memory.max") // absent, or "max", where there is none
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return math.MaxUint64
	}
	return n
}
