// Command leftout says at the end of `make test` and `make soak` which tests were left out for want of
// a browser, a server, strace, memory or rights: go test shows no output of a package that has not failed.
package main

import (
	"flag"
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

// rooted says what a test of store/postgres needs, and two of the terminal.
func rooted() (string, error) {
	if os.Geteuid() == 0 || runtime.GOOS != "linux" {
		return "", nil
	}
	return "the test of executors whose processes are hidden (hidepid), and the terminal's of a full disk and of the file of another user's program, were left out: only root can mount, and be somebody else", nil
}

// onServer says what the tests with PostgreSQL need. Without a server nothing else matters to them.
func onServer() (string, error) {
	if line, err := pgtest.LeftOut(); line != "" || err != nil {
		return line, err
	}
	return pgtest.PoolerLeftOut()
}

func main() {
	isSoak := flag.Bool("soak", false, "say also what only make soak runs")
	flag.Parse()
	browser := func() (string, error) {
		_, line, err := browsertest.Chromium()
		return line, err
	}
	failed := false
	all := []func() (string, error){pgtest.MemoryLeftOut, rooted, browser, onServer, traced}
	if *isSoak {
		all = append(all, pgtest.DiskLeftOut, patroni.LeftOut)
	}
	for _, leftOut := range all {
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
