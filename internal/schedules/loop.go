package schedules

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/calendar"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/store"
)

// Options are what a Keeper works with.
type Options struct {
	Store     store.Store
	Schedules store.Schedules
	Engine    Engine
	By        string // the id of the executor
	Log       *slog.Logger
	// Poll is how long the loop sleeps at most.
	Poll time.Duration
	// Fired measures fires by outcome, and Delay how late a run was started.
	Fired func(workflow string, outcome Outcome, n int64)
	Delay func(workflow string, late time.Duration)
}

// Engine starts and cancels runs.
type Engine interface {
	// StartFires starts the runs of fires of a schedule that do not exist yet. err says
	// that the store did not answer, or that the engine is closing: it is not known which
	// were started. It is an *UnreadableError if this program cannot start them.
	StartFires(ctx context.Context, name string, d *Definition, fires []Decided) (Starts, error)
	// Cancel asks a run to end. It is no error if it has.
	Cancel(ctx context.Context, runID, reason string) error
}

// Starts is what became of fires that were to be started.
type Starts struct {
	Started, Existing int
	Refused           map[string]error // by run id
	RunIDs            []string         // that were started, in the order of their times
}

// A Keeper looks after the schedules of a store for one engine.
type Keeper struct {
	o Options
	// latest is the latest time that the store has said.
	latest store.Time
	// unreadable are schedules that this program cannot fire, such as for want of a key.
	unreadable map[string]unreadable
	none       bool // the store had no schedules at the last look
}

// unreadable is a revision that this program cannot fire. It is tried again, because a
// key that cannot be had may come.
type unreadable struct {
	revision int64
	again    time.Time
}

// NewKeeper returns a Keeper.
func NewKeeper(o Options) *Keeper { return &Keeper{o: o, unreadable: map[string]unreadable{}} }

// dueAtOnce is how many schedules are read at a time.
const dueAtOnce = 100

// minHeldPoll is how soon a fire that is held is looked at again at the earliest. It is a
// tenth of the time that it has waited, up to Poll.
const minHeldPoll = time.Second

// unused is how many times Poll a store is left alone that has no schedules, as most have
// none: who declares the first one looks at once.
const unused = 4

// Loop fires what is due until ctx ends.
func (k *Keeper) Loop(ctx context.Context) {
	failed := time.Duration(0)
	if err := k.rewind(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrClosed) {
		k.o.Log.Warn("durable: schedules could not be looked at; it is tried again", "error", err)
		failed = time.Millisecond // it is said once
	}
	for ctx.Err() == nil {
		wait, err := k.pass(ctx)
		switch {
		case err == nil:
			failed = 0
		case ctx.Err() != nil, errors.Is(err, store.ErrClosed):
			return
		default:
			if failed == 0 {
				k.o.Log.Warn("durable: schedules could not be looked at; it is tried again", "error", err)
			}
			failed = min(max(2*failed, time.Second), k.o.Poll)
			wait = failed
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
}

// pass looks at what is due, and returns how long there is nothing to do. It sleeps by our
// clock and asks the store's: if the two disagree, it looks too often, and never too late
// by more than Poll.
func (k *Keeper) pass(ctx context.Context) (time.Duration, error) {
	if k.none {
		if all, err := k.o.Schedules.Schedules(ctx); err != nil || len(all) == 0 {
			return unused * k.o.Poll, err
		}
		k.none = false
	}
	limit := dueAtOnce + len(k.unreadable)
	began := time.Now()
	due, err := k.o.Schedules.DueSchedules(ctx, limit)
	if err != nil {
		return 0, err
	}
	if due.Now < k.latest.Add(-farAhead) {
		if err := k.rewind(ctx); err != nil {
			return 0, err
		}
	}
	k.latest = due.Now
	var errs []error
	for i := range due.Due {
		if err := k.look(ctx, &due.Due[i], due.Now); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	readable := 0
	for i := range due.Due {
		if !k.passesBy(&due.Due[i]) {
			readable++
		}
	}
	if readable > 0 {
		return 0, nil // time has passed, and there may be more
	}
	wait := k.o.Poll
	if due.Next == 0 && len(due.Due) == 0 {
		all, err := k.o.Schedules.Schedules(ctx)
		if err != nil {
			return 0, err
		}
		k.none = len(all) == 0
	}
	if due.Next != 0 {
		wait = min(wait, max(due.Next.Sub(due.Now)-time.Since(began), time.Millisecond))
	}
	return wait, nil
}

// read decodes a schedule; ok is false if this program cannot read it. It says so once for
// each revision.
func (k *Keeper) read(sc *store.Schedule) (r *Record, c *calendar.Calendar, ok bool) {
	r, c, err := decode(sc)
	if err != nil {
		k.cannotRead(sc, err)
	}
	return r, c, err == nil
}

func (k *Keeper) cannotRead(sc *store.Schedule, err error) {
	if k.unreadable[sc.Name].revision != sc.Revision {
		k.o.Log.Warn("durable: a schedule cannot be fired by this program; it is left to others", "schedule", sc.Name, "error", err)
	}
	k.unreadable[sc.Name] = unreadable{sc.Revision, time.Now().Add(k.o.Poll)}
}

// passesBy reports whether a schedule is not looked at for now, because this program could not
// fire it.
func (k *Keeper) passesBy(sc *store.Schedule) bool {
	u, ok := k.unreadable[sc.Name]
	return ok && u.revision == sc.Revision && time.Now().Before(u.again)
}

// UnreadableError says that this program cannot start the runs of a schedule, such as for
// want of a key, whereas another one might.
type UnreadableError struct{ Err error }

func (e *UnreadableError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UnreadableError) Unwrap() error { return e.Err }

// look brings a schedule up to now: it starts what is decided, settles that, and decides
// what is next. Of very many fires it starts a batch, and leaves the rest to the next look, so that the other
// schedules have their turns. When another engine or an operator was faster, it leaves
// the rest to them.
func (k *Keeper) look(ctx context.Context, sc *store.Schedule, now store.Time) error {
	if k.passesBy(sc) {
		return nil
	}
	r, c, ok := k.read(sc)
	if !ok {
		return nil
	}
	for first := true; ; first = false {
		started, err := k.startDecided(ctx, sc, r)
		if bad := (*UnreadableError)(nil); errors.As(err, &bad) {
			k.cannotRead(sc, err)
			return nil
		}
		if err != nil {
			return err
		}
		asked, err := k.forgetEnded(ctx, r)
		if err != nil {
			return err
		}
		d := r.decide(sc.Name, c, now)
		stored, err := k.o.Schedules.PutSchedule(ctx, r.encode(k.o.By, sc.Name, sc.Revision, k.dueAfter(sc, r, c, now, d.more)))
		if errors.Is(err, store.ErrRevision) {
			return nil
		}
		if err != nil {
			return err
		}
		*sc = stored
		delete(k.unreadable, sc.Name)
		k.report(sc.Name, r, c, now, started, &d)
		for _, id := range d.cancel {
			if asked[id] {
				continue
			}
			if err := k.o.Engine.Cancel(ctx, id, "schedule "+sc.Name+" starts a run in its place"); err != nil && ctx.Err() == nil {
				k.o.Log.Warn("durable: a schedule could not cancel the run before; it is tried again", "schedule", sc.Name, "run", id, "error", err)
			}
		}
		if len(r.Decided) == 0 || !first && d.more {
			return nil
		}
	}
}

// dueAfter returns when a schedule is due after a decision.
func (k *Keeper) dueAfter(sc *store.Schedule, r *Record, c *calendar.Calendar, now store.Time, more bool) store.Time {
	if more {
		return max(now, 1)
	}
	poll := minHeldPoll
	if len(r.Held) > 0 {
		poll = min(max(now.Sub(r.Held[0])/10, minHeldPoll), max(k.o.Poll, minHeldPoll))
	}
	return r.due(sc.Name, c, now, poll)
}

// startDecided starts the runs of the fires that are decided, and settles them in r.
func (k *Keeper) startDecided(ctx context.Context, sc *store.Schedule, r *Record) ([]Fire, error) {
	if len(r.Decided) == 0 {
		return nil, nil
	}
	starts, err := k.o.Engine.StartFires(ctx, sc.Name, &r.Definition, r.Decided)
	if err != nil {
		return nil, err
	}
	var fires []Fire
	for _, decided := range r.Decided {
		f := Fire{At: decided.At, RunID: decided.RunID, Outcome: Started}
		if err := starts.Refused[f.RunID]; err != nil {
			r.unwatch(func(id string) bool { return id == f.RunID })
			f.Outcome, f.Why = Refused, guard.Text(err.Error(), maxWhy)
		}
		r.remember(f)
		fires = append(fires, f)
	}
	r.Decided = nil
	return fires, nil
}

// forgetEnded removes from the live runs those that have ended. asked are those of the others that are to be
// cancelled. While runs may overlap, nobody asks for them until there are many: they are kept for the
// day on which the policy becomes another one.
func (k *Keeper) forgetEnded(ctx context.Context, r *Record) (asked map[string]bool, err error) {
	if r.Definition.Overlap == OverlapAllow && len(r.Live) < maxLive/2 {
		return nil, nil
	}
	return r.forgetEnded(ctx, k.o.Store)
}

// forgetEnded is Keeper.forgetEnded under any policy. What is decided and not started yet has not ended.
func (r *Record) forgetEnded(ctx context.Context, st store.Store) (asked map[string]bool, err error) {
	if len(r.Live) == 0 {
		return nil, nil
	}
	live := map[string]bool{}
	asked = map[string]bool{}
	f := store.Filter{IDs: r.Live, Limit: len(r.Live)}
	for {
		page, err := st.List(ctx, f)
		if err != nil {
			return nil, err
		}
		for i := range page.Runs {
			row := &page.Runs[i]
			live[row.ID], asked[row.ID] = !row.Status.Terminal(), row.CancelAsked
		}
		if f.After = page.Next; f.After == "" {
			break
		}
	}
	for _, d := range r.Decided {
		live[d.RunID] = true
	}
	r.unwatch(func(id string) bool { return !live[id] })
	return asked, nil
}

// report logs and counts what became of fires.
func (k *Keeper) report(name string, r *Record, c *calendar.Calendar, now store.Time, started []Fire, d *decision) {
	def := &r.Definition
	for _, f := range started {
		k.o.Fired(def.Workflow, f.Outcome, 1)
		if f.Outcome == Refused {
			k.o.Log.Warn("durable: a schedule could not start its run", "schedule", name, "run", f.RunID, "reason", f.Why)
			continue
		}
		late := max(now.Sub(def.dueAt(name, c, f.At.Time())), 0)
		k.o.Delay(def.Workflow, late)
		k.o.Log.Info("durable: a schedule has started its run", "schedule", name, "run", f.RunID, "late_ms", late.Milliseconds())
	}
	for _, f := range d.skipped {
		k.o.Fired(def.Workflow, Skipped, 1)
		k.o.Log.Info("durable: a schedule has skipped a fire", "schedule", name, "at", f.At.Time(), "reason", f.Why)
	}
	if d.missed > 0 {
		k.o.Fired(def.Workflow, MissedFire, d.missed)
		k.o.Log.Warn("durable: fires of a schedule were missed, because no engine was there", "schedule", name, "missed", d.missed)
	}
}

// farAhead is how far ahead of the store's clock a schedule may be settled. It is less after
// every fire; more shows that the clock was ahead. Less than a day is waited for, so
// that a clock that is set back by an hour repeats nothing.
const farAhead = 24 * time.Hour

// rewind sets back the schedules that were settled while the store's clock was far ahead of
// what it says now: they would not fire until it is there again. Of the times up to
// then, those that were fired have their runs.
func (k *Keeper) rewind(ctx context.Context) error {
	now, err := k.o.Schedules.DueSchedules(ctx, 0)
	if err != nil {
		return err
	}
	list, err := k.o.Schedules.Schedules(ctx)
	if err != nil {
		return err
	}
	for i := range list {
		sc := &list[i]
		r, c, ok := k.read(sc)
		if !ok || r.Settled <= now.Now.Add(farAhead) {
			continue
		}
		settled := r.Settled
		r.Settled = now.Now
		r.Held = slices.DeleteFunc(r.Held, func(at store.Time) bool { return at > now.Now }) // they come again
		_, err := k.o.Schedules.PutSchedule(ctx, r.encode(k.o.By, sc.Name, sc.Revision, r.due(sc.Name, c, now.Now, minHeldPoll)))
		if errors.Is(err, store.ErrRevision) {
			continue
		}
		if err != nil {
			return err
		}
		k.o.Log.Warn("durable: a schedule was ahead of the clock of the store and is set back; the clock was wrong, or is", "schedule", sc.Name, "settled", settled.Time(), "clock", now.Now.Time())
	}
	return nil
}
