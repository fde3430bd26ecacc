package conformance

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

func claimRace(t *T) {
	d := t.fresh()
	handles := []store.Store{t.handle(d), t.handle(d)}
	const items, claimers = 40, 6
	for i := range items {
		t.run(handles[0], fmt.Sprintf("r%02d", i))
	}
	for i := range claimers {
		t.beat(handles[i%2], fmt.Sprint("e", i))
	}
	ctx := t.patient()
	var mu sync.Mutex
	owner := make(map[string]string)
	t.together(claimers, func(i int) {
		executor, s := fmt.Sprint("e", i), handles[i%2]
		for {
			runs, err := s.Claim(ctx, store.Claim{Executor: executor, Serves: serves, Max: 3})
			if err != nil {
				t.Errorf("claim: %v", err)
				return
			}
			mu.Lock()
			for _, r := range runs {
				if first, double := owner[r.ID]; double {
					t.Errorf("S19: %s was given to %s and to %s", r.ID, first, executor)
				}
				owner[r.ID] = executor
			}
			complete := len(owner) == items
			mu.Unlock()
			// An empty answer may just mean that others were claiming the rest.
			if complete || len(runs) == 0 && noneDue(t, s) {
				return
			}
		}
	})
	require.Len(t, owner, items, "S19: none is lost")
	for id, executor := range owner {
		r := t.row(handles[0], id)
		require.Equal(t, executor, r.Owner)
		require.Equal(t, int64(2), r.Last.Seq, "S19: one claim event")
	}
}

func noneDue(t *T, s store.Store) bool {
	n, err := s.Count(t.Context(), store.Filter{Statuses: []store.Status{store.Pending}}, "")
	if err != nil {
		t.Errorf("count: %v", err)
	}
	return err != nil || n[""] == 0
}

// branching returns a Change that records a branch and leaves no event.
func (w *writer) branching() store.Change {
	c := w.patch(store.RowPatch{})
	c.Row, c.Branch = nil, &store.Branch{N: 1, Cutoff: 1, CreatedAt: w.t.now()}
	return c
}

// claimCreatedRace lets messages and branches come while runs are claimed: a claim that
// hands over what it has read before it locked a run hands over too little.
func claimCreatedRace(t *T) {
	d := t.fresh()
	others, s := t.handle(d), t.handle(d)
	t.beat(s, "a")
	for round := range 10 {
		const n = 16
		var names []string
		var branches [n]store.Change
		for i := range n {
			names = append(names, fmt.Sprintf("r%d-%02d", round, i))
			branches[i] = t.run(others, names[i]).branching()
		}
		var claimed []store.Run
		handed := map[string]bool{}
		branched := map[string]bool{}
		t.together(3, func(i int) {
			switch i {
			case 0:
				claim := claimOf("a", names...)
				claim.Max = n
				claim.Created = func(id string, _ store.Event) { handed[id] = true }
				var err error
				if claimed, err = s.Claim(t.Context(), claim); err != nil {
					t.Errorf("claim: %v", err)
				}
			case 1:
				for _, id := range names {
					if err := one(t.Context(), others, send(signal(id, "1"))); err != nil {
						t.Errorf("send: %v", err)
					}
				}
			default:
				for k := n - 1; k >= 0; k-- {
					err := one(t.Context(), others, branches[k])
					if branched[names[k]] = err == nil; err != nil && !isOneOf(err, store.ErrFenced) {
						t.Errorf("branch: %v", err)
					}
				}
			}
		})
		for _, r := range claimed {
			require.False(t, handed[r.ID] && r.Inbox > 0, "S41: %s was handed over, and had a message", r.ID)
			require.False(t, handed[r.ID] && branched[r.ID], "S41: %s was handed over, and had a branch", r.ID)
		}
	}
}

func claimOneRace(t *T) {
	d := t.fresh()
	handles := []store.Store{t.handle(d), t.handle(d)}
	const claimers, rounds = 6, 6
	for i := range claimers {
		t.beat(handles[i%2], fmt.Sprint("e", i))
	}
	for round := range rounds {
		id := fmt.Sprint("r", round)
		status := []store.Status{store.Pending, store.Interrupted, store.Running}[round%3]
		t.run(handles[0], id, func(r *store.Run) { r.Status = status })
		got := make([]int, claimers)
		t.together(claimers, func(i int) {
			runs, err := handles[i%2].Claim(t.Context(), claimOf(fmt.Sprint("e", i), id))
			if err != nil {
				t.Errorf("claim: %v", err)
			}
			got[i] = len(runs)
		})
		sum := 0
		for _, n := range got {
			sum += n
		}
		require.Equal(t, 1, sum, "S19: one gets it")
		require.Len(t, t.all(handles[0], id).Events, 2, "S19: one claim event")
	}
}

// claimAgainstAppends makes an executor that is believed dead go on writing while
// others claim: each append lands before the claim, or is fenced after it.
func claimAgainstAppends(t *T) {
	d := t.fresh()
	old, new := t.handle(d), t.handle(d)
	t.beat(new, "b")
	for round := range 8 {
		id := fmt.Sprint("r", round)
		w := t.run(old, id, func(r *store.Run) { r.Status, r.Owner = store.Running, "old" })
		written := w.seq
		var claimed []store.Run
		t.together(2, func(i int) {
			if i == 1 {
				var err error
				claimed, err = new.Claim(t.Context(), claimOf("b", id))
				if err != nil || len(claimed) != 1 {
					t.Errorf("S19: claim of a free run: %d, %v", len(claimed), err)
				}
				return
			}
			for range 10_000 {
				c := w.append(step("a"))
				if err := one(t.Context(), old, c); err != nil {
					if !isOneOf(err, store.ErrFenced) {
						t.Errorf("S3: %v", err)
					}
					return
				}
				w.done(c)
				written = w.seq
			}
		})
		require.Len(t, claimed, 1)
		require.Equal(t, written+1, claimed[0].Last.Seq, "S3: the claim stands behind all that was acknowledged before it")
		require.Len(t, t.all(old, id).Events, int(written)+1, "S3: and nothing behind the claim")
	}
}

func claimCut(t *T) {
	s := t.open()
	t.beat(s, "a")
	t.beat(s, "b")
	created := map[string]*writer{}
	for i := range 50 {
		id := fmt.Sprint("r", i)
		created[id] = t.run(s, id)
	}
	told := map[string]store.Run{}
	claim := func(ctx context.Context, executor string) (n int) {
		c := claimOf(executor)
		c.Max = 3
		runs, err := s.Claim(ctx, c)
		if err != nil {
			require.Empty(t, runs, "S32: an error comes without runs")
			require.Error(t, ctx.Err(), "S18: a claim fails for nothing but its context here: %v", err)
		}
		for _, r := range runs {
			_, twice := told[r.ID]
			require.False(t, twice, "S19: a run is given out once")
			require.Equal(t, executor, r.Owner, "S32: to the executor that took it")
			told[r.ID] = r
		}
		return len(runs)
	}
	for i := range 12 {
		// The first has ended when the claim begins, the others somewhere in it.
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*i)*50*time.Microsecond)
		claim(ctx, "a")
		cancel()
		if i%4 == 0 {
			claim(t.Context(), "b")
		}
	}
	for claim(t.Context(), "b") > 0 {
	}
	claim(t.Context(), "a")
	var owned []string
	for id, w := range created {
		l := t.all(s, id)
		require.Fields(t, fields{"Status": store.Running, "Epoch": w.epoch + 1}, l.Run, "S32: %s is claimed whole, and once", id)
		require.Len(t, l.Events, 2, "S32: with one event")
		require.Fields(t, fields{"Type": store.WorkflowStarted, "Seq": int64(2), "Epoch": w.epoch + 1}, l.Events[1])
		if r, ok := told[id]; ok {
			require.Equal(t, l.Run.Owner, r.Owner, "S32: a run stays with who was given it")
			require.Equal(t, l.Run.Epoch, r.Epoch, "S32: with the epoch it was taken with")
		} else {
			require.Equal(t, "a", l.Run.Owner, "S32: what nobody was told of is the executor's whose claim failed")
		}
		if l.Run.Owner == "a" {
			owned = append(owned, id)
		}
	}
	require.ElementsMatch(t, owned, ids(t.list(s, store.Filter{Owners: []string{"a"}})), "S32: where it finds them")
}
