package conformance_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/store"
)

// queueing is a sound store of queues with some methods replaced.
type queueing struct {
	altered
	put   func(next store.Queues, ctx context.Context, q store.Queue) error
	one   func(q *store.Queue)
	list  func(next store.Queues, ctx context.Context, names []string) ([]store.QueueState, error)
	ahead func(n int64, inLine bool) (int64, bool)
}

func (s queueing) next() store.Queues { return s.Store.(store.Queues) }

func (s queueing) PutQueue(ctx context.Context, q store.Queue) error {
	if s.put == nil {
		return s.next().PutQueue(ctx, q)
	}
	return s.put(s.next(), ctx, q)
}

func (s queueing) Queue(ctx context.Context, name string) (store.Queue, error) {
	q, err := s.next().Queue(ctx, name)
	if s.one != nil {
		s.one(&q)
	}
	return q, err
}

func (s queueing) Queues(ctx context.Context, names ...string) ([]store.QueueState, error) {
	if s.list == nil {
		return s.next().Queues(ctx, names...)
	}
	return s.list(s.next(), ctx, names)
}

func (s queueing) Ahead(ctx context.Context, runID string) (int64, bool, error) {
	n, inLine, err := s.next().Ahead(ctx, runID)
	if s.ahead != nil {
		n, inLine = s.ahead(n, inLine)
	}
	return n, inLine, err
}

// queuesBy makes a mutant; alter is called once per data.
func queuesBy(alter func() queueing) func() func(store.Store) store.Store {
	return func() func(store.Store) store.Store {
		a := alter()
		return func(s store.Store) store.Store {
			a := a
			a.Store = s
			return a
		}
	}
}

// keeping alters what is kept of a queue, which reads back as it was put all the same.
func keeping(edit func(q *store.Queue)) func() func(store.Store) store.Store {
	return queuesBy(func() queueing {
		var mu sync.Mutex
		given := make(map[string]store.Queue)
		return queueing{
			one: func(st *store.Queue) {
				mu.Lock()
				defer mu.Unlock()
				if q, ok := given[st.Name]; ok {
					q.Revision, q.UpdatedAt = st.Revision, st.UpdatedAt
					*st = q
				}
			},
			put: func(next store.Queues, ctx context.Context, q store.Queue) error {
				kept := q
				edit(&kept)
				err := next.PutQueue(ctx, kept)
				if err == nil {
					mu.Lock()
					defer mu.Unlock()
					given[q.Name] = q
				}
				return err
			},
			list: func(next store.Queues, ctx context.Context, names []string) ([]store.QueueState, error) {
				states, err := next.Queues(ctx, names...)
				mu.Lock()
				defer mu.Unlock()
				for i := range states {
					st := &states[i]
					if q, ok := given[st.Name]; ok {
						q.Revision, q.UpdatedAt = st.Revision, st.UpdatedAt
						st.Queue = q
					}
				}
				return states, err
			},
		}
	})
}

// queuesListed alters the states of queues.
func queuesListed(edit func(st *store.QueueState)) func() func(store.Store) store.Store {
	return queuesBy(func() queueing {
		return queueing{list: func(next store.Queues, ctx context.Context, names []string) ([]store.QueueState, error) {
			states, err := next.Queues(ctx, names...)
			for i := range states {
				edit(&states[i])
			}
			return states, err
		}}
	})
}

// queueClaims alters the claims of a store of queues.
func queueClaims(claim func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error)) func() func(store.Store) store.Store {
	return queuesBy(func() queueing { return queueing{altered: altered{claim: claim}} })
}

// judging claims with other limits than those that were put.
func judging(edit func(s store.Store, c store.Claim, st *store.QueueState)) func() func(store.Store) store.Store {
	var mu sync.Mutex
	return queueClaims(func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
		mu.Lock()
		defer mu.Unlock()
		states, err := next.(store.Queues).Queues(ctx)
		if err != nil {
			return nil, err
		}
		for _, st := range states {
			if st.Revision == 0 {
				continue
			}
			original := st.Queue
			edit(next, c, &st)
			if err := next.(store.Queues).PutQueue(ctx, st.Queue); err != nil {
				return nil, err
			}
			defer func() {
				original.Revision++
				if err := next.(store.Queues).PutQueue(ctx, original); err != nil {
					panic(err)
				}
			}()
		}
		return next.Claim(ctx, c)
	})
}

// countOf counts the runs of a queue in a status.
func countOf(s store.Store, queue string, status store.Status) int {
	n, err := s.Count(context.Background(), store.Filter{Queues: []string{queue}, Statuses: []store.Status{status}}, "")
	if err != nil {
		panic(err)
	}
	return int(n[""])
}

// unlisted takes queues out of the claims.
func unlisted(out func(st store.QueueState) bool) func() func(store.Store) store.Store {
	return queueClaims(func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
		c.Queues = slices.DeleteFunc(slices.Clone(c.Queues), func(q store.QueueRoom) bool {
			states, err := next.(store.Queues).Queues(ctx, q.Queue)
			return err != nil || len(states) == 1 && out(states[0])
		})
		return next.Claim(ctx, c)
	})
}

// ratesItself keeps rates beside the store, by counting what it remembers of claims.
func ratesItself(counts func(q store.Queue, now, at store.Time) bool) func() func(store.Store) store.Store {
	return func() func(store.Store) store.Store {
		var mu sync.Mutex
		var begun []store.Time
		rate := store.Queue{}
		a := queueing{
			put: func(next store.Queues, ctx context.Context, q store.Queue) error {
				mu.Lock()
				defer mu.Unlock()
				rate = q
				q.Rate, q.Per = 0, 0
				return next.PutQueue(ctx, q)
			},
			list: func(next store.Queues, ctx context.Context, names []string) ([]store.QueueState, error) {
				states, err := next.Queues(ctx, names...)
				for i := range states {
					states[i].NextAt = 1 << 60
				}
				return states, err
			},
		}
		a.claim = func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			mu.Lock()
			defer mu.Unlock()
			// A queue that is put tells the time.
			clock := store.Queue{Name: "clock"}
			if states, err := next.(store.Queues).Queues(ctx, clock.Name); err != nil {
				return nil, err
			} else if len(states) == 1 {
				clock.Revision = states[0].Revision
			}
			if err := next.(store.Queues).PutQueue(ctx, clock); err != nil {
				return nil, err
			}
			states, err := next.(store.Queues).Queues(ctx, clock.Name)
			if err != nil {
				return nil, err
			}
			now, n := states[0].UpdatedAt, 0
			for _, at := range begun {
				if counts(rate, now, at) {
					n++
				}
			}
			c.Queues = []store.QueueRoom{{Queue: rate.Name, Max: max(0, rate.Rate-n)}}
			runs, err := next.Claim(ctx, c)
			for range runs {
				begun = append(begun, now)
			}
			return runs, err
		}
		return func(s store.Store) store.Store {
			a := a
			a.Store = s
			return a
		}
	}
}

func queueMutants() []mutant {
	list := []mutant{
		// Queues.
		{"puts over any revision", "S35", "put at the revision that it has", queuesBy(func() queueing {
			return queueing{put: func(next store.Queues, ctx context.Context, q store.Queue) error {
				if states, err := next.Queues(ctx, q.Name); err == nil && len(states) == 1 && q.Revision > 0 {
					q.Revision = states[0].Revision
				}
				return next.PutQueue(ctx, q)
			}}
		})},
		{"creates over a queue that is there", "S35", "put at the revision that it has", queuesBy(func() queueing {
			return queueing{put: func(next store.Queues, ctx context.Context, q store.Queue) error {
				if states, err := next.Queues(ctx, q.Name); err == nil && len(states) == 1 && q.Revision == 0 {
					q.Revision = states[0].Revision
				}
				return next.PutQueue(ctx, q)
			}}
		})},
		{"creates a queue at any revision", "S35", "put at the revision that it has", queuesBy(func() queueing {
			return queueing{put: func(next store.Queues, ctx context.Context, q store.Queue) error {
				if states, err := next.Queues(ctx, q.Name); err == nil && len(states) == 0 {
					q.Revision = 0
				}
				return next.PutQueue(ctx, q)
			}}
		})},
		{"compares a revision before it writes", "S35", "of many who put a queue at once", queuesBy(func() queueing {
			return queueing{put: func(next store.Queues, ctx context.Context, q store.Queue) error {
				states, err := next.Queues(ctx, q.Name)
				if err != nil || len(states) == 1 && states[0].Revision != q.Revision {
					return store.ErrRevision
				}
				time.Sleep(time.Millisecond)
				for {
					if states, err = next.Queues(ctx, q.Name); err == nil && len(states) == 1 {
						q.Revision = states[0].Revision
					}
					if err := next.PutQueue(ctx, q); !errors.Is(err, store.ErrRevision) {
						return err
					}
				}
			}}
		})},
		{"fails without saying that the queue was put", "S35", "of many who put a queue at once", queuesBy(func() queueing {
			return queueing{put: func(next store.Queues, ctx context.Context, q store.Queue) error {
				if next.PutQueue(ctx, q) != nil {
					return errors.New("it was not put")
				}
				return nil
			}}
		})},
		{"takes queues that are invalid", "S35", "an invalid queue is refused", queuesBy(func() queueing {
			return queueing{put: func(next store.Queues, ctx context.Context, q store.Queue) error {
				if err := next.PutQueue(ctx, q); !errors.Is(err, store.ErrInvalid) {
					return err
				}
				return nil
			}}
		})},
		{"keeps queues when it is closed", "S23", "a closed store keeps no queues", queuesBy(func() queueing {
			return queueing{put: func(next store.Queues, ctx context.Context, q store.Queue) error {
				if err := next.PutQueue(ctx, q); !errors.Is(err, store.ErrClosed) {
					return err
				}
				return nil
			}}
		})},
		{"leaves the time of a put to the caller", "S4", "a queue reads back", queuesListed(func(st *store.QueueState) { st.UpdatedAt = 1 })},
		{"looks at the queue that was there first", "S35", "a queue is looked at", queuesBy(func() queueing {
			var mu sync.Mutex
			first := map[string]store.Queue{}
			return queueing{one: func(q *store.Queue) {
				mu.Lock()
				defer mu.Unlock()
				if was, ok := first[q.Name]; ok {
					*q = was
				} else if q.Revision > 0 {
					first[q.Name] = *q
				}
			}}
		})},
		{"takes a queue that was not put for one that was", "S35", "a queue is looked at", queuesBy(func() queueing {
			return queueing{one: func(q *store.Queue) { q.Revision = max(q.Revision, 1) }}
		})},
		{"lists queues by age", "S4", "a queue reads back", queuesBy(func() queueing {
			return queueing{list: func(next store.Queues, ctx context.Context, names []string) ([]store.QueueState, error) {
				states, err := next.Queues(ctx, names...)
				slices.SortFunc(states, func(a, b store.QueueState) int { return int(a.UpdatedAt - b.UpdatedAt) })
				return states, err
			}}
		})},
		{"knows queues by their names in lower case", "S33", "names of queues and partitions", queuesBy(func() queueing {
			lower := queueing{put: func(next store.Queues, ctx context.Context, q store.Queue) error {
				if states, err := next.Queues(ctx, strings.ToLower(q.Name)); err == nil && len(states) == 1 {
					q.Revision = states[0].Revision
				}
				q.Name = strings.ToLower(q.Name)
				return next.PutQueue(ctx, q)
			}}
			return lower
		})},
		{"claims by the queue that it saw first", "S35", "what was put holds for the next claim", func() func(store.Store) store.Store {
			return func(s store.Store) store.Store {
				seen := make(map[string]store.Queue)
				return judging(func(_ store.Store, _ store.Claim, st *store.QueueState) {
					if q, ok := seen[st.Name]; ok {
						q.Revision = st.Revision
						st.Queue = q
					}
					seen[st.Name] = st.Queue
				})()(s)
			}
		}},

		// Places.
		{"a queue has a place more", "S33", "a queue gives as many places", keeping(func(q *store.Queue) {
			if q.Max > 0 {
				q.Max++
			}
		})},
		{"a queue has a place less", "S33", "a queue gives as many places", keeping(func(q *store.Queue) { q.Max = max(q.Max-1, min(1, q.Max)) })},
		{"a partition has a place more", "S33", "a partition gives as many places", keeping(func(q *store.Queue) {
			if q.MaxPerPartition > 0 {
				q.MaxPerPartition++
			}
		})},
		{"a queue with a limit for partitions has none of its own", "S33", "a partition gives as many places", keeping(func(q *store.Queue) {
			if q.MaxPerPartition > 0 {
				q.Max = 0
			}
		})},
		{"a queue that was not put is closed", "S33", "a queue that was never put", unlisted(func(st store.QueueState) bool { return st.Revision == 0 })},
		{"a pause is for people to know", "S33", "a paused queue gives no place", keeping(func(q *store.Queue) { q.Paused = false })},
		{"a paused queue lets nobody wake up", "S33", "a paused queue gives no place", unlisted(func(st store.QueueState) bool { return st.Paused })},
		{"who waits gives its place up", "S33", "a waiting run keeps its place", judging(func(s store.Store, _ store.Claim, st *store.QueueState) {
			st.Max += countOf(s, st.Name, store.Waiting)
		})},
		{"who was interrupted keeps its place", "S33", "a waiting run keeps its place", judging(func(s store.Store, _ store.Claim, st *store.QueueState) {
			if n := countOf(s, st.Name, store.Interrupted); st.Max > 0 && n >= st.Max {
				st.Queue.Paused = true
			}
		})},
		{"who has failed keeps its place", "S33", "a queue gives as many places", judging(func(s store.Store, _ store.Claim, st *store.QueueState) {
			st.Max -= countOf(s, st.Name, store.Failed)
		})},
		{"a claim by ids knows no places", "S33", "a claim by ids keeps the limits", judging(func(_ store.Store, c store.Claim, st *store.QueueState) {
			if len(c.IDs) > 0 {
				st.Max = 0
			}
		})},
		{"a claim by ids knows no partitions", "S33", "a claim by ids keeps the limits", judging(func(_ store.Store, c store.Claim, st *store.QueueState) {
			if len(c.IDs) > 0 {
				st.MaxPerPartition = 0
			}
		})},
		{"a claim by ids knows no pause", "S33", "a claim by ids keeps the limits", judging(func(_ store.Store, c store.Claim, st *store.QueueState) {
			st.Queue.Paused = st.Queue.Paused && len(c.IDs) == 0
		})},
		{"a claim by ids counts for no rate", "S33", "a claim by ids keeps the limits", judging(func(_ store.Store, c store.Claim, st *store.QueueState) {
			if len(c.IDs) > 0 {
				st.Rate, st.Per = 0, 0
			}
		})},
		{"a full queue keeps those that were cancelled", "S33", "cancelled in line", unlisted(func(st store.QueueState) bool {
			return st.Paused || st.Max > 0 && st.Placed >= int64(st.Max)
		})},
		{"a full partition closes the queue", "S33", "a partition gives as many places", judging(func(_ store.Store, _ store.Claim, st *store.QueueState) {
			for _, p := range st.Partitions {
				st.Queue.Paused = st.Queue.Paused || p.InLine > 0 && p.Placed >= int64(st.MaxPerPartition)
			}
		})},
		{"counts the places before it gives one", "S33", "many executors together stay within the limits", queuesBy(func() queueing {
			most := 0
			return queueing{
				put: func(next store.Queues, ctx context.Context, q store.Queue) error {
					most, q.Max = q.Max, 0
					return next.PutQueue(ctx, q)
				},
				altered: altered{claim: func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
					states, err := next.(store.Queues).Queues(ctx, "mail")
					if err != nil {
						return nil, err
					}
					room := max(0, most-int(states[0].Placed))
					time.Sleep(time.Millisecond)
					if len(c.IDs) > 0 {
						c.Max = min(c.Max, room)
					}
					c.Queues = []store.QueueRoom{{Queue: "mail", Max: room}}
					return next.Claim(ctx, c)
				}},
			}
		})},
		{"limits do not outlive the handles", "S33", "outlive the handles", func() func(store.Store) store.Store {
			return func(s store.Store) store.Store {
				forget(s, false)
				return queuesBy(func() queueing { return queueing{} })()(s)
			}
		}},

		// Rates.
		{"a rate lets one more begin", "S33", "a rate holds in every window", keeping(func(q *store.Queue) {
			if q.Rate > 0 {
				q.Rate++
			}
		})},
		{"a rate lets one less begin", "S33", "a rate holds in every window", keeping(func(q *store.Queue) {
			if q.Rate > 1 {
				q.Rate--
			}
		})},
		{"a window is shorter", "S33", "a rate holds in every window", keeping(func(q *store.Queue) { q.Per = q.Per * 4 / 5 })},
		{"a window is longer", "S33", "a rate holds in every window", keeping(func(q *store.Queue) { q.Per *= 2 })},
		{"windows begin every so often", "S33", "a rate holds in every window", ratesItself(func(q store.Queue, now, at store.Time) bool {
			per := store.Time(q.Per.Microseconds())
			return at/per == now/per
		})},
		{"what begins later counts till then", "S33", "a clock that jumps", ratesItself(func(q store.Queue, now, at store.Time) bool { return at > now.Add(-q.Per) })},
		{"what begins later does not count", "S33", "a clock that jumps", ratesItself(func(q store.Queue, now, at store.Time) bool { return at > now.Add(-q.Per) && at <= now })},
		{"who resumes needs the rate too", "S33", "only runs that begin count", unlisted(func(st store.QueueState) bool { return st.Rate > 0 && st.Begun >= int64(st.Rate) })},
		{"another rate forgets what has begun", "S33", "a rate that is replaced", queuesBy(func() queueing {
			return queueing{put: func(next store.Queues, ctx context.Context, q store.Queue) error {
				none := q
				none.Rate, none.Per = 0, 0
				if err := next.PutQueue(ctx, none); err != nil {
					return err
				}
				q.Revision++
				return next.PutQueue(ctx, q)
			}}
		})},
		{"a queue without a rate remembers what has begun", "S33", "a rate that is replaced", queuesBy(func() queueing {
			return queueing{put: func(next store.Queues, ctx context.Context, q store.Queue) error {
				if q.Rate == 0 {
					q.Rate, q.Per = store.MaxRate, time.Hour
				}
				return next.PutQueue(ctx, q)
			}}
		})},
		{"counts what has begun before it lets another begin", "S33", "many executors together stay within a rate", queueClaims(func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			states, err := next.(store.Queues).Queues(ctx, "mail")
			if err != nil {
				return nil, err
			}
			if left := int64(states[0].Rate) - states[0].Begun; left > 0 {
				time.Sleep(100 * time.Microsecond)
				forget(next, true)
			}
			return next.Claim(ctx, c)
		})},
		{"rates do not outlive the handles", "S33", "outlive the handles", func() func(store.Store) store.Store {
			return func(s store.Store) store.Store {
				forget(s, true)
				return queuesBy(func() queueing { return queueing{} })()(s)
			}
		}},

		// Order.
		{"takes no notice of priority", "S34", "the lowest rank comes first", queueCreations(func(r *store.Run) { r.Priority = 0 })},
		{"priority goes before all waiting", "S34", "the lowest rank comes first", queueCreations(func(r *store.Run) { r.CreatedAt -= store.Time(r.Priority) << 40; r.Priority = 0 })},
		{"a delayed run has waited since it was created", "S34", "the lowest rank comes first", queueCreations(func(r *store.Run) {
			if r.WakeAt < 1<<59 {
				r.WakeAt = 0
			}
		})},
		{"a delayed run is in line at once", "S20", "in line when its time has come", queueCreations(func(r *store.Run) { r.WakeAt = 0 })},
		{"partitions take no turns", "S34", "partitions take turns", queueCreations(func(r *store.Run) { r.Partition = "" })},
		{"partitions take turns backwards", "S34", "partitions take turns", queueCreations(func(r *store.Run) {
			if r.Partition != "" {
				r.Partition = string(rune(1000-int([]rune(r.Partition)[0]))) + r.Partition
			}
		})},
		{"goes through the queues one by one", "S34", "between queues the lowest rank", queueClaims(func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			for i := range c.Queues {
				of1 := c
				of1.Queues = c.Queues[i : i+1]
				if runs, err := next.Claim(ctx, of1); err != nil || len(runs) > 0 && runs[0].Queue != "" {
					return runs, err
				}
			}
			return next.Claim(ctx, c)
		})},
		{"a claim that others did not serve takes a turn", "S34", "is in nobody's way", queueClaims(func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			c.Serves = append(slices.Clone(c.Serves), store.Served{Workflow: "another", Versions: []string{"v1"}})
			return next.Claim(ctx, c)
		})},

		// What a claim tells.
		{"does not tell which queue held runs back", "S33", "which queues held runs back", queueClaims(func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			c.Held = nil
			return next.Claim(ctx, c)
		})},
		{"tells of every queue", "S33", "which queues held runs back", queueClaims(func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			runs, err := next.Claim(ctx, c)
			for _, q := range c.Queues {
				c.Held(q.Queue, 0)
			}
			return runs, err
		})},
		{"does not tell until when", "S33", "which queues held runs back", queueClaims(func(next store.Store, ctx context.Context, c store.Claim) ([]store.Run, error) {
			if held := c.Held; held != nil {
				c.Held = func(q string, _ store.Time) { held(q, 0) }
			}
			return next.Claim(ctx, c)
		})},

		// Listings.
		{"counts one run too few ahead", "Queues", "knows how many come before it", queuesBy(func() queueing {
			return queueing{ahead: func(n int64, inLine bool) (int64, bool) { return max(0, n-1), inLine }}
		})},
		{"every run is in line", "Queues", "knows how many come before it", queuesBy(func() queueing {
			return queueing{ahead: func(n int64, _ bool) (int64, bool) { return n, true }}
		})},
		{"describes partitions by name", "Queues", "describes its longest partitions", queuesListed(func(st *store.QueueState) {
			slices.SortFunc(st.Partitions, func(a, b store.PartitionState) int { return strings.Compare(a.Name, b.Name) })
		})},
		{"shows only partitions with a line", "Queues", "a queue says what is in it", queuesListed(func(st *store.QueueState) {
			st.Partitions = slices.DeleteFunc(st.Partitions, func(p store.PartitionState) bool { return p.InLine == 0 })
		})},
		{"describes one partition", "Queues", "describes its longest partitions", queuesListed(func(st *store.QueueState) {
			st.Partitions = st.Partitions[:min(1, len(st.Partitions))]
		})},
	}
	list = append(list, lossy(reflect.TypeFor[store.Queue](), "S4", "a queue reads back", []string{"Name", "Revision", "UpdatedAt"},
		func(zero func(any)) func() func(store.Store) store.Store {
			return queuesListed(func(st *store.QueueState) { zero(&st.Queue) })
		})...)
	list = append(list, lossy(reflect.TypeFor[store.Queue](), "S35", "a queue is looked at", nil,
		func(zero func(any)) func() func(store.Store) store.Store {
			return queuesBy(func() queueing { return queueing{one: func(q *store.Queue) { zero(q) }} })
		})...)
	list = append(list, lossy(reflect.TypeFor[store.PartitionState](), "Queues", "a queue says what is in it", nil,
		func(zero func(any)) func() func(store.Store) store.Store {
			return queuesListed(func(st *store.QueueState) {
				for i := range st.Partitions {
					zero(&st.Partitions[i])
				}
			})
		})...)
	return append(list, lossy(reflect.TypeFor[store.QueueState](), "Queues", "a queue says what is in it", []string{"Queue"},
		func(zero func(any)) func() func(store.Store) store.Store {
			return queuesListed(func(st *store.QueueState) { zero(st) })
		})...)
}

// forget puts each queue without its limits, or without its rate, and, if again is set, back as
// it was.
func forget(s store.Store, again bool) {
	ctx := context.Background()
	states, err := s.(store.Queues).Queues(ctx)
	if err != nil {
		panic(err)
	}
	for _, st := range states {
		if st.Revision == 0 {
			continue
		}
		_ = s.(store.Queues).PutQueue(ctx, store.Queue{Name: st.Name, Revision: st.Revision}) // others do the same
		if st.Revision++; again {
			_ = s.(store.Queues).PutQueue(ctx, st.Queue)
		}
	}
}

// queueCreations alters the rows that are created in a store of queues.
func queueCreations(edit func(r *store.Run)) func() func(store.Store) store.Store {
	return queuesBy(func() queueing {
		return queueing{altered: altered{commit: func(next store.Store, ctx context.Context, batch []store.Change) []error {
			return creations(edit)()(next).Commit(ctx, batch)
		}}}
	})
}

// brokenQueues is broken for a store of queues.
func brokenQueues(breaks func() func(store.Store) store.Store) conformance.Harness {
	h := broken(breaks)
	h.Has = []conformance.Capability{conformance.Queues}
	return h
}

func TestTheSuiteCatchesMutantsOfQueues(t *testing.T) {
	sound := brokenQueues(queuesBy(func() queueing { return queueing{} }))
	var once sync.Map
	for _, m := range queueMutants() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			c := find(t, m.by)
			require.Contains(t, clausesOf(c), m.clause, "the case %q checks another clause", c.Title())
			failures := record(t, c.Title(), func(tb testing.TB) { c.Check(tb, brokenQueues(m.wraps)) })
			require.NotEmpty(t, failures, "%q passes", c.Title())
			require.Regexp(t, `\b`+m.clause+`\b`, strings.Join(failures, "\n"), "the clause that is broken is named")
			if _, shown := once.LoadOrStore(c.Title(), true); !shown {
				require.Empty(t, record(t, c.Title(), func(tb testing.TB) { c.Check(tb, sound) }), "a wrapping that alters nothing")
			}
		})
	}
}
