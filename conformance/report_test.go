package conformance_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/store"
)

// itself runs this test binary and returns what it says.
func itself(t *testing.T, env string, args ...string) string {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, append(args, "-test.v", "-test.count=1")...)
	cmd.Env = append(os.Environ(), env)
	out, _ := cmd.CombinedOutput() // it may be meant to fail
	return string(out)
}

func TestCasesThatRunLeavesOutDoNotCountAsPassed(t *testing.T) {
	t.Parallel()
	out := itself(t, "X=", "-test.run", "^TestMemory$/^(fence|key)$")
	require.Contains(t, out, "cases were left out by the flags of this test run and show nothing")
	for _, line := range strings.Split(out, "\n") {
		f := strings.Fields(line)
		if len(f) != 6 || f[0] != "C" && f[0] != "G" {
			continue
		}
		if f[1] == "fence" || f[1] == "key" {
			require.NotEqual(t, "0", f[2], line)
			require.Equal(t, "0", f[5], line)
		} else {
			require.Equal(t, "0", f[2], "%s: nothing of it ran", line)
			require.NotEqual(t, "0", f[5], line)
		}
	}
}

// locked is a store of which one handle can be open at a time.
type locked struct {
	store.Store
	mu *sync.Mutex
	is *bool
}

func (locked) ProcessLock() string { return "a lock on the file" }

func (l locked) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	*l.is = false
	return l.Store.Close()
}

// withLock makes a harness whose data one handle has open at a time; another one
// waits, as for a file lock.
func withLock(declared bool) conformance.Harness {
	h := inMemory()
	h.Has = []conformance.Capability{conformance.SingleProcess}
	if !declared {
		h.Has = nil
	}
	h.Patience = 5 * time.Second
	sound := h.New
	h.New = func(t testing.TB) conformance.Data {
		d := sound(t)
		open := d.Open
		var mu sync.Mutex
		var is bool
		d.Open = func() (store.Store, error) {
			for end := time.Now().Add(h.Patience / 2); ; time.Sleep(time.Millisecond) {
				mu.Lock()
				if !is {
					defer mu.Unlock()
					is = true
					s, err := open()
					return locked{s, &mu, &is}, err
				}
				mu.Unlock()
				if time.Now().After(end) {
					return nil, errors.New("timeout")
				}
			}
		}
		return d
	}
	return h
}

func TestAStoreOfASingleProcessPassesWhenItSaysSo(t *testing.T) {
	t.Parallel()
	h := withLock(true)
	for _, c := range conformance.Cases() {
		if c.Missing(t, h) == "" && c.Section != "model" {
			require.Empty(t, record(t, c.Title(), func(tb testing.TB) { c.Check(tb, h) }), c.Title())
		}
	}
	c := find(t, "capabilities that are declared")
	require.NotEmpty(t, record(t, c.Title(), func(tb testing.TB) { c.Check(tb, withLock(false)) }), "one that does not say so")
}

// lockedRole makes TestLocked a test of a store that locks its file and does not
// say so; it is run in a process of its own, since it fails.
const lockedRole = "HOLDFAST_TEST_LOCKED=1"

func TestLocked(t *testing.T) {
	name, value, _ := strings.Cut(lockedRole, "=")
	if os.Getenv(name) == value {
		conformance.Run(t, withLock(false))
	}
}

func TestAStoreWithAnExclusiveLockIsToldWhy(t *testing.T) {
	t.Parallel()
	out := itself(t, lockedRole, "-test.run", "^TestLocked$")
	require.Contains(t, out, "no case was run: a second handle cannot be opened while the first is open: timeout")
	require.Contains(t, out, "conformance.SingleProcess")
	require.Equal(t, 1, strings.Count(out, "--- FAIL"), "one failure, not one for each case:\n%s", out)
}

// A store that ends its callers fails the case it does that in.
func TestTheSuiteOutlivesTheStore(t *testing.T) {
	t.Parallel()
	c := find(t, "a message reads back")
	for name, wraps := range map[string]func() func(store.Store) store.Store{
		"panics":            with(altered{commit: func(store.Store, context.Context, []store.Change) []error { panic("index out of range") }}),
		"returns no errors": with(altered{commit: func(store.Store, context.Context, []store.Change) []error { return nil }}),
		"returns nil for a history": with(altered{load: func(store.Store, context.Context, string, store.Cursor) (*store.History, error) {
			return nil, nil
		}}),
		"keeps no messages": edited(func(c *store.Change) { c.Send = nil }),
		"faults":            handsOutUnmappedMemory,
	} {
		for _, c := range []conformance.Case{c, find(t, "what was read is not overwritten"), find(t, "many senders and a busy owner")} {
			failures := record(t, c.Title(), func(tb testing.TB) { c.Check(tb, broken(wraps)) })
			if len(failures) > 0 {
				require.Contains(t, failures[0], "broken: S", "%s: %s", name, c.Title())
			}
		}
	}
	failures := record(t, c.Title(), func(tb testing.TB) {
		c.Check(tb, broken(with(altered{commit: func(store.Store, context.Context, []store.Change) []error { panic("index out of range") }})))
	})
	require.Contains(t, failures[0], "panic: index out of range")
	require.Contains(t, failures[0], "mutants_test.go", "the place is shown, or that of whoever called")
}

func TestACaseThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	defer close(stop)
	h := broken(with(altered{commit: func(_ store.Store, _ context.Context, batch []store.Change) []error {
		<-stop
		return make([]error, len(batch))
	}}))
	h.Patience = 20 * time.Millisecond
	c := find(t, "a message reads back")
	failures := record(t, c.Title(), func(tb testing.TB) { c.Check(tb, h) })
	require.NotEmpty(t, failures)
	require.Contains(t, failures[0], "broken: S18: the case hangs")
}

func TestAFailureNamesTheFirstFieldThatDiffers(t *testing.T) {
	t.Parallel()
	c := find(t, "a created run reads back")
	failures := record(t, c.Title(), func(tb testing.TB) {
		c.Check(tb, broken(creations(func(r *store.Run) { r.WakeAt = 0 })))
	})
	require.Regexp(t, `^broken: S1 or S4: the row: Run\.WakeAt is 0 \(not set\), want \d+$`, failures[0])
}

// A store without UpdatedAt breaks the clause of UpdatedAt, and fails the cases
// that are about it, not each that leaves a run behind.
func TestWhatIsMissingFailsUnderItsOwnClause(t *testing.T) {
	t.Parallel()
	h := broken(rows(func(r *store.Run) { r.UpdatedAt = 0 }))
	failed := 0
	for _, c := range conformance.Cases() {
		if c.Missing(t, h) != "" || c.Section == "model" {
			continue
		}
		if failures := record(t, c.Title(), func(tb testing.TB) { c.Check(tb, h) }); len(failures) > 0 {
			failed++
			require.Regexp(t, `S24|Updated`, strings.Join(failures, "\n"), c.Title())
		}
	}
	require.Positive(t, failed)
	require.LessOrEqual(t, failed, 6)
}

// bare is a store with no capability.
type bare struct{ store.Store }

func TestACapabilityThatIsDeclaredAndMissingFailsItsCasesByName(t *testing.T) {
	t.Parallel()
	h := inMemory()
	h.Has = conformance.Capabilities()
	sound := h.New
	h.New = func(t testing.TB) conformance.Data {
		d := sound(t)
		open := d.Open
		d.Open = func() (store.Store, error) {
			s, err := open()
			return bare{s}, err
		}
		return d
	}
	for _, c := range conformance.Cases() {
		if c.Needs == "" || c.Section == "process" {
			continue
		}
		said := strings.Join(record(t, c.Title(), func(tb testing.TB) { c.Check(tb, h) }), "\n")
		require.Contains(t, said, string(c.Needs)+" is in Harness.Has, and the store does not have it", c.Title())
		require.NotContains(t, said, "panic", c.Title())
	}
}
