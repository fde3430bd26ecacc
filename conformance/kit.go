package conformance

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// T is a case in progress. Goroutines of the case may use it, the suite may abandon it
// when it hangs, and each failure says which clause is broken.
type T struct {
	testing.TB
	h    Harness
	of   Case
	data []*Data // the invariant checker reads them; see exempt

	ctx      context.Context
	mu       sync.Mutex
	last     store.Time
	over     bool // the case is over
	broken   map[string]bool
	cleanups []func()
}

var namesClause = regexp.MustCompile(`\bS[0-9]+\b`)

// clauses returns the clauses that a failure breaks: those that it names, else those of
// the case.
func (t *T) clauses(message string) []string {
	head, _, _ := strings.Cut(message, ": ")
	if named := namesClause.FindAllString(head, -1); len(named) > 0 {
		return named
	}
	return strings.Split(t.of.Clauses, ", ")
}

// Errorf reports a failure under the clause that it names, else under those of the
// case.
func (t *T) Errorf(format string, args ...any) {
	t.Helper()
	message := fmt.Sprintf(format, args...)
	t.mu.Lock()
	over := t.over
	clauses := t.clauses(message)
	for _, c := range clauses {
		t.broken[c] = true
	}
	t.mu.Unlock()
	if over {
		return
	}
	if head, rest, ok := strings.Cut(message, ": "); ok && namesClause.FindString(head) == head {
		message = rest
	}
	t.TB.Errorf("broken: %s: %s", strings.Join(clauses, " or "), message)
}

// FailNow ends the case's goroutine, which is not the test's.
func (t *T) FailNow() {
	t.mu.Lock()
	over := t.over
	t.mu.Unlock()
	if !over {
		t.Fail()
	}
	runtime.Goexit()
}

// Fatalf is Errorf and FailNow.
func (t *T) Fatalf(format string, args ...any) {
	t.Helper()
	t.Errorf(format, args...)
	t.FailNow()
}

// Fatal is Fatalf for values.
func (t *T) Fatal(args ...any) {
	t.Helper()
	t.Fatalf("%s", fmt.Sprint(args...))
}

// guard runs fn, which calls the store. A panic in it is a failure of the case; so is a
// memory fault, as of a store that hands out memory that it unmaps.
func (t *T) guard(fn func()) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("panic: %v\n%s", p, place(debug.Stack()))
		}
	}()
	fn()
}

// place returns the part of a stack below the panic.
func place(stack []byte) string {
	if _, below, ok := strings.Cut(string(stack), "panic("); ok {
		stack = []byte("panic(" + below)
	}
	lines := strings.SplitAfterN(string(stack), "\n", 16)
	return strings.Join(lines[:min(len(lines), 15)], "")
}

// execute runs fn on its own goroutine, and abandons it when it hangs.
func (t *T) execute(fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.guard(fn)
	}()
	limit := 15 * t.patience()
	alarm := time.NewTimer(limit)
	defer alarm.Stop()
	select {
	case <-done:
	case <-alarm.C:
		stacks := make([]byte, 64<<10)
		stacks = stacks[:runtime.Stack(stacks, true)]
		t.Errorf("S18: the case hangs since %v and is given up; the goroutines are\n%s", limit, stacks)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
}

// check runs the case, then the invariant checker over what it left behind, then its
// clean-ups.
func (t *T) check() {
	t.Helper()
	ctx, cancel := context.WithCancel(t.TB.Context())
	defer cancel()
	t.ctx = ctx
	t.execute(func() {
		defer t.cleanUp(cancel)
		t.of.run(t)
		for _, d := range t.data {
			t.checkInvariants(d)
		}
	})
}

// Context ends with the case, before Cleanup.
func (t *T) Context() context.Context { return t.ctx }

// Cleanup calls fn when the case is over, the last registered first.
func (t *T) Cleanup(fn func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, fn)
}

func (t *T) cleanUp(cancel func()) {
	cancel()
	for {
		t.mu.Lock()
		n := len(t.cleanups)
		if n == 0 {
			t.mu.Unlock()
			return
		}
		fn := t.cleanups[n-1]
		t.cleanups = t.cleanups[:n-1]
		t.mu.Unlock()
		t.guard(fn)
	}
}

const (
	// shortLease is for executors that are meant to die, longLease for the others.
	shortLease = 250 * time.Millisecond
	longLease  = 10 * time.Minute
)

func (t *T) patience() time.Duration {
	if t.h.Patience > 0 {
		return t.h.Patience
	}
	return 20 * time.Second
}

// patient returns a context that ends when patience does, for loops that a broken store
// would keep running for ever.
func (t *T) patient() context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), t.patience())
	t.Cleanup(cancel)
	return ctx
}

// fresh makes new data.
func (t *T) fresh() *Data {
	t.Helper()
	d := t.h.New(t)
	require.NotNil(t, d.Open, "the harness's Data needs Open")
	if needs, open := t.of.Needs, d.Open; needs != "" {
		d.Open = func() (store.Store, error) {
			s, err := open()
			if err == nil && !found(s)[needs] {
				_ = s.Close()
				t.Fatalf("declared: %s is in Harness.Has, and the store does not have it", needs)
			}
			return s, err
		}
	}
	if t.h.has(SingleProcess) {
		d.sharing()
	}
	t.data = append(t.data, &d)
	return &d
}

// exempt takes data out of the invariant check, when a case damages it.
func (t *T) exempt(d *Data) {
	for i := range t.data {
		if t.data[i] == d {
			t.data = append(t.data[:i], t.data[i+1:]...)
			return
		}
	}
}

// handle opens a handle that is closed with the case.
func (t *T) handle(d *Data) store.Store {
	t.Helper()
	s, err := d.Open()
	require.NoError(t, err, "opening a handle")
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("S23: closing a handle: %v", err)
		}
	})
	return s
}

// open makes new data and opens a handle on it.
func (t *T) open() store.Store {
	t.Helper()
	return t.handle(t.fresh())
}

// now returns the time, at least a microsecond later than the last call did.
func (t *T) now() store.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last+1, store.TimeOf(time.Now()))
	return t.last
}

// eventually waits until a condition holds, and fails the case if it does not within
// the suite's patience.
func (t *T) eventually(what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(t.patience()); !holds(); {
		if time.Now().After(end) {
			require.FailNow(t, "it never came true that "+what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// commit carries out one Change and returns its error.
func (t *T) commit(s store.Store, c store.Change) error {
	t.Helper()
	errs := s.Commit(t.Context(), []store.Change{c})
	require.Len(t, errs, 1, "Commit returns one error per Change")
	return errs[0]
}

// must commits Changes in one batch that all have to succeed.
func (t *T) must(s store.Store, batch ...store.Change) {
	t.Helper()
	errs := s.Commit(t.Context(), batch)
	require.Len(t, errs, len(batch), "Commit returns one error per Change")
	for i, err := range errs {
		require.NoError(t, err, "change %d of the batch, run %q", i, batch[i].RunID)
	}
}

// together runs fn n times concurrently and returns when all are done. fn must not end
// its goroutine (no require).
func (t *T) together(n int, fn func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			t.guard(func() { fn(i) })
		})
	}
	close(start)
	wg.Wait()
}

// one commits a single Change. It may be used outside the case's goroutine.
func one(ctx context.Context, s store.Store, c store.Change) error {
	errs := s.Commit(ctx, []store.Change{c})
	if len(errs) != 1 {
		return fmt.Errorf("commit of one Change returned %d errors", len(errs))
	}
	return errs[0]
}

func ptr[V any](v V) *V { return &v }
