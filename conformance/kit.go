package conformance

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

// T is a case in progress.
type T struct {
	testing.TB
	h    Harness
	data []*Data // the invariant checker looks at them; see exempt

	mu   sync.Mutex
	last store.Time
}

const (
	// shortLease is for executors that are to die, longLease for those that
	// are not.
	shortLease = 250 * time.Millisecond
	longLease  = 10 * time.Minute
)

func (t *T) patience() time.Duration {
	if t.h.Patience > 0 {
		return t.h.Patience
	}
	return 20 * time.Second
}

// patient returns a context that ends when patience does, for loops that a
// broken store would keep going for ever.
func (t *T) patient() context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), t.patience())
	t.Cleanup(cancel)
	return ctx
}

// fresh makes new data.
func (t *T) fresh() *Data {
	t.Helper()
	d := t.h.New(t.TB)
	require.NotNil(t, d.Open, "the harness's Data needs Open")
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

// now returns the time, later by a microsecond at least than the time before.
func (t *T) now() store.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last+1, store.TimeOf(time.Now()))
	return t.last
}

// eventually waits until a condition holds.
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

// together runs fn n times at once and returns when all are done. fn must not
// end its goroutine (no require).
func together(n int, fn func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	wg.Wait()
}

// one commits a single Change, for use outside of the case's goroutine.
func one(ctx context.Context, s store.Store, c store.Change) error {
	return s.Commit(ctx, []store.Change{c})[0]
}

func ptr[V any](v V) *V { return &v }
