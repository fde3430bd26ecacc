package durable

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/count"
)

// MapOptions say how Map goes over its items. The zero value runs GOMAXPROCS
// items at a time, and stops at the first failure.
type MapOptions struct {
	// Concurrency is how many items run at a time; 0: GOMAXPROCS.
	Concurrency int
	// KeepGoing makes Map continue after a failed item: it does the others, and
	// the failed ones are in the *MapError.
	KeepGoing bool
}

// ItemError is an item of a Map that failed: an entry of the dead-letter list.
type ItemError struct {
	Index int
	Key   string // "items[17]"
	Err   error  // as recorded
	// Attempts is how many attempts the step made whose error this is; 1 if it
	// is not the error of a step.
	Attempts int
}

func (e *ItemError) Error() string { return fmt.Sprintf("%s: %v", e.Key, e.Err) }

func (e *ItemError) Unwrap() error { return e.Err }

// MapError says which items of a Map failed. The results of those that completed
// are returned beside it.
type MapError struct {
	RunID  string
	Key    string // of the Map
	Failed []*ItemError
	// Undone is how many items were not begun, because Map stopped.
	Undone int

	undone []int // their indexes; nil for a MapSeq
}

func (e *MapError) Error() string {
	s := fmt.Sprintf("map %s: %s failed", e.Key, count.Of(len(e.Failed), "item"))
	if len(e.Failed) > 0 {
		s += fmt.Sprintf(", the first is %v", e.Failed[0])
	}
	if e.Undone > 0 {
		s += fmt.Sprintf("; %d were not begun", e.Undone)
	}
	return s
}

// Unwrap returns the errors of the items.
func (e *MapError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		errs[i] = f
	}
	return errs
}

// Map runs fn on every item, several at a time, and returns the results in the
// order of the items. Each item is a scope of its own, "name[17]", in which fn
// makes durable calls with the context it is given; recording its result, or its
// final error, costs one write. After a crash, items that have ended do not run
// again, and those in progress continue.
//
// The items must be the same on replay: a hash of each is kept with its outcome.
// If items fail, the error is a *MapError, and the results of the items that
// completed are valid.
//
// Errors: *MapError; ErrInvalid for a nil fn or a negative Concurrency; those of every durable call
// (package documentation, Errors).
func Map[I, O any](ctx context.Context, name string, in []I, o MapOptions, fn func(ctx context.Context, item I) (O, error)) ([]O, error) {
	out := make([]O, len(in))
	if fn == nil {
		return nil, fmt.Errorf("durable: Map %q: the function is nil: %w", name, ErrInvalid)
	}
	keep := func(n int, v O) { out[n] = v }
	if err := mapItems(ctx, name, in, o, fn, keep); err != nil {
		if _, failed := err.(*MapError); failed {
			return out, err
		}
		return nil, err
	}
	return out, nil
}

// MapSeq is Map over a source that need not fit into memory, folded into one
// value in the order of the items. Every replay reads the source from its
// beginning, and it must yield the same items; fold is called from one goroutine
// at a time and must have no side effects. If items fail, the error is a
// *MapError, and the failed items are left out.
//
// Errors are those of Map.
func MapSeq[I, O, A any](ctx context.Context, name string, in iter.Seq[I], o MapOptions, fn func(ctx context.Context, item I) (O, error), acc A, fold func(A, O) A) (A, error) {
	if fn == nil || fold == nil || in == nil {
		return acc, fmt.Errorf("durable: MapSeq %q: a function is nil: %w", name, ErrInvalid)
	}
	// Results arrive in any order and are folded in order. Those ahead of a slow
	// item wait here; mapping.await limits how many they can be.
	ahead := map[int]O{}
	failed := map[int]bool{}
	next := 0
	drain := func() {
		for {
			v, ok := ahead[next]
			switch {
			case ok:
				acc = fold(acc, v)
				delete(ahead, next)
			case failed[next]:
				delete(failed, next)
			default:
				return
			}
			next++
		}
	}
	m := mapping[I, O]{
		options: o, fn: fn, window: true,
		keep: func(n int, v O) { ahead[n] = v; drain() },
		miss: func(n int) { failed[n] = true; drain() },
	}
	err := m.perform(ctx, name, in)
	return acc, err
}

func mapItems[I, O any](ctx context.Context, name string, in []I, o MapOptions, fn func(context.Context, I) (O, error), keep func(int, O)) error {
	m := mapping[I, O]{options: o, fn: fn, items: in, keep: keep, miss: func(int) {}}
	return m.perform(ctx, name, slices.Values(in))
}
