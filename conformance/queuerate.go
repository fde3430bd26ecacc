package conformance

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// begun collects when runs of a queue began, by the store's clock.
type begun struct {
	rate int
	per  time.Duration
	at   []store.Time
}

// add adds claimed runs; nothing wrote to their rows since but the claim.
func (b *begun) add(runs []store.Run) {
	for _, r := range runs {
		b.at = append(b.at, r.UpdatedAt)
	}
	slices.Sort(b.at)
}

// check says that no window holds more than the rate.
func (b *begun) check(t *T) {
	t.Helper()
	for i := range b.at[:max(0, len(b.at)-b.rate)] {
		if d := b.at[i+b.rate].Sub(b.at[i]); d < b.per {
			require.Fail(t, fmt.Sprintf("S33: %d runs began within %v; at most %d may within %v", b.rate+1, d, b.rate, b.per))
		}
	}
}

// after counts those that began after a moment.
func (b *begun) after(at store.Time) (n int) {
	for _, b := range b.at {
		if b > at {
			n++
		}
	}
	return n
}

// queueRate drains a queue as fast as its rate allows.
func queueRate(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	const items = 12
	b := &begun{rate: 3, per: 210 * time.Millisecond}
	t.putQueue(s, store.Queue{Name: "mail", Rate: b.rate, Per: b.per})
	t.line(s, items, "mail", "x", "y")
	n := 0
	t.eventually("S33: a queue with a rate is drained", func() bool {
		n++
		before := t.beat(s, "a").Now
		used := b.after(before.Add(-b.per))
		most := 1 + n%4
		runs := t.take([]store.Store{s, other}[n%2], "a", most, "mail")
		b.add(runs)
		if want := min(most, b.rate-used, items-len(b.at)+len(runs)); len(runs) < want {
			require.Fail(t, fmt.Sprintf("S33: %d of %d runs began in the last %v, and a claim of %d more got %d", used, b.rate, b.per, most, len(runs)))
		}
		if d.Advance != nil {
			d.Advance(b.per / 7)
		}
		return len(b.at) == items
	})
	b.check(t)
}

func queueRateRace(t *T) {
	d := t.fresh()
	handles := []store.Store{t.handle(d), t.handle(d)}
	const items, executors = 30, 6
	b := &begun{rate: 5, per: 40 * time.Millisecond}
	t.putQueue(handles[0], store.Queue{Name: "mail", Rate: b.rate, Per: b.per})
	all := t.line(handles[0], items, "mail", "x", "y", "z")
	for i := range executors {
		t.beat(handles[i%2], fmt.Sprint("e", i))
	}
	ctx := t.patient()
	var mu sync.Mutex
	t.together(executors, func(i int) {
		for ctx.Err() == nil {
			c := of(fmt.Sprint("e", i), 2, "mail")
			if i%3 == 2 {
				c.IDs = all
			}
			runs, err := handles[i%2].Claim(ctx, c)
			if err != nil {
				t.Errorf("claim: %v", err)
				return
			}
			mu.Lock()
			b.add(runs)
			complete := len(b.at) >= items
			mu.Unlock()
			if complete {
				return
			}
			if d.Advance != nil && len(runs) == 0 {
				d.Advance(time.Millisecond)
			}
		}
	})
	require.Len(t, b.at, items, "S33: all of them begin")
	b.check(t)
}

func queueRateBegins(t *T) {
	s := t.open()
	t.beat(s, "a")
	t.putQueue(s, store.Queue{Name: "mail", Rate: 2, Per: time.Hour})
	t.run(s, "resumes", in("mail", "x"), func(r *store.Run) { r.Status = store.Interrupted })
	t.run(s, "wakes", in("mail", "x"), func(r *store.Run) { r.Status, r.WakeAt = store.Waiting, 1 })
	t.line(s, 3, "mail", "x")
	require.Equal(t, []string{"mail0", "mail1", "resumes", "wakes"}, sortedIDs(t.take(s, "a", 10, "mail")), "S33: two begin")
	t.run(s, "resumes too", in("mail", "x"), func(r *store.Run) { r.Status = store.Interrupted })
	require.Equal(t, []string{"resumes too"}, ids(t.take(s, "a", 10, "mail")), "S33: who resumes begins nothing, and is not held up by who is to begin")
	require.Equal(t, int64(2), t.queue(s, "mail").Begun)
}

func queueRateJumps(t *T) {
	const year = 365 * 24 * time.Hour
	for _, jump := range []time.Duration{time.Hour, year} {
		d := t.fresh()
		s := t.handle(d)
		t.putQueue(s, store.Queue{Name: "mail", Rate: 2, Per: 10 * time.Minute})
		t.line(s, 12, "mail")
		take := func(want int, why string) {
			t.Helper()
			t.beat(s, "a")
			require.Len(t, t.take(s, "a", 10, "mail"), want, "S33: %s", why)
		}
		take(2, "the rate")
		take(0, "the rate is used up")
		d.Advance(jump)
		take(2, "the clock has gone on")
		take(0, "the rate is used up")
		d.Advance(-jump)
		now := t.beat(s, "a").Now
		take(0, "the clock has gone back: what has begun later counts as of now")
		require.GreaterOrEqual(t, t.queue(s, "mail").NextAt, now.Add(10*time.Minute), "S33")
		d.Advance(9 * time.Minute)
		take(0, "it is still in the window")
		d.Advance(2 * time.Minute)
		take(2, "a window later two more begin, however far the clock had been ahead")
		take(0, "the rate is used up")
		d.Advance(-jump - time.Hour)
		take(0, "further back than it ever was")
		d.Advance(11 * time.Minute)
		take(2, "a window later")
	}
}

func queueRateReplaced(t *T) {
	s := t.open()
	t.beat(s, "a")
	t.putQueue(s, store.Queue{Name: "mail", Rate: 3, Per: time.Hour})
	t.line(s, 12, "mail")
	require.Len(t, t.take(s, "a", 10, "mail"), 3)
	t.putQueue(s, store.Queue{Name: "mail", Rate: 5, Per: time.Hour})
	require.Len(t, t.take(s, "a", 10, "mail"), 2, "S33: those that have begun count")
	t.putQueue(s, store.Queue{Name: "mail", Rate: 2, Per: 2 * time.Hour})
	require.Empty(t, t.take(s, "a", 10, "mail"), "S33: those that have begun count")
	st := t.queue(s, "mail")
	require.Equal(t, int64(5), st.Begun)
	require.Positive(t, st.NextAt)
	t.putQueue(s, store.Queue{Name: "mail"})
	t.putQueue(s, store.Queue{Name: "mail", Rate: 4, Per: time.Hour})
	require.Zero(t, t.queue(s, "mail").Begun, "S33: a queue without a rate has forgotten them")
	require.Len(t, t.take(s, "a", 10, "mail"), 4)
}
