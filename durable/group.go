package durable

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/goroutine"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/misuse"
	"github.com/holdfast-dev/holdfast/store"
)

// First waits until one of the branches is over and returns its index and
// outcome. It records which one that was, and a replay returns the same one. The
// others go on; they need not be waited for, and stop when the run ends.
//
// Errors: that of the branch that was first; ErrInvalid without futures, or for those of another
// run; those of every durable call (package documentation, Errors).
func First[T any](ctx context.Context, name string, fs ...*Future[T]) (int, T, error) {
	var zero T
	s, err := scopeOf(ctx, name)
	if err != nil {
		return -1, zero, err
	}
	bs := make([]*branch, len(fs))
	for i, f := range fs {
		if f == nil || f.key == "" {
			err := ErrInvalid
			if f != nil && f.err != nil {
				err = fmt.Errorf("%w: %w", ErrInvalid, f.err)
			}
			return -1, zero, fmt.Errorf("durable: First %q: future %d was never begun: %w", name, i, err)
		}
		if f.run != s.run {
			return -1, zero, fmt.Errorf("durable: First %q: future %d is of another run: %w", name, i, ErrInvalid)
		}
		bs[i] = f.branch
	}
	i, err := firstOver(ctx, s, name, bs)
	if err != nil {
		return -1, zero, err
	}
	return i, fs[i].value, fs[i].err
}

// firstOver is First for branches without their types.
func firstOver(ctx context.Context, s *scope, name string, bs []*branch) (int, error) {
	if len(bs) == 0 {
		return -1, fmt.Errorf("durable: First %q: no future: %w", name, ErrInvalid)
	}
	c := call{limited: s.limits(ctx)}
	if err := s.begin(&c, name, history.CallFirst); err != nil {
		return -1, err
	}
	defer s.end()
	r := s.run
	for _, b := range bs {
		b.waited.Store(true)
	}
	if c.done() {
		d, err := history.Of[history.Won](&c.rec.Outcome)
		if err != nil || d.Winner < 0 || d.Winner >= len(bs) {
			return -1, s.replay.changed(ChangeBranches, &c, fmt.Sprintf("Branch %d won and the code now has %d.", d.Winner, len(bs)))
		}
		s.lastAt = c.rec.LastAt
		// Its outcome was recorded before the fact that it won.
		if err := r.goroutines.join(goroutine.Ours(), bs[d.Winner]); err != nil {
			return -1, err
		}
		return d.Winner, nil
	}
	if err := r.goroutines.join(goroutine.Ours(), bs...); err != nil {
		return -1, err
	}
	i := slices.IndexFunc(bs, r.waits.over) // one is, and may be about to close its channel
	if err := s.stopped(); err != nil {     // only now: that may be what has ended the branch
		return -1, err
	}
	if _, err := s.record(&c, store.Event{Type: store.FirstWon, Data: history.Encode(&history.Won{Winner: i})}); err != nil {
		return -1, err
	}
	return i, nil
}

// Group begins several branches and waits for all of them, like errgroup. Make
// one with NewGroup.
type Group struct {
	ctx context.Context
	fs  []*Future[struct{}]
}

// NewGroup returns a group whose branches are begun with ctx, which must be that
// of a workflow function, a branch or an item.
func NewGroup(ctx context.Context) *Group { return &Group{ctx: ctx} }

// Go begins a branch of the group.
func (g *Group) Go(name string, fn func(ctx context.Context) error) {
	var body func(ctx context.Context) (struct{}, error)
	if fn != nil {
		body = func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) }
	}
	g.fs = append(g.fs, Go(g.ctx, name, body))
}

// Wait waits for all branches. Of those that failed, it returns the error of the
// one that was begun first.
//
// Errors are those of Future.Wait.
func (g *Group) Wait() error {
	var first error
	for _, f := range g.fs {
		if _, err := f.Wait(g.ctx); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// forgotten returns an error if the scope's function left branches that it never
// waited for, after they have ended. Each scope checks its own: once the outcome
// of a branch or item is recorded, it is too late.
func (s *scope) forgotten() error {
	var keys []string
	for _, b := range s.begun {
		if !b.waited.Load() {
			if err := s.run.goroutines.join(goroutine.Ours(), b); err != nil {
				return err
			}
			keys = append(keys, b.key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	slices.Sort(keys)
	return &misuse.ForgottenError{RunID: s.run.id, Branches: keys}
}
