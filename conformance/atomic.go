package conformance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

var atomicCases = []Case{
	{Name: "all parts of a change happen together", Clauses: "S1", run: atomicAll},
	{Name: "a refused change leaves nothing behind, whatever the reason", Clauses: "S1", run: atomicNothing},
	{Name: "a reader sees a change whole or not at all", Clauses: "S1", run: atomicReader},
	{Name: "a cancelled context writes nothing", Clauses: "S18", run: atomicCancelledBefore},
	{Name: "a context cancelled during a write leaves no half change", Clauses: "S1, S18", run: atomicCancelledDuring},
}

func atomicAll(t *T) {
	d := t.fresh()
	s := t.handle(d)
	c, w := t.full(s, "r")
	created, _ := t.create("new")
	created.Branch = &store.Branch{N: 2, Parent: 1, Generation: 3, Cutoff: 9, CutScope: "items[3]", Reason: "ü 🚚", CreatedAt: t.now()}
	created.Hold = []string{"new key"}
	created.Send = []store.Message{signal("r", "from new"), signal("new", "to itself")}
	t.must(s, created)
	t.must(s, c)
	for _, reader := range []store.Store{s, t.handle(d)} {
		got := t.all(reader, "r")
		require.Equal(t, stored(c), got.Events[1:])
		require.Fields(t, fields{"Status": store.Waiting, "Owner": "", "Epoch": w.epoch + 1}, got.Run)
		require.Equal(t, []store.Branch{*c.Branch}, got.Branches)
		require.Equal(t, []string{"from new", "2"}, []string{got.Inbox[0].ID, got.Inbox[1].ID})
		require.Equal(t, "1", t.all(reader, "r friend").Inbox[0].ID)
		require.Equal(t, stored(c.Start[0]), t.all(reader, "r child").Events)
		got = t.all(reader, "new")
		require.Equal(t, []store.Branch{*created.Branch}, got.Branches)
		require.Equal(t, "to itself", got.Inbox[0].ID)
	}
	for key, holder := range map[string]string{"r key": "r", "r child key": "r child", "new key": "new"} {
		err := t.tryHold(s, key)
		var occupied *store.OccupiedError
		require.ErrorAs(t, err, &occupied)
		require.Equal(t, []string{key, holder}, []string{occupied.Key, occupied.Holder})
	}
}

func atomicNothing(t *T) {
	s := t.open()
	t.scene(s)
	for _, r := range refusals() {
		bad := r.change(t, s, "bad "+r.name)
		before := t.dump(s)
		err := t.commit(s, bad)
		require.ErrorIs(t, err, r.want, r.name)
		require.NotEmpty(t, err.Error())
		require.Equal(t, before, t.dump(s), "S1: refused (%s), but something changed", r.name)
		t.requireUntouched(s, before, bad, r.name)
	}
}

// atomicReader writes the same value to the row, an event and a message while
// others read. Row and inbox of a Load are as of one moment; events may be newer.
func atomicReader(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	w := t.run(s, "r")
	const rounds = 40
	done := make(chan struct{})
	t.together(3, func(i int) {
		if i == 0 {
			defer close(done)
			for n := 1; n <= rounds; n++ {
				c := w.append(step(fmt.Sprint(n)))
				c.Row = &store.RowPatch{Priority: ptr(int32(n))}
				c.Send = []store.Message{signal("r", fmt.Sprint(n))}
				if err := one(t.Context(), s, c); err != nil {
					t.Errorf("write %d: %v", n, err)
					return
				}
				w.done(c)
			}
			return
		}
		reader := []store.Store{s, other}[i%2]
		for {
			h, err := reader.Load(t.Context(), "r", store.Cursor{})
			if err != nil {
				t.Errorf("load: %v", err)
				return
			}
			n := int64(h.Run.Priority)
			if h.Run.Inbox != n || len(h.Inbox) != int(n) || h.Run.Last == nil || h.Run.Last.Seq != n+1 {
				t.Errorf("S1: row %d, inbox %d with %d messages, last event %+v", n, h.Run.Inbox, len(h.Inbox), h.Run.Last)
				return
			}
			var last int64
			for e, err := range h.Events {
				if err != nil || e.Seq != last+1 {
					t.Errorf("S3: event %d behind %d, %v", e.Seq, last, err)
					return
				}
				last = e.Seq
			}
			if last < n+1 {
				t.Errorf("S4: the row is %d, but the events end at %d", n, last)
				return
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
}

func atomicCancelledBefore(t *T) {
	s := t.open()
	w := t.run(s, "r", func(r *store.Run) { r.Status = store.Running })
	t.beat(s, "a")
	t.run(s, "free")
	before := t.dump(s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	created, _ := t.create("new")
	for i, err := range s.Commit(ctx, []store.Change{w.append(step("a")), created, send(signal("free", "1"))}) {
		require.ErrorIs(t, err, context.Canceled, "change %d", i)
	}
	require.ErrorIs(t, one(ctx, s, w.end(store.Completed)), context.Canceled)
	_, err := s.Claim(ctx, claimOf("a"))
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Beat(ctx, store.Executor{ID: "b", Lease: longLease})
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Delete(ctx, store.Deletion{RunIDs: []string{"free"}, Force: true})
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.List(ctx, store.Filter{})
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Count(ctx, store.Filter{}, "")
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Executors(ctx)
	require.ErrorIs(t, err, context.Canceled)
	if h, err := s.Load(ctx, "r", store.Cursor{}); err != nil {
		require.ErrorIs(t, err, context.Canceled)
	} else {
		for _, err = range h.Events {
		}
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Equal(t, before, t.dump(s))
	require.False(t, t.live(s, "b"))
}

func atomicCancelledDuring(t *T) {
	d := t.fresh()
	s := t.handle(d)
	w := t.run(s, "r")
	t.run(s, "friend")
	messages := int64(0)
	for i := range 60 {
		c := w.append(step(fmt.Sprint(i)), step("second"))
		if i%2 == 0 {
			c.Row = &store.RowPatch{Priority: ptr(int32(c.Events[1].Seq))}
			c.Send = []store.Message{signal("friend", fmt.Sprint(i))}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.N(1500))*time.Microsecond)
		err := one(ctx, s, c)
		cancel()
		got := t.all(s, "r")
		switch n := int64(len(got.Events)); {
		case n == w.seq:
			require.Error(t, err, "S4: acknowledged and lost")
			require.Equal(t, messages, t.row(s, "friend").Inbox, "S1: a message of a change that was not done")
		case n == c.Events[1].Seq:
			// It was carried out, but the caller may not know that; sending it again
			// must settle the question.
			require.NoError(t, one(t.Context(), s, c), "S6: sent again, after %v", err)
			w.done(c)
			messages += int64(len(c.Send))
			require.Equal(t, messages, t.row(s, "friend").Inbox, "S1: the message of a change that was done")
			if c.Row != nil {
				require.Equal(t, *c.Row.Priority, got.Run.Priority, "S1: the row of a change that was done")
			}
		default:
			require.Fail(t, "S18: half a change", "the log has %d events, before it had %d", n, w.seq)
		}
	}
	require.NoError(t, one(t.Context(), s, w.append(step("the handle is as good as before"))))
}
