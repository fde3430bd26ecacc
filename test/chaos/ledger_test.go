//go:build unix && cgo

package chaos_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// fact is a line of a ledger.
type fact struct {
	what, process string
	at            int64 // µs, by the monotonic clock, which all processes of the machine share: the wall clock may be set
	run, key      string
	n             int
	value         string
}

// ledger is the file in which one process says what it does, outside of the store. Each fact is
// one write, which a SIGKILL leaves whole or absent.
type ledger struct {
	file    *os.File
	process string
}

func openLedger(dir, process string) (*ledger, error) {
	f, err := os.OpenFile(filepath.Join(dir, "ledger", process), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return &ledger{f, process}, err
}

func (l *ledger) note(what, run, key string, n int, value string) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	line := strings.Join([]string{what, strconv.FormatInt(now.Nano()/1000, 10), run, key, strconv.Itoa(n), value}, "\t") + "\n"
	if _, err := l.file.WriteString(line); err != nil {
		panic(err)
	}
}

// readLedgers returns the facts of all processes, in no order over processes, and forgets them.
func readLedgers(t *testing.T, dir string) (all []fact) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "ledger", "*"))
	require.NoError(t, err)
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(b)) {
			f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			require.Len(t, f, 6, "%s: %q", file, line)
			at, err := strconv.ParseInt(f[1], 10, 64)
			require.NoError(t, err)
			n, err := strconv.Atoi(f[4])
			require.NoError(t, err)
			all = append(all, fact{what: f[0], process: filepath.Base(file), at: at, run: f[2], key: f[3], n: n, value: f[5]})
		}
		require.NoError(t, os.Remove(file))
	}
	return all
}

func (f fact) call() string { return fmt.Sprintf("%s %s", f.run, f.key) }
