package conformance_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/store"
)

// loading is a store whose loads of many runs are altered.
type loading struct {
	store.Store
	all func(next store.Store, ctx context.Context, loads []store.RunCursor) []store.Loaded
}

func (s loading) LoadAll(ctx context.Context, loads []store.RunCursor) []store.Loaded {
	return s.all(s.Store, ctx, loads)
}

func loadsBy(all func(next store.Store, ctx context.Context, loads []store.RunCursor) []store.Loaded) func() func(store.Store) store.Store {
	return func() func(store.Store) store.Store {
		return func(s store.Store) store.Store { return loading{s, all} }
	}
}

// asked alters what is asked for.
func asked(edit func(l *store.RunCursor)) func() func(store.Store) store.Store {
	return loadsBy(func(next store.Store, ctx context.Context, loads []store.RunCursor) []store.Loaded {
		loads = slices.Clone(loads)
		for i := range loads {
			edit(&loads[i])
		}
		return store.LoadAll(ctx, next, loads)
	})
}

// outcomes alters the outcomes.
func outcomes(edit func(next store.Store, loads []store.RunCursor, got []store.Loaded) []store.Loaded) func() func(store.Store) store.Store {
	return loadsBy(func(next store.Store, ctx context.Context, loads []store.RunCursor) []store.Loaded {
		return edit(next, loads, store.LoadAll(ctx, next, loads))
	})
}

// later replaces a part of each history by what it is at a later moment.
func later(edit func(h, now *store.History)) func() func(store.Store) store.Store {
	return outcomes(func(next store.Store, loads []store.RunCursor, got []store.Loaded) []store.Loaded {
		for i := range got {
			if got[i].Err == nil {
				time.Sleep(50 * time.Microsecond)
				if h, err := next.Load(context.Background(), loads[i].RunID, loads[i].Cursor); err == nil {
					edit(got[i].History, h)
				}
			}
		}
		return got
	})
}

func loadMutants() []mutant {
	const alike, moment = "as if it were loaded alone", "loaded together is of one moment"
	return []mutant{
		{"returns the outcomes in another order", "S43", alike, outcomes(func(_ store.Store, _ []store.RunCursor, got []store.Loaded) []store.Loaded {
			slices.Reverse(got)
			return got
		})},
		{"leaves out runs that do not exist", "S43", alike, outcomes(func(_ store.Store, _ []store.RunCursor, got []store.Loaded) []store.Loaded {
			return slices.DeleteFunc(got, func(l store.Loaded) bool { return l.Err != nil })
		})},
		{"loads none if one does not exist", "S43", alike, outcomes(func(_ store.Store, _ []store.RunCursor, got []store.Loaded) []store.Loaded {
			for i := range got {
				if got[i].Err != nil {
					return store.LoadedNothing(len(got), got[i].Err)
				}
			}
			return got
		})},
		{"loads a run once", "S43", alike, outcomes(func(_ store.Store, loads []store.RunCursor, got []store.Loaded) []store.Loaded {
			for i := range got {
				if slices.ContainsFunc(loads[:i], func(l store.RunCursor) bool { return l.RunID == loads[i].RunID }) {
					got[i] = store.Loaded{Err: store.ErrNotFound}
				}
			}
			return got
		})},
		{"loads a hundred at most", "S43", alike, asked(allBut(100))},
		{"reads all branches", "S43", alike, asked(func(l *store.RunCursor) { l.All = true })},
		{"reads the current branch", "S43", alike, asked(func(l *store.RunCursor) { l.Branch = nil })},
		{"reads from the beginning", "S43", alike, asked(func(l *store.RunCursor) { l.After = 0 })},
		{"reads to the end", "S43", alike, asked(func(l *store.RunCursor) { l.Tail = 0 })},
		{"reads all messages", "S43", alike, asked(func(l *store.RunCursor) { l.AfterMessage = 0 })},
		{"reads events that nobody wants", "S43", alike, asked(func(l *store.RunCursor) { l.NoEvents = false })},
		{"reads the first events only", "S43", alike, outcomes(func(_ store.Store, _ []store.RunCursor, got []store.Loaded) []store.Loaded {
			for i := range got {
				if h := got[i].History; h != nil {
					all := h.Events
					h.Events = func(yield func(store.Event, error) bool) {
						n := 0
						for e, err := range all {
							if n++; n > 128 || !yield(e, err) {
								return
							}
						}
					}
				}
			}
			return got
		})},
		{"reads the last event at another moment", "S43", moment, later(func(h, now *store.History) { h.Run.Last = now.Run.Last })},
		{"reads attributes at another moment", "S43", moment, later(func(h, now *store.History) { h.Run.Attributes = now.Run.Attributes })},
		{"reads messages at another moment", "S43", moment, later(func(h, now *store.History) { h.Inbox = now.Inbox })},
		{"reads events at another moment", "S43", moment, later(func(h, now *store.History) { h.Events = now.Events })},
		{"hands out the events that it keeps", "S17", "the caller's own, each time", keepsWhatItHandsOut},
		{"ends in silence for a run that is deleted", "S27", "one may be deleted while", outcomes(func(_ store.Store, _ []store.RunCursor, got []store.Loaded) []store.Loaded {
			for i := range got {
				h := got[i].History
				events := h.Events
				h.Events = func(yield func(store.Event, error) bool) {
					n := 0
					for e, err := range events {
						if n++; i == 0 && n > 1 || !yield(e, err) {
							return
						}
					}
				}
			}
			return got
		})},
		{"loads whatever the context", "S43", "is the outcome of each", loadsBy(func(next store.Store, ctx context.Context, loads []store.RunCursor) []store.Loaded {
			return store.LoadAll(context.WithoutCancel(ctx), next, loads)
		})},
	}
}

// allBut makes every load of a set behind the first n one of a run that is not there.
func allBut(n int) func(*store.RunCursor) {
	seen := 0
	return func(l *store.RunCursor) {
		if seen++; seen > n {
			l.RunID = "nobody"
		}
	}
}

func keepsWhatItHandsOut() func(store.Store) store.Store {
	return outcomes(func(_ store.Store, _ []store.RunCursor, got []store.Loaded) []store.Loaded {
		for i := range got {
			if got[i].Err != nil {
				continue
			}
			var kept []store.Event
			for e, err := range got[i].History.Events {
				if err != nil {
					return got
				}
				kept = append(kept, e)
			}
			got[i].History.Events = func(yield func(store.Event, error) bool) {
				for _, e := range kept {
					if !yield(e, nil) {
						return
					}
				}
			}
		}
		return got
	})()
}

func loaderHarness(m mutant) conformance.Harness {
	h := broken(m.wraps)
	h.Has = []conformance.Capability{conformance.Loader}
	return h
}

func TestTheSuiteCatchesMutantsOfLoads(t *testing.T) {
	for _, m := range loadMutants() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			c := find(t, m.by)
			require.Contains(t, clausesOf(c), m.clause, "the case %q checks another clause", c.Title())
			failures := record(t, c.Title(), func(tb testing.TB) { c.Check(tb, loaderHarness(m)) })
			require.NotEmpty(t, failures, "%q passes", c.Title())
			require.Regexp(t, `\b`+m.clause+`\b`, strings.Join(failures, "\n"), "the clause that is broken is named")
		})
	}
}

// Where a store cannot load many runs at once, they are loaded one by one.
func TestLoadsOneByOnePass(t *testing.T) {
	type plain struct{ store.Store } // hides that it can
	sound := mutant{wraps: loadsBy(func(next store.Store, ctx context.Context, loads []store.RunCursor) []store.Loaded {
		return store.LoadAll(ctx, plain{next}, loads)
	})}
	for _, c := range conformance.Cases() {
		if c.Needs == conformance.Loader {
			require.Empty(t, record(t, c.Title(), func(tb testing.TB) { c.Check(tb, loaderHarness(sound)) }), c.Title())
		}
	}
}
