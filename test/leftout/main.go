// Command leftout says at the end of `make test` and `make soak` which tests were left out for want of
// a browser, a server, strace, memory or rights: go test shows no output of a package that has not failed.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/holdfast-dev/holdfast/test/browsertest"
	"github.com/holdfast-dev/holdfast/test/patroni"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// traced says what test/syscalls needs.
func traced() (string, error) {
	if _, err := exec.LookPath("strace"); err == nil || runtime.GOOS != "linux" {
		return "", nil
	}
	return "the tests that make system calls of SQLite fail were left out: there is no strace in the PATH. Install strace to run them", nil
}

// rooted says what one test of store/postgres needs.
func rooted() (string, error) {
	if os.Geteuid() == 0 || runtime.GOOS != "linux" {
		return "", nil
	}
	return "the test of executors whose processes are hidden (hidepid) was left out: only root can make a /proc of its own", nil
}

func main() {
	browser := func() (string, error) {
		_, line, err := browsertest.Chromium()
		return line, err
	}
	failed := false
	for _, leftOut := range []func() (string, error){pgtest.MemoryLeftOut, rooted, browser, pgtest.LeftOut, pgtest.DiskLeftOut, pgtest.PoolerLeftOut, patroni.LeftOut, traced} {
		line, err := leftOut()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = true
		}
		if line != "" {
			fmt.Println(line)
		}
	}
	if failed {
		os.Exit(1)
	}
}
