package durable

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/faults"
)

// RetryFailed fills in what is missing in the results of a Map: given its input in, its
// results out and its error, it runs fn on the items that failed, and on those that were
// not begun because the Map had stopped, and on no others. It is a Map of its own, with
// its own name, limits and record. It returns the results with the missing ones filled
// in; out itself is not changed.
//
//	out, err := durable.Map(ctx, "send", letters, durable.MapOptions{KeepGoing: true}, send)
//	// ... a person has mended the addresses
//	out, err = durable.RetryFailed(ctx, "send again", letters, out, err, durable.MapOptions{KeepGoing: true}, send)
//
// Items that fail again are in a *MapError whose indexes are those of in, so that it can
// be given to RetryFailed once more; the keys of its items are those of the new Map. With
// a nil err nothing is done or recorded. An err that holds no *MapError (because the run
// was cancelled, for example) is returned as it is.
//
// Errors: ErrInvalid when in, out and err cannot be of one Map.
func RetryFailed[I, O any](ctx context.Context, name string, in []I, out []O, err error, o MapOptions, fn func(ctx context.Context, item I) (O, error)) ([]O, error) {
	if fn == nil {
		return nil, fmt.Errorf("durable: RetryFailed %q: the function is nil: %w", name, ErrInvalid)
	}
	if err == nil {
		return out, nil
	}
	failed, ok := faults.Find[*MapError](err)
	if !ok {
		return nil, err
	}
	missing, invalid := failed.missing(len(in), len(out))
	if invalid != nil {
		return nil, fmt.Errorf("durable: RetryFailed %q: %w", name, invalid)
	}
	again := make([]I, len(missing))
	for i, n := range missing {
		again[i] = in[n]
	}
	results, err := Map(ctx, name, again, o, fn)
	still, partial := faults.Find[*MapError](err)
	if err != nil && !partial {
		return nil, err
	}
	out = slices.Clone(out)
	for i, n := range missing {
		out[n] = results[i]
	}
	if !partial {
		return out, nil
	}
	return out, still.at(missing)
}

// missing returns the indexes of the items without a result, in order.
func (e *MapError) missing(in, out int) ([]int, error) {
	if in != out {
		return nil, fmt.Errorf("%s and %s were given; both must be those of the Map: %w", count.Of(in, "item"), count.Of(out, "result"), ErrInvalid)
	}
	if len(e.undone) != e.Undone {
		return nil, fmt.Errorf("the error of %s does not say which items were not begun; it must be that of a Map: %w", e.Key, ErrInvalid)
	}
	list := slices.Clone(e.undone)
	for _, f := range e.Failed {
		list = append(list, f.Index)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	if n := len(list); n > 0 && (list[0] < 0 || list[n-1] >= in) {
		return nil, fmt.Errorf("item %d of %s failed, and %s given: %w", list[n-1], e.Key, count.Of(in, "item")+" "+count.Verb(in, "is", "are"), ErrInvalid)
	}
	return list, nil
}

// at returns e with the indexes that its items have elsewhere.
func (e *MapError) at(index []int) *MapError {
	m := &MapError{RunID: e.RunID, Key: e.Key, Undone: e.Undone}
	for _, f := range e.Failed {
		moved := *f
		moved.Index = index[f.Index]
		m.Failed = append(m.Failed, &moved)
	}
	for _, n := range e.undone {
		m.undone = append(m.undone, index[n])
	}
	return m
}
