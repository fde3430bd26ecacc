package conformance

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// opens tries what nearly every case needs, a second handle while one is open, and
// describes why that fails; empty if it works.
func (h Harness) opens(t *testing.T) (why string) {
	t.Helper()
	d := h.New(t)
	if d.Open == nil {
		return "the harness's Data needs Open"
	}
	first, err := h.openWithin(d)
	if err != nil {
		return fmt.Sprintf("the store cannot be opened: %v", err)
	}
	defer first.Close()
	if h.has(SingleProcess) {
		return ""
	}
	second, err := h.openWithin(d)
	if err != nil {
		return fmt.Sprintf("a second handle cannot be opened while the first is open: %v. Data.Open has to open the same data again, as another process would. "+
			"A store whose data only one process can have open, such as one that locks its file, says so by store.SingleProcess and declares conformance.SingleProcess", err)
	}
	if err := second.Close(); err != nil {
		return fmt.Sprintf("closing the second handle: %v", err)
	}
	return ""
}

// openWithin opens a handle, and gives up if that takes too long.
func (h Harness) openWithin(d Data) (store.Store, error) {
	type opened struct {
		s   store.Store
		err error
	}
	done := make(chan opened, 1)
	go func() {
		s, err := d.Open()
		done <- opened{s, err}
	}()
	limit := 10 * time.Second
	if h.Patience > 0 {
		limit = min(limit, h.Patience)
	}
	select {
	case o := <-done:
		return o.s, o.err
	case <-time.After(limit):
		go func() { // in case it opens after all
			if o := <-done; o.err == nil {
				_ = o.s.Close() // it was never used
			}
		}()
		return nil, fmt.Errorf("it has not been opened after %v, as if it waited for a lock", limit)
	}
}

// sharing makes d.Open return one handle to all callers, for a single-process store; it
// is closed when the last of them closes it.
func (d *Data) sharing() {
	open := d.Open
	var mu sync.Mutex
	var real store.Store
	users := 0
	d.Open = func() (store.Store, error) {
		mu.Lock()
		defer mu.Unlock()
		if users == 0 {
			s, err := open()
			if err != nil {
				return nil, err
			}
			real = s
		}
		users++
		s := &shared{Store: real}
		s.release = func() error {
			mu.Lock()
			defer mu.Unlock()
			if users--; users > 0 {
				return nil
			}
			return s.Store.Close()
		}
		s.others = func() bool {
			mu.Lock()
			defer mu.Unlock()
			return users > 0
		}
		return s, nil
	}
}

// shared is one user's hold on a handle.
type shared struct {
	store.Store
	release func() error
	others  func() bool // another user has it open

	mu     sync.RWMutex
	closed bool
}

func (s *shared) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		if s.others() {
			return nil
		}
		return s.Store.Close()
	}
	s.closed = true
	return s.release()
}

func (s *shared) usable() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed && s.others() {
		return store.ErrClosed // otherwise the store itself says so
	}
	return nil
}

func (s *shared) Commit(ctx context.Context, batch []store.Change) []error {
	if err := s.usable(); err != nil {
		errs := make([]error, len(batch))
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	return s.Store.Commit(ctx, batch)
}

func (s *shared) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	return s.Store.Load(ctx, id, c)
}

func (s *shared) List(ctx context.Context, f store.Filter) (store.Page, error) {
	if err := s.usable(); err != nil {
		return store.Page{}, err
	}
	return s.Store.List(ctx, f)
}

func (s *shared) Count(ctx context.Context, f store.Filter, by string) (map[string]int64, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	return s.Store.Count(ctx, f, by)
}

func (s *shared) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	return s.Store.Claim(ctx, c)
}

func (s *shared) Beat(ctx context.Context, e store.Executor) (store.Pulse, error) {
	if err := s.usable(); err != nil {
		return store.Pulse{}, err
	}
	return s.Store.Beat(ctx, e)
}

func (s *shared) Executors(ctx context.Context) ([]store.Executor, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	return s.Store.Executors(ctx)
}

func (s *shared) Delete(ctx context.Context, d store.Deletion) (int, error) {
	if err := s.usable(); err != nil {
		return 0, err
	}
	return s.Store.Delete(ctx, d)
}

// capabilities probes the store behind a shared handle.
func capabilities(s store.Store) store.Capabilities {
	if h, ok := s.(*shared); ok {
		s = h.Store
	}
	return store.CapabilitiesOf(s)
}
