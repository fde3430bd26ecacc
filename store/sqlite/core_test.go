//go:build cgo

package sqlite_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

func TestARunFromStartToEnd(t *testing.T) {
	for name, path := range map[string]string{"file": file(t), "memory": ":memory:"} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			st := open(t, path, sqlite.Options{})
			l := start(t, st, "r")
			e := executor("e1")
			require.True(t, beat(t, st, e).Due)
			runs := claim(t, st, e)
			require.Len(t, runs, 1)
			require.Equal(t, store.Running, runs[0].Status)
			require.Equal(t, store.WorkflowStarted, runs[0].Last.Type)
			stale := *l
			l.claimed(runs[0])
			commit(t, st, l.plain(1))
			again := l.plain(3)
			commit(t, st, again)
			commit(t, st, again)
			refuse(t, st, stale.plain(1), store.ErrFenced)
			done := store.Completed
			end := store.Change{
				RunID: "r", Expect: store.Expect{Epoch: l.epoch, NoCancel: true}, Events: []store.Event{l.next(store.Event{Type: store.WorkflowCompleted})},
				Row: &store.RowPatch{Status: &done}, Yield: true, Release: true,
			}
			commit(t, st, end)
			commit(t, st, end)
			refuse(t, st, l.plain(1), store.ErrFenced)
			h, events := load(t, st, "r")
			require.Equal(t, store.Completed, h.Run.Status)
			require.Len(t, events, 7)
			sound(t, "r", events)
			page, err := st.List(t.Context(), store.Filter{WithLast: true})
			require.NoError(t, err)
			require.Len(t, page.Runs, 1)
			require.Equal(t, h.Run, page.Runs[0])
			n, err := st.Delete(t.Context(), store.Deletion{RunIDs: []string{"r", "none"}})
			require.NoError(t, err)
			require.Equal(t, 1, n)
			refuse(t, st, l.plain(1), store.ErrNotFound)
			refuse(t, st, store.Change{RunID: "none", Expect: store.Expect{Epoch: 1}, Row: &store.RowPatch{}}, store.ErrNotFound)
		})
	}
}

// A handle remembers which number a run has. When another handle deletes the
// run and creates it again, what is remembered is out of date, and found out.
func TestARunThatWasReplacedIsFoundAgain(t *testing.T) {
	path := file(t)
	a, b := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
	for name, n := range map[string]int{"autocommit": 1, "transaction": 2} {
		t.Run(name, func(t *testing.T) {
			old := start(t, a, name)
			commit(t, a, old.plain(1)) // its number is remembered now
			_, err := b.Delete(t.Context(), store.Deletion{RunIDs: []string{name}, Force: true})
			require.NoError(t, err)
			refuse(t, a, old.plain(n), store.ErrNotFound)

			old = start(t, a, name)
			commit(t, a, old.plain(1))
			_, err = b.Delete(t.Context(), store.Deletion{RunIDs: []string{name}, Force: true})
			require.NoError(t, err)
			l, c := create(name, func(r *store.Run) { r.Epoch += 1000 })
			commit(t, b, c)
			commit(t, a, l.plain(n))
			refuse(t, a, old.plain(n), store.ErrFenced)
			_, events := load(t, a, name)
			sound(t, name, events)
			require.Len(t, events, 1+n)
		})
	}
}

// In memory there is no WAL to keep readers and the writer apart.
func TestMemoryIsUsedByManyAtOnce(t *testing.T) {
	noLeak(t)
	st := open(t, ":memory:", sqlite.Options{})
	var all sync.WaitGroup
	for i := range 4 {
		run := fmt.Sprint("run-", i)
		l := start(t, st, run)
		all.Go(func() {
			for range 200 {
				if err := st.Commit(t.Context(), []store.Change{l.plain(2)})[0]; err != nil {
					t.Errorf("commit: %v", err)
					return
				}
			}
		})
		all.Go(func() {
			for range 50 {
				if _, err := st.List(t.Context(), store.Filter{WithLast: true}); err != nil {
					t.Errorf("list: %v", err)
					return
				}
				h, err := st.Load(t.Context(), run, store.Cursor{})
				if err != nil {
					t.Errorf("load: %v", err)
					return
				}
				for _, err := range h.Events {
					if err != nil {
						t.Errorf("events: %v", err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	for i := range 4 {
		_, events := load(t, st, fmt.Sprint("run-", i))
		require.Len(t, events, 401)
	}
}

// The caller may take its time over a history, and use the store meanwhile.
func TestReadingAHistoryHoldsNothing(t *testing.T) {
	for name, path := range map[string]string{"file": file(t), "memory": ":memory:"} {
		t.Run(name, func(t *testing.T) {
			st := open(t, path, sqlite.Options{Readers: 1, Synchronous: sqlite.Off})
			l := start(t, st, "r")
			commit(t, st, l.plain(1999))
			h, err := st.Load(t.Context(), "r", store.Cursor{})
			require.NoError(t, err)
			n := 0
			for _, err := range h.Events {
				require.NoError(t, err)
				if n++; n%500 == 0 && n <= 2000 {
					commit(t, st, l.plain(1))
					_, err := st.List(t.Context(), store.Filter{})
					require.NoError(t, err)
					inner, _ := load(t, st, "r")
					require.Equal(t, l.last.Seq, inner.Run.Last.Seq)
				}
			}
			require.GreaterOrEqual(t, n, 2000)
			n = 0
			for range h.Events { // a second time: as of the same moment
				n++
			}
			require.Equal(t, 2000, n)
			h, err = st.Load(t.Context(), "r", store.Cursor{Tail: 600})
			require.NoError(t, err)
			var seqs []int64
			for e, err := range h.Events {
				require.NoError(t, err)
				seqs = append(seqs, e.Seq)
			}
			require.Len(t, seqs, 600)
			require.EqualValues(t, 1405, seqs[0])
			require.EqualValues(t, 2004, seqs[599])
		})
	}
}
