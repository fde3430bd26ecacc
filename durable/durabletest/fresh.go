package durabletest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// A replay in a separate process: the test binary is executed again, with only
// the running test, and environment variables that make the same call of
// Survives replay a file and write its findings to another.
const (
	envDir  = "HOLDFAST_DURABLETEST_DIR"
	envCall = "HOLDFAST_DURABLETEST_CALL"
)

const (
	historyFile = "history"
	verdictFile = "verdict"
)

// A fresh is one call of Survives in a test that can be executed on its own.
type fresh struct {
	test string
	call int // of this test, from 1
}

// calls counts the calls of Survives of each test.
var calls = struct {
	sync.Mutex
	of map[string]int
}{of: map[string]int{}}

// freshCall returns nil if t is not a test that the binary can select.
func freshCall(t testing.TB) *fresh {
	if _, ok := t.(*testing.T); !ok {
		return nil
	}
	calls.Lock()
	calls.of[t.Name()]++
	f := &fresh{test: t.Name(), call: calls.of[t.Name()]}
	calls.Unlock()
	// With -count the test is executed again in the same process, and the child
	// counts from one.
	t.Cleanup(func() {
		calls.Lock()
		defer calls.Unlock()
		delete(calls.of, f.test)
	})
	return f
}

// isChild reports whether this is the process, and the call, that has to replay.
func (f *fresh) isChild() bool {
	return f != nil && os.Getenv(envDir) != "" && os.Getenv(envCall) == f.id()
}

// skip reports whether this is such a process, but another call.
func (f *fresh) skip() bool { return os.Getenv(envDir) != "" && !f.isChild() }

func (f *fresh) id() string { return f.test + " " + strconv.Itoa(f.call) }

// answer replays the file that this process was given, and ends the test.
func (f *fresh) answer(t testing.TB, s *survival) {
	dir := os.Getenv(envDir)
	verdict, err := s.playFile(t.Context(), filepath.Join(dir, historyFile), s.defs)
	if err != nil {
		verdict = "it could not be replayed: " + err.Error()
	}
	if err := os.WriteFile(filepath.Join(dir, verdictFile), []byte(verdict), 0o600); err != nil {
		t.Fatal(err)
	}
	t.SkipNow()
}

// replayElsewhere replays the history of the undisturbed run in a separate process.
func (s *survival) replayElsewhere(ctx context.Context, data *memory.Store, f *fresh) error {
	dir, err := os.MkdirTemp("", "durabletest")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := s.export(ctx, data, filepath.Join(dir, historyFile)); err != nil {
		return fmt.Errorf("durabletest: exporting the undisturbed run: %w", err)
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("durabletest: %w", err)
	}
	// No context: its time would be virtual. The test binary ends on its own.
	cmd := exec.Command(exe, "-test.run="+pattern(f.test), "-test.timeout=60s", "-test.count=1")
	cmd.Env = append(os.Environ(), envDir+"="+dir, envCall+"="+f.id())
	out, runErr := cmd.CombinedOutput()
	verdict, err := os.ReadFile(filepath.Join(dir, verdictFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("durabletest: a process of its own, %s, did not come to replay the run (%v). durabletest.SameProcess() leaves that out. It printed:\n%s", cmd, runErr, short(string(out)))
	case err != nil:
		return err
	case len(verdict) > 0:
		return broken("its finished history was replayed in a process of its own, where no variable has a value from before", string(verdict))
	}
	return nil
}

// pattern returns the -test.run that selects one test.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

func (s *survival) export(ctx context.Context, data *memory.Store, file string) error {
	eng, err := durable.Open(ctx, data.Handle(), s.options(nil))
	if err != nil {
		return err
	}
	defer func() { _ = eng.Close() }()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(operate.On(eng).Export(ctx, RunID, f), f.Close())
}
