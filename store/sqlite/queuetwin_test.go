//go:build cgo

package sqlite_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// twins are this store and the reference, which get the same calls at the same time.
type twins struct {
	t      testing.TB
	r      *rand.Rand
	stores [2]store.Store
	logs   map[string]*log
	rows   map[string]store.Run // those that were claimed and have not ended
	parts  []string
}

func oneOf[T any](w *twins, list ...T) T { return list[w.r.IntN(len(list))] }

func (w *twins) commit(c store.Change) {
	w.t.Helper()
	for _, s := range w.stores {
		require.NoError(w.t, s.Commit(context.Background(), []store.Change{c})[0])
	}
}

func (w *twins) now() store.Time { return store.TimeOf(time.Now()) }

func (w *twins) create() {
	now := w.now()
	l, c := create(fmt.Sprintf("r%03d", len(w.logs)), func(r *store.Run) {
		r.CreatedAt = now.Add(-time.Duration(w.r.IntN(7200)) * time.Second)
		r.Queue = oneOf(w, "", "p", "q", "q", "Q")
		r.Partition = oneOf(w, w.parts...)
		r.Priority = oneOf(w, int32(0), 0, 0, 1, -1, math.MaxInt32, math.MinInt32)
		r.WakeAt = oneOf(w, store.Time(0), 0, 0, now.Add(-time.Minute), now.Add(-time.Hour), now.Add(time.Minute), now.Add(time.Hour), 1, math.MaxInt64)
		r.Status = oneOf(w, store.Pending, store.Pending, store.Pending, store.Interrupted, store.Waiting)
		r.Workflow = oneOf(w, "w", "w", "w2", "foreign")
		r.Paused = w.r.IntN(12) == 0
		r.CancelAsked = w.r.IntN(12) == 0
		if r.Status == store.Interrupted && w.r.IntN(4) == 0 {
			r.Code = oneOf(w, "not_registered", "damaged")
		}
		if w.r.IntN(20) == 0 { // alone in its queue
			r.Queue = fmt.Sprint("alone", len(w.logs))
		}
	})
	w.logs[l.run] = l
	w.commit(c)
}

func (w *twins) put() {
	q := store.Queue{
		Name: oneOf(w, "p", "q", "Q"), Max: oneOf(w, 0, 0, 3, 6, math.MaxInt), MaxPerPartition: oneOf(w, 0, 0, 1, 2, math.MaxInt), Paused: w.r.IntN(6) == 0, Reason: oneOf(w, "", "why", "no \x00 text \xff"),
	}
	if w.r.IntN(2) == 0 {
		// What is remembered for a shorter window may be forgotten by the time that it is longer.
		q.Rate, q.Per = 1+w.r.IntN(8), map[string]time.Duration{"p": time.Minute, "q": time.Hour + time.Nanosecond, "Q": math.MaxInt64}[q.Name]
	}
	for _, s := range w.stores {
		states, err := s.(store.Queues).Queues(context.Background(), q.Name)
		require.NoError(w.t, err)
		for _, st := range states {
			q.Revision = st.Revision
		}
		require.NoError(w.t, s.(store.Queues).PutQueue(context.Background(), q))
		require.ErrorIs(w.t, s.(store.Queues).PutQueue(context.Background(), q), store.ErrRevision)
	}
}

func (w *twins) claim() {
	c := store.Claim{
		Executor: "e", Max: 1 + w.r.IntN(9), AnyQueue: w.r.IntN(3) == 0, At: w.now(),
		Serves: []store.Served{{Workflow: "w", Versions: []string{"1"}}, {Workflow: "w2", Versions: []string{"0", "1"}}},
	}
	for _, name := range []string{"p", "q", "Q"} {
		if w.r.IntN(3) > 0 {
			c.Queues = append(c.Queues, store.QueueRoom{Queue: name, Max: oneOf(w, -1, -1, 2, 0)})
		}
	}
	if w.r.IntN(6) == 0 {
		for range 5 {
			c.IDs = append(c.IDs, fmt.Sprintf("r%03d", w.r.IntN(len(w.logs)+1)))
		}
	}
	var got [2][]string
	var held [2]map[string]store.Time
	for i, s := range w.stores {
		held[i] = map[string]store.Time{}
		c.Held = func(queue string, until store.Time) { held[i][queue] = until }
		runs, err := s.Claim(context.Background(), c)
		require.NoError(w.t, err)
		for _, r := range runs {
			got[i] = append(got[i], r.ID)
			w.rows[r.ID] = r
		}
	}
	require.Equal(w.t, got[0], got[1], "%+v", c)
	require.Equal(w.t, held[0], held[1], "%+v", c)
}

// end lets a claimed run end, wait, or be given up.
func (w *twins) end() {
	if len(w.rows) == 0 {
		return
	}
	var ids []string
	for id := range w.rows {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	row := w.rows[oneOf(w, ids...)]
	delete(w.rows, row.ID)
	l := w.logs[row.ID]
	l.claimed(row)
	c := store.Change{RunID: row.ID, Expect: store.Expect{Epoch: row.Epoch}, Yield: true}
	var patch store.RowPatch
	status := oneOf(w, store.Completed, store.Completed, store.Waiting, store.Interrupted)
	if status == store.Interrupted && row.Status == store.Waiting {
		status = store.Completed
	}
	patch.Status = &status
	switch status {
	case store.Completed:
		now := w.now()
		patch.EndedAt = &now
		c.Events = []store.Event{l.next(store.Event{Type: store.WorkflowCompleted, At: now})}
	case store.Waiting:
		wake := w.now().Add(oneOf(w, time.Minute, time.Hour))
		patch.WakeAt = &wake
		c.Events = []store.Event{l.step("k")}
		c.Yield = w.r.IntN(2) == 0
	default:
		c.Events = []store.Event{l.step("k")}
	}
	c.Row = &patch
	w.commit(c)
}

func (w *twins) compare() {
	var states [2][]store.QueueState
	for i, s := range w.stores {
		list, err := s.(store.Queues).Queues(context.Background())
		require.NoError(w.t, err)
		for k := range list {
			if len(list[k].Partitions) == 0 {
				list[k].Partitions = nil
			}
		}
		states[i] = list
	}
	require.Equal(w.t, states[0], states[1])
	for id := range w.logs {
		want, in, err := w.stores[0].(store.Queues).Ahead(context.Background(), id)
		require.NoError(w.t, err)
		n, inLine, err := w.stores[1].(store.Queues).Ahead(context.Background(), id)
		require.NoError(w.t, err)
		require.Equal(w.t, in, inLine, id)
		require.Equal(w.t, want, n, id)
	}
}

// Whatever the queues and the runs in line, the same runs are let in, in the same order,
// as by the reference.
func TestQueuesLetInWhatTheReferenceLetsIn(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			path := file(t)
			synctest.Test(t, func(t *testing.T) {
				ours := open(t, path, sqlite.Options{Synchronous: sqlite.Off})
				reference := memory.Open()
				t.Cleanup(func() { reference.Close() })
				w := &twins{t: t, r: rand.New(rand.NewPCG(seed, 15)), stores: [2]store.Store{reference, ours}, logs: map[string]*log{}, rows: map[string]store.Run{},
					parts: []string{"", "a", "A", "b", "é", "\U0010ffff", strings.Repeat("x", 255), "a\x01", "a "}}
				for i := range 10 * int(seed) {
					w.parts = append(w.parts, fmt.Sprint(i))
				}
				for _, s := range w.stores {
					_, err := s.Beat(t.Context(), store.Executor{ID: "e", Lease: 10 * time.Hour})
					require.NoError(t, err)
				}
				for range 30 + 20*int(seed) {
					w.create()
				}
				for step := range 160 {
					switch n := w.r.IntN(22); {
					case n < 5:
						w.create()
					case n < 7:
						w.put()
					case n < 13:
						w.claim()
					case n < 14:
						time.Sleep(time.Duration(1+w.r.IntN(60_000_000)) * time.Microsecond)
					default:
						w.end()
					}
					if step%20 == 0 {
						w.compare()
					}
				}
				w.compare()
			})
		})
	}
}
