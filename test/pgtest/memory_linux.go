package pgtest

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
)

const (
	memory       = "/dev/shm"
	memoryNeeded = 6 << 30 // the log of a busy server has 1 GiB before the data begin
)

// memoryDir makes a directory in memory for the server's data, or on disk if TMPDIR
// names a place, or if there is little memory.
func memoryDir(a *account) (string, error) {
	if os.Getenv("TMPDIR") == "" && freeMemory() >= memoryNeeded && (a == nil || open(memory)) {
		if dir, err := os.MkdirTemp(memory, "durable-pg-"); err == nil {
			return dir, a.own(dir)
		}
	}
	return tempDir(a)
}

// freeMemory returns how many bytes fit into files in memory: the file system, the
// machine and the container each have a bound.
func freeMemory() uint64 {
	var fs syscall.Statfs_t
	if syscall.Statfs(memory, &fs) != nil {
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
