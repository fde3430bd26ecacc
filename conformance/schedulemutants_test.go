package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/store"
)

// scheduling is a sound store of schedules with some methods replaced.
type scheduling struct {
	store.Store
	next   store.Schedules
	put    func(next store.Schedules, ctx context.Context, sc store.Schedule) (store.Schedule, error)
	remove func(next store.Schedules, ctx context.Context, name string) (bool, error)
	list   func(list []store.Schedule) []store.Schedule
	due    func(next store.Schedules, ctx context.Context, limit int) (store.DueSchedules, error)
}

func (s scheduling) PutSchedule(ctx context.Context, sc store.Schedule) (store.Schedule, error) {
	if s.put == nil {
		return s.next.PutSchedule(ctx, sc)
	}
	return s.put(s.next, ctx, sc)
}

func (s scheduling) DeleteSchedule(ctx context.Context, name string) (bool, error) {
	if s.remove == nil {
		return s.next.DeleteSchedule(ctx, name)
	}
	return s.remove(s.next, ctx, name)
}

func (s scheduling) Schedules(ctx context.Context, names ...string) ([]store.Schedule, error) {
	list, err := s.next.Schedules(ctx, names...)
	if s.list != nil {
		list = s.list(list)
	}
	return list, err
}

func (s scheduling) DueSchedules(ctx context.Context, limit int) (store.DueSchedules, error) {
	if s.due == nil {
		return s.next.DueSchedules(ctx, limit)
	}
	return s.due(s.next, ctx, limit)
}

// schedulesBy makes a mutant of replaced methods.
func schedulesBy(alter func() scheduling) func() func(store.Store) store.Store {
	return func() func(store.Store) store.Store {
		a := alter()
		return func(s store.Store) store.Store {
			a := a
			a.Store, a.next = s, s.(store.Schedules)
			return a
		}
	}
}

// putting alters how a schedule is stored; have is what is stored before, nil if
// nothing is.
func putting(put func(next store.Schedules, ctx context.Context, sc store.Schedule, have *store.Schedule) (store.Schedule, error)) func() func(store.Store) store.Store {
	return schedulesBy(func() scheduling {
		return scheduling{put: func(next store.Schedules, ctx context.Context, sc store.Schedule) (store.Schedule, error) {
			list, err := next.Schedules(ctx, sc.Name)
			if err != nil || len(list) == 0 {
				return put(next, ctx, sc, nil)
			}
			return put(next, ctx, sc, &list[0])
		}}
	})
}

// dueing alters what is due.
func dueing(edit func(d *store.DueSchedules)) func() func(store.Store) store.Store {
	return schedulesBy(func() scheduling {
		return scheduling{due: func(next store.Schedules, ctx context.Context, limit int) (store.DueSchedules, error) {
			d, err := next.DueSchedules(ctx, limit)
			edit(&d)
			return d, err
		}}
	})
}

func scheduleMutants() []mutant {
	return []mutant{
		{"loses the data of a schedule", "S4", "reads back as it was stored", schedulesBy(func() scheduling {
			return scheduling{list: func(list []store.Schedule) []store.Schedule {
				for i := range list {
					list[i].Data = bytes.ToValidUTF8(list[i].Data, nil)
				}
				return list
			}}
		})},
		{"lists schedules by age", "S4", "reads back as it was stored", schedulesBy(func() scheduling {
			return scheduling{list: func(list []store.Schedule) []store.Schedule {
				slices.SortFunc(list, func(a, b store.Schedule) int { return int(b.UpdatedAt - a.UpdatedAt) })
				return list
			}}
		})},
		{"returns what it was given", "S36", "reads back as it was stored", putting(func(next store.Schedules, ctx context.Context, sc store.Schedule, _ *store.Schedule) (store.Schedule, error) {
			_, err := next.PutSchedule(ctx, sc)
			return sc, err
		})},
		{"replaces any revision", "S36", "who knows its revision", putting(func(next store.Schedules, ctx context.Context, sc store.Schedule, have *store.Schedule) (store.Schedule, error) {
			if have != nil && sc.Revision != 0 {
				sc.Revision = have.Revision
			}
			return next.PutSchedule(ctx, sc)
		})},
		{"creates over what exists", "S36", "who knows its revision", putting(func(next store.Schedules, ctx context.Context, sc store.Schedule, have *store.Schedule) (store.Schedule, error) {
			if have != nil && sc.Revision == 0 {
				sc.Revision = have.Revision
			}
			return next.PutSchedule(ctx, sc)
		})},
		{"creates what is to be replaced", "S36", "who knows its revision", putting(func(next store.Schedules, ctx context.Context, sc store.Schedule, have *store.Schedule) (store.Schedule, error) {
			if have == nil {
				sc.Revision = 0
			}
			return next.PutSchedule(ctx, sc)
		})},
		{"compares before it writes", "S36", "who replace a revision", putting(func(next store.Schedules, ctx context.Context, sc store.Schedule, have *store.Schedule) (store.Schedule, error) {
			if have != nil && sc.Revision == have.Revision {
				time.Sleep(100 * time.Microsecond)
				for {
					got, err := next.PutSchedule(ctx, sc)
					if !errors.Is(err, store.ErrRevision) {
						return got, err
					}
					sc.Revision++
				}
			}
			return next.PutSchedule(ctx, sc)
		})},
		{"does not know a schedule again", "S36", "stored again", putting(func(next store.Schedules, ctx context.Context, sc store.Schedule, have *store.Schedule) (store.Schedule, error) {
			if have != nil && sc.Revision != have.Revision {
				return store.Schedule{}, store.ErrRevision
			}
			return next.PutSchedule(ctx, sc)
		})},
		{"counts a schedule that is stored again", "S36", "stored again", putting(func(next store.Schedules, ctx context.Context, sc store.Schedule, have *store.Schedule) (store.Schedule, error) {
			if have != nil && sc.Revision+1 == have.Revision && bytes.Equal(sc.Data, have.Data) {
				sc.Revision = have.Revision
			}
			return next.PutSchedule(ctx, sc)
		})},
		{"uses revisions again", "S36", "another one afterwards", schedulesBy(func() scheduling {
			var mu sync.Mutex
			shift := map[string]int64{} // from its revisions to those from 1
			show := func(sc store.Schedule) store.Schedule {
				mu.Lock()
				defer mu.Unlock()
				sc.Revision -= shift[sc.Name]
				return sc
			}
			return scheduling{
				put: func(next store.Schedules, ctx context.Context, sc store.Schedule) (store.Schedule, error) {
					mu.Lock()
					by := shift[sc.Name]
					mu.Unlock()
					created := sc.Revision == 0
					if !created {
						sc.Revision += by
					}
					got, err := next.PutSchedule(ctx, sc)
					if created && err == nil {
						mu.Lock()
						shift[sc.Name] = got.Revision - 1
						mu.Unlock()
					}
					return show(got), err
				},
				list: func(list []store.Schedule) []store.Schedule {
					for i := range list {
						list[i] = show(list[i])
					}
					return list
				},
				due: func(next store.Schedules, ctx context.Context, limit int) (store.DueSchedules, error) {
					d, err := next.DueSchedules(ctx, limit)
					for i := range d.Due {
						d.Due[i] = show(d.Due[i])
					}
					return d, err
				},
			}
		})},
		{"asks for one more than the largest number", "S37", "what is due comes in order", schedulesBy(func() scheduling {
			return scheduling{due: func(next store.Schedules, ctx context.Context, limit int) (store.DueSchedules, error) {
				if limit+1 < limit {
					return store.DueSchedules{}, store.ErrInvalid
				}
				return next.DueSchedules(ctx, limit)
			}}
		})},
		{"refuses to remove what it could not keep", "S36", "another one afterwards", schedulesBy(func() scheduling {
			return scheduling{remove: func(next store.Schedules, ctx context.Context, name string) (bool, error) {
				if strings.Contains(name, "\x00") {
					return false, store.ErrInvalid
				}
				return next.DeleteSchedule(ctx, name)
			}}
		})},
		{"keeps a deleted schedule due", "S37", "another one afterwards", schedulesBy(func() scheduling {
			var mu sync.Mutex
			var left []store.Schedule
			return scheduling{
				remove: func(next store.Schedules, ctx context.Context, name string) (bool, error) {
					mu.Lock()
					defer mu.Unlock()
					list, _ := next.Schedules(ctx, name)
					left = append(left, list...)
					return next.DeleteSchedule(ctx, name)
				},
				due: func(next store.Schedules, ctx context.Context, limit int) (store.DueSchedules, error) {
					mu.Lock()
					defer mu.Unlock()
					d, err := next.DueSchedules(ctx, limit)
					d.Due = append(d.Due, left...)
					return d, err
				},
			}
		})},
		{"takes a schedule without a name", "S36", "an invalid schedule", putting(func(next store.Schedules, ctx context.Context, sc store.Schedule, _ *store.Schedule) (store.Schedule, error) {
			if sc.Name == "" {
				sc.Name = "none"
			}
			return next.PutSchedule(ctx, sc)
		})},
		{"cuts long data of schedules", "S36", "an invalid schedule", putting(func(next store.Schedules, ctx context.Context, sc store.Schedule, _ *store.Schedule) (store.Schedule, error) {
			sc.Data = sc.Data[:min(len(sc.Data), 1<<20)]
			return next.PutSchedule(ctx, sc)
		})},
		{"keeps a schedule's slice", "S17", "gave of a schedule", schedulesBy(func() scheduling {
			var mu sync.Mutex
			given := map[string][]byte{}
			return scheduling{
				put: func(next store.Schedules, ctx context.Context, sc store.Schedule) (store.Schedule, error) {
					mu.Lock()
					defer mu.Unlock()
					given[sc.Name] = sc.Data
					return next.PutSchedule(ctx, sc)
				},
				list: func(list []store.Schedule) []store.Schedule {
					mu.Lock()
					defer mu.Unlock()
					for i := range list {
						list[i].Data = given[list[i].Name]
					}
					return list
				},
			}
		})},
		{"is due early", "S37", "come by the store's clock", putting(func(next store.Schedules, ctx context.Context, sc store.Schedule, _ *store.Schedule) (store.Schedule, error) {
			due := sc.Due
			if sc.Due > 10 {
				sc.Due -= 500_000
			}
			got, err := next.PutSchedule(ctx, sc)
			got.Due = due
			return got, err
		})},
		{"is due without a time", "S37", "come by the store's clock", schedulesBy(func() scheduling {
			return scheduling{due: func(next store.Schedules, ctx context.Context, limit int) (store.DueSchedules, error) {
				d, err := next.DueSchedules(ctx, limit)
				all, _ := next.Schedules(ctx)
				for _, sc := range all {
					if sc.Due == 0 {
						d.Due = append(d.Due, sc)
					}
				}
				return d, err
			}}
		})},
		{"does not say what is next", "S37", "come by the store's clock", dueing(func(d *store.DueSchedules) { d.Next = 0 })},
		{"has another clock for schedules", "S37", "come by the store's clock", dueing(func(d *store.DueSchedules) { d.Now += 3_600_000_000 })},
		{"has what is due in the order of names", "S37", "comes in order", dueing(func(d *store.DueSchedules) {
			slices.SortFunc(d.Due, func(a, b store.Schedule) int { return strings.Compare(a.Name, b.Name) })
		})},
		{"ignores the limit of what is due", "S37", "comes in order", schedulesBy(func() scheduling {
			return scheduling{due: func(next store.Schedules, ctx context.Context, _ int) (store.DueSchedules, error) {
				return next.DueSchedules(ctx, 1000)
			}}
		})},
		{"skips what the limit leaves out", "S37", "comes in order", dueing(func(d *store.DueSchedules) {
			if d.Next < d.Now {
				d.Next = 0
			}
		})},
		{"stores schedules when it is closed", "S23", "keeps no schedules", putting(func(next store.Schedules, ctx context.Context, sc store.Schedule, _ *store.Schedule) (store.Schedule, error) {
			got, err := next.PutSchedule(ctx, sc)
			if errors.Is(err, store.ErrClosed) {
				err = nil
			}
			return got, err
		})},
	}
}

// brokenSchedules is broken for a store that keeps schedules.
func brokenSchedules(breaks func() func(store.Store) store.Store) conformance.Harness {
	h := broken(breaks)
	h.Has = []conformance.Capability{conformance.Schedules}
	return h
}

func TestTheSuiteCatchesMutantsOfSchedules(t *testing.T) {
	shown := make(map[string]bool)
	for _, m := range scheduleMutants() {
		t.Run(m.name, func(t *testing.T) {
			c := find(t, m.by)
			require.Contains(t, clausesOf(c), m.clause, "the case %q checks another clause", c.Title())
			failures := record(t, c.Title(), func(tb testing.TB) { c.Check(tb, brokenSchedules(m.wraps)) })
			require.NotEmpty(t, failures, "%q passes", c.Title())
			require.Regexp(t, `\b`+m.clause+`\b`, strings.Join(failures, "\n"), "the clause that is broken is named")
			if !shown[c.Title()] {
				shown[c.Title()] = true
				sound := brokenSchedules(schedulesBy(func() scheduling { return scheduling{} }))
				require.Empty(t, record(t, c.Title(), func(tb testing.TB) { c.Check(tb, sound) }), "a wrapping that alters nothing")
			}
		})
	}
}
