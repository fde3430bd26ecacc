package claims

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/nudge"
	"github.com/holdfast-dev/holdfast/internal/queues"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// Claims take runs from the store, as many as there is room for, and begin to execute them.
type Claims struct {
	o         *Options
	wake      chan struct{} // something may be claimable
	recovered atomic.Bool   // Recover was called: runs of earlier processes may be claimed
	warned    atomic.Bool   // that it was not, and a run of a queue was started
	places    places
	rooms     *queues.Rooms
	alarm     queues.Alarm // when a run becomes due, or a rate lets one in
	// bulk has runs that a bulk start here has made and that may not have been claimed yet. It
	// is needed only until Recover is called: before that the loop leaves all other pending
	// runs alone.
	bulk  queue
	later queue // runs that recovery has left until there is room
	// held: the last claim has left runs in line, because their queues had no place for them. freed
	// counts the places that became free here, so that one is not missed during that claim.
	held  atomic.Bool
	freed atomic.Int64
	batch int // how many runs the next claim of the loop asks for; used by the loop only
	// orphans makes recovery look for the runs of executors that are gone. It is to look when there
	// is room again, if it was crowded: it has left some for lack of room in this process.
	orphans chan struct{}
	crowded atomic.Bool
	sieve   sieve // what the loop does not claim yet
	owned   owned
	foreign stuck.Foreign // kinds of runs that were started here, for others
	mailAt  time.Time     // see mailElsewhere
}

// New returns Claims that have not begun to take anything.
func New(o Options) *Claims {
	c := &Claims{o: &o, wake: make(chan struct{}, 1), batch: claimBatch}
	c.places.max = o.MaxRuns
	c.orphans = make(chan struct{}, 1)
	c.rooms = queues.NewRooms(o.RoomHere, o.Queues, c.room)
	c.owned.o = &o
	c.sieve = sieve{o: &o, bell: make(chan struct{}, 1)}
	return c
}

// room is called when a queue that was full in this process has room again.
func (c *Claims) room() {
	c.Wake()
	if c.crowded.Swap(false) {
		nudge.Send(c.orphans)
	}
}

// Wake makes the loop look for runs to claim.
func (c *Claims) Wake() { nudge.Send(c.wake) }

// Recovered reports whether Recover was called.
func (c *Claims) Recovered() bool { return c.recovered.Load() }

// Deferred returns the ids of the runs that are taken as soon as there is room.
func (c *Claims) Deferred() map[string]bool {
	all := c.later.all()
	for id := range c.bulk.all() {
		all[id] = true
	}
	return all
}

// Began is called when an execution begins here, because this executor may then own more
// runs.
func (c *Claims) Began() { c.owned.began.Add(1) }

// Occupy is called when the execution of a claimed run has begun, and Vacate when it has
// ended.
func (c *Claims) Occupy() { c.places.occupy() }

// Vacate is the counterpart of Occupy.
func (c *Claims) Vacate() {
	if c.places.vacate() {
		nudge.Send(c.wake) // there is room again
	}
}

// WakeAt makes the loop look for runs to claim at a time.
func (c *Claims) WakeAt(at store.Time) {
	if c.alarm.Set(at) {
		nudge.Send(c.wake) // the loop waits for a later time
	}
}

// Serves reports whether this executor takes runs from a queue; it takes those that are on none.
func (c *Claims) Serves(queue string) bool { return c.rooms.Serves(queue) }

// Enter notes that this executor has a run, and Leave that it no longer has it under this epoch:
// Queue.MaxPerProcess counts them. A run that waits, or is unloaded, is still here.
func (c *Claims) Enter(row *store.Run) { c.rooms.Enter(row) }

// Leave is the counterpart of Enter.
func (c *Claims) Leave(id string, epoch int64) { c.rooms.Leave(id, epoch) }

// Loop takes due runs whenever there may be some.
func (c *Claims) Loop(ctx context.Context) {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	for {
		if wait, ok := c.alarm.Next(c.surely()); ok {
			t.Reset(max(wait, time.Millisecond)) // its clock may be known less exactly
		} else {
			t.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-t.C:
		}
		if !c.o.Heart.AwaitLease(ctx.Done(), nil) {
			return // it could not claim anything
		}
		c.alarm.Rang(c.surely())
		if !c.recovered.Load() {
			c.takeBulk(ctx)
			continue
		}
		c.bulk.clear() // they are claimed like all others
		for ctx.Err() == nil {
			more, err := c.takeNext(ctx)
			if err != nil && ctx.Err() == nil {
				c.o.Log.Warn("durable: claiming runs failed; the next beat tries again", "executor", c.o.Executor, "error", err)
			}
			if err != nil || !more {
				break
			}
		}
	}
}

// surely returns a time that has come by the store's clock, however far off our estimate of it is.
func (c *Claims) surely() store.Time { return c.o.Heart.Clock.Surely(time.Now()) }

// takeNext takes a batch of runs as far as there is room, first those that
// recovery has left. It reports whether there may be more to take at once.
func (c *Claims) takeNext(ctx context.Context) (more bool, err error) {
	n := c.places.reserve(c.batch)
	if n == 0 {
		return false, nil // a claimed run that ends wakes the loop
	}
	defer c.places.giveBack(n)
	if c.later.waits() {
		return true, c.takeLater(ctx, n)
	}
	held, freed := false, c.freed.Load()
	sc := store.Claim{Max: n, Spare: c.sieve.spare(), Held: func(_ string, until store.Time) {
		if held = true; until != 0 {
			c.alarm.Set(until)
		}
	}}
	giveBack, kept := c.rooms.Ask(&sc)
	defer giveBack()
	if kept {
		nudge.Send(c.orphans) // those for which it is kept take it, or are gone
	}
	runs, err := c.claim(ctx, sc, &history.Claim{}, nil)
	c.held.Store(held)
	if c.batch = claimBatch; len(runs) == n {
		c.batch = min(max(2*n, claimBatch), maxClaimBatch)
	}
	return len(runs) == n || held && c.freed.Load() != freed, err
}

// Freed is called when a run of a queue has ended here, or was given up: if runs are in line for
// which there was no place, one of them may get its own. Of runs that end elsewhere the notices of
// the store tell, and the heartbeats.
func (c *Claims) Freed() {
	c.freed.Add(1)
	if c.held.Load() {
		nudge.Send(c.wake)
	}
}

// The loop claims claimBatch runs in one call, and up to maxClaimBatch while there are as many as
// it asks for: a claim of many costs less for each of them, and keeps what else is to be written
// waiting for longer.
const (
	claimBatch    = 64
	maxClaimBatch = 512
)

// admit sets aside the room that a run needs in this process if it is claimed by its id. If there is
// none, ok is false; recovery looks again when there is.
func (c *Claims) admit(row *store.Run) (giveBack func(), ok bool) {
	if giveBack, ok = c.rooms.Admit(row); !ok {
		c.crowded.Store(true)
		if giveBack, ok = c.rooms.Admit(row); ok {
			return giveBack, true // it became free in between
		}
	}
	return giveBack, ok
}

// Claim claims one run and begins to execute it; the event of the claim says what d says. v, if
// not nil, is its history as it was read just before. A run whose queue has no place for it is not
// claimed: it is in line then, as is one that has to get a place in a queue that is not served here.
func (c *Claims) Claim(ctx context.Context, id string, d *history.Claim, v *history.View) (claimed bool, err error) {
	runs, err := c.claimNamed(ctx, id, d, v)
	return len(runs) > 0, err
}

// claimNamed is Claim, and returns the execution.
func (c *Claims) claimNamed(ctx context.Context, id string, d *history.Claim, v *history.View) ([]Execution, error) {
	if c.rooms.Limits() || c.rooms.Picky() {
		row := &store.Run{}
		if v != nil {
			row = v.Row
		} else if h, err := c.o.Store.Load(ctx, id, store.Cursor{NoEvents: true}); err == nil {
			row = &h.Run
		} else {
			return nil, err
		}
		if row.Status != store.Waiting && !c.Serves(row.Queue) { // the row may be that of before it was resumed
			return nil, nil
		}
		giveBack, ok := c.admit(row)
		if !ok {
			return nil, nil
		}
		defer giveBack()
	}
	return c.claim(ctx, store.Claim{Max: 1, IDs: []string{id}}, d, v)
}

// claimIDs claims these runs and begins to execute those that it got.
func (c *Claims) claimIDs(ctx context.Context, ids []string) ([]Execution, error) {
	return c.claim(ctx, store.Claim{Max: len(ids), IDs: ids}, &history.Claim{}, nil)
}

// claim takes runs and begins to execute them; d is recorded with the claim of each. v
// may be set for a single run.
func (c *Claims) claim(ctx context.Context, sc store.Claim, d *history.Claim, v *history.View) ([]Execution, error) {
	o := c.o
	if len(o.Serves) == 0 {
		return nil, nil
	}
	o.Sign(d)
	sc.Executor, sc.Serves, sc.At, sc.Data = o.Executor, o.Serves, o.Now(), history.Encode(d)
	segments := o.segmentsOf(&sc, d)
	defer c.owned.claiming()() // a claimed run belongs to this executor before it is executed here
	defer o.Runs.Claiming()()
	created := map[string]*store.Event{}
	sc.Created = func(id string, e store.Event) { created[id] = &e }
	rows, err := o.Store.Claim(ctx, sc)
	if errors.Is(err, store.ErrNotFound) {
		// The store takes this executor for gone: send a heartbeat, and ask again.
		o.Heart.Lease.Doubt()
		switch {
		case o.Heart.AwaitLease(ctx.Done(), o.Runs.Ending()):
			rows, err = o.Store.Claim(ctx, sc)
		case o.ending():
			err = commit.ErrClosed // it sends no more heartbeats
		default:
			err = context.Cause(ctx)
		}
	}
	runs := make([]Execution, len(rows))
	loads, together := 0, o.Runs.Together()
	defer func() { together(loads) }()
	for i := range rows {
		if v == nil && created[rows[i].ID] == nil {
			loads++
		}
		c.rooms.Enter(&rows[i])
		o.hasCode(&rows[i]) // reports E1
		runs[i] = o.Runs.Begin(rows[i], segments[rows[i].ID], v, created[rows[i].ID])
	}
	return runs, err
}

// ending reports whether the engine ends its background work.
func (o *Options) ending() bool {
	select {
	case <-o.Runs.Ending():
		return true
	default:
		return false
	}
}

// segmentsOf makes the claim sc begin the segment of each run that it takes, and keep the
// segment's context in the event of the claim, which costs no write. The claim fills the
// map that it returns.
func (o *Options) segmentsOf(sc *store.Claim, d *history.Claim) map[string]*telemetry.Segment {
	segments := map[string]*telemetry.Segment{}
	sc.DataOf = func(row *store.Run) []byte {
		own := *d
		own.Version = o.Program.Pins(row)
		s := o.Tracing.BeginSegment(row, row.StartedAt != 0)
		if s == nil && own.Version == "" {
			return sc.Data
		}
		if s != nil {
			segments[row.ID] = s
			own.Segment = telemetry.Format(s.Context)
		}
		return history.Encode(&own)
	}
	return segments
}

// hasCode reports whether the code for a run of this executor is here. It logs a row that
// has lost its version (E1).
func (o *Options) hasCode(row *store.Run) bool {
	version, here := o.Program.VersionFor(row)
	if here && row.Version == "" && row.InitialVersion != "" {
		o.Log.AboutRun(slog.LevelWarn, row, "durable: E1: the row of a run names no version", slog.String("initial", row.InitialVersion), slog.String("version", version))
	}
	return here
}
