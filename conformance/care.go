package conformance

import (
	"fmt"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/store"
)

var careCases = []Case{
	{Name: "a copy of a live store is whole, and of one moment", Clauses: "Backuper, S1, S4", Needs: Backuper, hook: hookCopy, run: copyLive},
	{Name: "a copy does not take the place of anything", Clauses: "Backuper", Needs: Backuper, hook: hookCopy, run: copyRefused},
	{Name: "maintenance changes nothing and holds nobody up", Clauses: "Maintainer, S4", Needs: Maintainer, run: maintainLive},
}

// busy makes clients write to their own runs until the returned func is called. Every
// Change is a step, a priority and a message, all with the same number. acked says how
// far each has got.
func (t *T) busy(s store.Store, clients int) (acked []atomic.Int64, stop func()) {
	t.run(s, "peer")
	acked = make([]atomic.Int64, clients)
	writers := make([]*writer, clients)
	for i := range writers {
		writers[i] = t.run(s, fmt.Sprint("busy", i))
	}
	var ending atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t.together(clients, func(i int) {
			w := writers[i]
			for !ending.Load() {
				c := w.append(step("a"), step("b"))
				c.Row = &store.RowPatch{Priority: ptr(int32(w.seq + 2))}
				c.Send = []store.Message{signal("peer", fmt.Sprintf("%d.%d", i, w.seq+2))}
				if err := one(t.Context(), s, c); err != nil {
					t.Errorf("commit: %v", err)
					return
				}
				w.done(c)
				acked[i].Store(w.seq)
			}
		})
	}()
	return acked, func() { ending.Store(true); <-ended }
}

func copyLive(t *T) {
	d := t.fresh()
	s := t.handle(d)
	c, w := t.full(s, "full")
	w.must(s, c)
	acked, stop := t.busy(s, 2)
	defer stop()
	for round := range 3 {
		before := []int64{acked[0].Load(), acked[1].Load()}
		t.eventually("the writers go on", func() bool { return acked[0].Load() > before[0] && acked[1].Load() > before[1] })
		before = []int64{acked[0].Load(), acked[1].Load()}
		to, open := d.Copy()
		require.NoError(t, capabilities(s).Backuper.Backup(t.Context(), to))
		copied, err := open()
		require.NoError(t, err)
		runs := t.dump(copied)
		require.Equal(t, t.all(s, "full"), runs["full"], "S4: what did not change is in it as it is")
		messages := int64(0)
		for i := range before {
			r := runs[fmt.Sprint("busy", i)]
			n := r.Run.Last.Seq
			require.GreaterOrEqual(t, n, before[i], "S4: what was acknowledged before is in it")
			require.Equal(t, int32(n), r.Run.Priority, "S1: row and log are of one moment")
			messages += (n - 1) / 2
			t.checkLog(r.Run, r.Events)
		}
		require.Equal(t, messages, runs["peer"].Run.Inbox, "S1: other runs too")
		t.checkInbox(runs["peer"].Run, runs["peer"].Inbox)
		t.at(runs["full"].Run).steps(copied, 1)
		t.run(copied, fmt.Sprint("new", round))
		require.NoError(t, copied.Close())
	}
	stop()
	require.Len(t, t.list(s, store.Filter{IDPrefix: "new"}), 0, "a copy is apart")
}

func copyRefused(t *T) {
	d := t.fresh()
	s := t.handle(d)
	t.run(s, "r")
	to, open := d.Copy()
	b := capabilities(s).Backuper
	require.NoError(t, b.Backup(t.Context(), to))
	t.run(s, "later")
	require.ErrorIs(t, b.Backup(t.Context(), to), store.ErrInvalid, "the name is taken")
	require.ErrorIs(t, b.Backup(t.Context(), ""), store.ErrInvalid)
	copied, err := open()
	require.NoError(t, err)
	require.Equal(t, []string{"r"}, ids(t.list(copied, store.Filter{})), "the copy is as it was")
	require.NoError(t, copied.Close())
}

func maintainLive(t *T) {
	d := t.fresh()
	s := t.handle(d)
	m := capabilities(s).Maintainer
	require.NoError(t, m.Maintain(t.Context()), "with nothing to look after")
	t.shelf(s)
	t.tree(s)
	for i := range 5 {
		t.old(s, fmt.Sprint("gone", i), workflow, store.Completed, t.now())
	}
	t.remove(s, false, "gone0", "gone1", "gone2", "gone3", "gone4")
	before := t.dump(s)
	require.NoError(t, m.Maintain(t.Context()))
	require.Equal(t, before, t.dump(t.handle(d)), "S4: as it was")
	acked, stop := t.busy(s, 2)
	for range 3 {
		n := acked[0].Load()
		require.NoError(t, m.Maintain(t.Context()))
		t.eventually("a writer goes on", func() bool { return acked[0].Load() > n })
	}
	stop()
	require.NoError(t, m.Maintain(t.Context()))
}
