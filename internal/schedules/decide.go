package schedules

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/calendar"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/store"
)

// onTime is how late a fire may be looked at without counting as missed. It is longer
// than a lease, so that what a process that was killed should have fired is not missed when
// another one is there.
const onTime = time.Minute

// manyMissed is how many missed fires are counted exactly.
const manyMissed = 10_000

// decision is what a look at a schedule comes to.
type decision struct {
	// cancel are the runs that are to be cancelled, for the fires that are held.
	cancel []string
	// missed fires, of which none is started.
	missed int64
	// skipped fires.
	skipped []Fire
	// more: there are further fires to decide now.
	more bool
}

// decide decides what becomes of the fires that are due, and changes r accordingly: the
// fires to be started are in Decided afterwards, which must be empty before. None of r.Live
// has ended, unless runs may overlap, where that does not matter.
//
// For example, with OverlapQueue and MissedOnce, hourly, settled up to 01:00, looked at at
// 04:00:20 while the run of 01:00 is live: 02:00 and 03:00 are missed, and 04:00 is held. Once
// the run has ended, 04:00 is decided.
func (r *Record) decide(name string, c *calendar.Calendar, now store.Time) (d decision) {
	if r.Paused != nil {
		return d
	}
	d.release(r, name)
	fires, missed, last, more := r.dueFires(name, c, now)
	d.more = more
	if missed > 0 {
		d.missed = missed
		r.remember(Fire{At: last, Outcome: MissedFire, Count: missed})
	}
	for _, at := range fires {
		d.fire(r, name, at)
	}
	if r.Definition.Overlap == OverlapCancel && len(r.Held) > 0 {
		d.cancel = slices.Clone(r.Live)
	}
	return d
}

// release decides the first of the fires that are held, if it waits for nothing any more.
func (d *decision) release(r *Record, name string) {
	if len(r.Held) > 0 && (len(r.Live) == 0 || r.Definition.Overlap == OverlapAllow) {
		at := r.Held[0]
		r.Held = slices.Delete(r.Held, 0, 1)
		r.start(name, at)
	}
}

func (r *Record) start(name string, at store.Time) {
	id := RunID(name, at)
	r.Decided = append(r.Decided, Decided{At: at, RunID: id})
	r.watch(name, id)
}

// fire decides one fire.
func (d *decision) fire(r *Record, name string, at store.Time) {
	skip := func(at store.Time, why string) {
		f := Fire{At: at, Outcome: Skipped, Why: why}
		r.remember(f)
		d.skipped = append(d.skipped, f)
	}
	policy := r.Definition.Overlap
	if policy == OverlapAllow || len(r.Live) == 0 && len(r.Held) == 0 {
		r.start(name, at)
		return
	}
	before := "a fire before it waits for its run"
	if len(r.Live) > 0 {
		before = "run " + r.Live[0] + " has not ended"
	}
	switch {
	case policy == OverlapSkip:
		skip(at, before)
	case policy == OverlapCancel:
		for _, held := range r.Held {
			skip(held, "the fire of "+at.Time().Format(time.RFC3339Nano)+" takes its place")
		}
		r.Held = []store.Time{at}
	case len(r.Held) >= maxHeld:
		skip(at, fmt.Sprintf("%s %s before it; %s", count.Of(len(r.Held), "fire"), count.Verb(len(r.Held), "waits", "wait"), before))
	default:
		r.Held = append(r.Held, at)
	}
}

// dueFires returns the fires that are due and not missed, in order, how many were missed and
// the last of those, and moves Settled past all of them. more: some are left for the next
// decision.
func (r *Record) dueFires(name string, c *calendar.Calendar, now store.Time) (fires []store.Time, missed int64, last store.Time, more bool) {
	def := &r.Definition
	// What is not after cutoff is due and late, whatever its jitter.
	cutoff := now.Add(-onTime - def.jitter())
	keep := def.Missed.keep()
	n := c.Count(r.Settled.Time(), cutoff.Time(), manyMissed+1)
	if keep < 0 && n > 0 {
		for _, at := range c.First(batch, r.Settled.Time(), cutoff.Time()) {
			fires = append(fires, store.TimeOf(at))
		}
		r.Settled = fires[len(fires)-1]
		return fires, 0, 0, true
	}
	// The rest is looked at one by one, as far as it is due.
	from := max(r.Settled, cutoff)
	var late []store.Time
	for at := c.Next(from.Time()); !at.IsZero(); at = c.Next(at) {
		due := def.dueAt(name, c, at)
		if due > now {
			break
		}
		if len(fires)+len(late) == batch {
			more = true
			break
		}
		if now.Sub(due) > onTime && keep >= 0 {
			late = append(late, store.TimeOf(at))
		} else {
			fires = append(fires, store.TimeOf(at))
		}
	}
	// Of the late ones the latest are kept, and one more is read, to name the last that is
	// not.
	var candidates []store.Time
	if n > 0 {
		for _, at := range c.Last(keep+1, r.Settled.Time(), cutoff.Time()) {
			candidates = append(candidates, store.TimeOf(at))
		}
	}
	candidates = append(candidates, late...)
	for _, decided := range [][]store.Time{fires, candidates} {
		if len(decided) > 0 {
			r.Settled = max(r.Settled, decided[len(decided)-1])
		}
	}
	kept := candidates[len(candidates)-min(max(keep-len(fires), 0), len(candidates)):]
	if lost := candidates[:len(candidates)-len(kept)]; len(lost) > 0 {
		missed, last = int64(n+len(late)-len(kept)), lost[len(lost)-1]
	}
	fires = append(fires, kept...)
	slices.Sort(fires)
	return fires, missed, last, more
}
