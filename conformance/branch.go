package conformance

import (
	"fmt"
	"math"

	"github.com/holdfast-dev/holdfast/store"
)

var branchCases = []Case{
	{Name: "a branch is recorded together with its event", Clauses: "S1, S4", run: branchRecorded},
	{Name: "a branch that is there already is refused", Clauses: "S26", run: branchTwice},
	{Name: "a history holds the lineage of a branch", Clauses: "S4", run: branchLineage},
	{Name: "a cut in a scope keeps what is beside it", Clauses: "S4", run: branchScope},
	{Name: "a root branch begins in the change that closes what was before", Clauses: "S1, S4", run: branchRoot},
	{Name: "a part of a history is read by number and from the end", Clauses: "S4", run: branchCursor},
	{Name: "a branch whose record is lost is one of its own", Clauses: "S4", run: branchLost},
}

func branchRecorded(t *T) {
	d := t.fresh()
	s := t.handle(d)
	w := t.run(s, "r")
	t.run(s, "other")
	w.steps(s, 3)
	var want []store.Branch
	for n := int32(1); n <= 3; n++ {
		b := store.Branch{N: n, Parent: n - 1, Generation: n * 2, Cutoff: w.seq, CutScope: fmt.Sprintf("items[%d]/ü 🚚", n), Reason: "because 'of' \"it\"", CreatedAt: t.now()}
		c := w.append(store.Event{Type: store.WorkflowRecovered, Branch: n})
		c.Branch, c.Row = &b, &store.RowPatch{Branch: &n, Generation: &b.Generation}
		w.must(s, c)
		want = append(want, b)
	}
	for _, reader := range []store.Store{s, t.handle(d)} {
		got := t.all(reader, "r")
		require.Equal(t, want, got.Branches)
		require.Equal(t, []int32{3, 6}, []int32{got.Run.Branch, got.Run.Generation})
		require.Empty(t, t.all(reader, "other").Branches)
	}
}

// tree writes a log of three branches: 0 up to event 8, 1 cut from 0 at 5, 2 cut from 1
// at 10; and an abandoned one, 3, cut from 0 at 2.
func (t *T) tree(s store.Store) *writer {
	t.Helper()
	w := t.run(s, "r")
	grow := func(branch int32, n int) {
		for range n {
			e := step(fmt.Sprint("s", w.seq+1))
			e.Branch = branch
			w.must(s, w.append(e))
		}
	}
	cut := func(b store.Branch) {
		e := store.Event{Type: store.WorkflowRecovered, Branch: b.N}
		c := w.append(e)
		c.Branch, c.Row = &b, &store.RowPatch{Branch: &b.N}
		w.must(s, c)
	}
	grow(0, 7)                                     // 2 to 8
	cut(store.Branch{N: 1, Parent: 0, Cutoff: 5})  // 9
	grow(1, 3)                                     // 10 to 12
	cut(store.Branch{N: 2, Parent: 1, Cutoff: 10}) // 13
	grow(2, 2)                                     // 14, 15
	cut(store.Branch{N: 3, Parent: 0, Cutoff: 2})  // 16
	w.must(s, w.patch(store.RowPatch{Branch: ptr(int32(2))}))
	grow(2, 1) // 17
	return w
}

func branchLineage(t *T) {
	s := t.open()
	t.tree(s)
	for branch, want := range map[int32][]int64{
		0: {1, 2, 3, 4, 5, 6, 7, 8},
		1: {1, 2, 3, 4, 5, 9, 10, 11, 12},
		2: {1, 2, 3, 4, 5, 9, 10, 13, 14, 15, 17},
		3: {1, 2, 16},
	} {
		require.Equal(t, want, seqs(t.load(s, "r", store.Cursor{Branch: &branch}).Events), "branch %d", branch)
	}
	require.Equal(t, []int64{1, 2, 3, 4, 5, 9, 10, 13, 14, 15, 17}, seqs(t.load(s, "r", store.Cursor{}).Events), "the current branch is 2")
	require.Len(t, t.all(s, "r").Events, 17)
	h := t.load(s, "r", store.Cursor{Branch: ptr(int32(3))})
	require.Equal(t, int64(17), h.Run.Last.Seq, "Last is of the whole log")
	require.Len(t, h.Branches, 3, "and the branches are all there")
}

func branchScope(t *T) {
	s := t.open()
	w := t.run(s, "r")
	for _, key := range []string{"items[3]/a", "items[31]/a", "items[3]", "items[3]/b/c", "z", "items[3]#2"} {
		w.must(s, w.append(step(key))) // 2 to 7
	}
	c := w.append(store.Event{Type: store.Edited, Key: "items[31]/a", Branch: 1}) // 8
	c.Branch, c.Row = &store.Branch{N: 1, Cutoff: 2, CutScope: "items[3]"}, &store.RowPatch{Branch: ptr(int32(1))}
	w.must(s, c)
	require.Equal(t, []int64{1, 2, 3, 6, 7, 8}, seqs(t.load(s, "r", store.Cursor{}).Events))
	e := step("items[31]/b")
	e.Branch = 1
	w.must(s, w.append(e))                                              // 9
	c = w.append(store.Event{Type: store.WorkflowRecovered, Branch: 2}) // 10
	c.Branch, c.Row = &store.Branch{N: 2, Parent: 1, Cutoff: 2, CutScope: "items[31]"}, &store.RowPatch{Branch: ptr(int32(2))}
	w.must(s, c)
	require.Equal(t, []int64{1, 2, 6, 7, 8, 10}, seqs(t.load(s, "r", store.Cursor{}).Events), "both cuts hold, and branch 1 begins with what has made it")
}

// A run that continues: one change ends one branch and begins another, whose parent is
// not older and so does not count.
func branchRoot(t *T) {
	d := t.fresh()
	s := t.handle(d)
	w := t.run(s, "r")
	var want []store.Branch
	for n := int32(1); n <= 3; n++ {
		w.must(s, w.append(store.Event{Type: store.StepCompleted, Key: "s", Attempt: 1, Ordinal: 1, Branch: n - 1}))
		b := store.Branch{N: n, Parent: n, Generation: n, Cutoff: w.seq + 1, Reason: "continued", CreatedAt: t.now()}
		c := w.append(store.Event{Type: store.WorkflowContinued, Branch: n - 1}, store.Event{Type: store.WorkflowStarted, Branch: n})
		c.Branch, c.Row, c.Expect.NoCancel = &b, &store.RowPatch{Branch: &n, Generation: &n, Strikes: ptr(int32(0))}, true
		w.must(s, c)
		want = append(want, b)
	}
	for _, reader := range []store.Store{s, t.handle(d)} {
		require.Equal(t, want, t.all(reader, "r").Branches)
		for branch, seen := range map[int32][]int64{0: {1, 2, 3}, 1: {4, 5, 6}, 2: {7, 8, 9}, 3: {10}} {
			require.Equal(t, seen, seqs(t.load(reader, "r", store.Cursor{Branch: &branch}).Events), "branch %d", branch)
		}
		h := t.load(reader, "r", store.Cursor{After: 9})
		require.Equal(t, []int64{10}, seqs(h.Events))
		require.Equal(t, []int32{3, 3}, []int32{h.Run.Branch, h.Run.Generation})
	}
	asked := w.append(store.Event{Type: store.WorkflowContinued, Branch: 3}, store.Event{Type: store.WorkflowStarted, Branch: 4})
	asked.Branch, asked.Expect.NoCancel = &store.Branch{N: 4, Parent: 4, Generation: 4}, true
	t.must(s, send(store.Message{To: "r", Kind: store.KindCancel, ID: "cancel", At: 1}))
	require.ErrorIs(t, t.commit(s, asked), store.ErrCancelAsked)
	require.Equal(t, want, t.all(s, "r").Branches, "a refused change begins nothing")
}

func branchCursor(t *T) {
	s := t.open()
	t.tree(s)
	current := []int64{1, 2, 3, 4, 5, 9, 10, 13, 14, 15, 17}
	var whole []int64
	for seq := int64(1); seq <= 17; seq++ {
		whole = append(whole, seq)
	}
	for _, all := range []bool{false, true} {
		line := current
		if all {
			line = whole
		}
		for _, after := range []int64{math.MinInt64, -1, 0, 1, 5, 8, 16, 17, 99, math.MaxInt64 - 1, math.MaxInt64} {
			for _, tail := range []int{0, 1, 3, 11, 99, math.MaxInt} {
				var want []int64
				for _, seq := range line {
					if seq > after {
						want = append(want, seq)
					}
				}
				if tail > 0 && len(want) > tail {
					want = want[len(want)-tail:]
				}
				c := store.Cursor{After: after, Tail: tail, All: all}
				require.Equal(t, want, seqs(t.load(s, "r", c).Events), "%+v", c)
			}
		}
	}
	h := t.load(s, "r", store.Cursor{NoEvents: true, All: true})
	require.Empty(t, h.Events)
	require.Equal(t, int64(17), h.Run.Last.Seq, "Last comes without events too")
}

// branchLost is about a log that is damaged: what is read of it is what store.LineageOf says.
func branchLost(t *T) {
	s := t.open()
	w := t.run(s, "r")
	of := map[int32][]int64{0: {1}}
	for n := range int64(200) {
		branch := int32(n % 2)
		e := step(fmt.Sprint("s", n))
		e.Branch = branch
		c := w.append(e)
		of[branch] = append(of[branch], c.Events[0].Seq)
		w.must(s, c)
	}
	for branch, line := range of {
		for _, tail := range []int{1, 2, 7, 70, 99, 1000} {
			want := line[max(0, len(line)-tail):]
			require.Equal(t, want, seqs(t.load(s, "r", store.Cursor{Branch: &branch, Tail: tail}).Events), "the last %d of branch %d", tail, branch)
		}
	}
}

func branchTwice(t *T) {
	s := t.open()
	w := t.run(s, "r")
	other := t.run(s, "other")
	branch := func(w *writer, reason string) store.Change {
		c := w.append(store.Event{Type: store.WorkflowRecovered, Branch: 1})
		c.Branch, c.Row = &store.Branch{N: 1, Cutoff: 1, Reason: reason, CreatedAt: t.now()}, &store.RowPatch{Branch: ptr(int32(1))}
		return c
	}
	first := branch(w, "first")
	w.must(s, first)
	before := t.dump(s)
	second := branch(w, "second")
	second.Send, second.Hold = []store.Message{signal("other", "1")}, []string{"desk"}
	require.ErrorIs(t, t.commit(s, second), store.ErrInvalid, "S26: the run has a branch 1")
	require.Equal(t, before, t.dump(s), "S26: nothing changed")
	require.NoError(t, t.tryHold(s, "desk"), "S26: nothing changed")
	mate := other.append(step("mate"))
	errs := s.Commit(t.Context(), []store.Change{branch(w, "third"), mate})
	require.Len(t, errs, 2)
	require.ErrorIs(t, errs[0], store.ErrInvalid, "S26: in a batch, too")
	require.NoError(t, errs[1], "S2: and the other member is carried out")
	other.done(mate)
	other.must(s, branch(other, "of another run"))
	t.must(s, first) // S6
}
