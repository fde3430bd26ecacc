package schedules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/calendar"
	"github.com/holdfast-dev/holdfast/store"
)

// ErrNotFound: there is no schedule of this name.
var ErrNotFound = errors.New("durable: there is no such schedule")

// Acts are what operators do to schedules. Each reads the schedule, and writes where what it
// has read is still stored.
type Acts struct {
	Schedules store.Schedules
	Store     store.Store // in which their runs are
	Engine    Engine
	By        string // the id of the executor
}

// A change changes a record, as of a time of the store; done is false if nothing is to be changed.
type change func(r *Record, c *calendar.Calendar, now store.Time) (done bool, err error)

// edit changes a stored record.
func (a *Acts) edit(ctx context.Context, name string, f change) error {
	for {
		sc, r, c, err := a.read(ctx, name)
		if err != nil {
			return err
		}
		now, err := a.now(ctx)
		if err != nil {
			return err
		}
		if done, err := f(r, c, now); err != nil || !done {
			return err
		}
		_, err = a.Schedules.PutSchedule(ctx, r.encode(a.By, name, sc.Revision, r.due(name, c, now, minHeldPoll)))
		if !errors.Is(err, store.ErrRevision) {
			return err
		}
	}
}

func (a *Acts) now(ctx context.Context) (store.Time, error) {
	clock, err := a.Schedules.DueSchedules(ctx, 0)
	return clock.Now, err
}

func (a *Acts) read(ctx context.Context, name string) (*store.Schedule, *Record, *calendar.Calendar, error) {
	list, err := a.Schedules.Schedules(ctx, name)
	if err != nil {
		return nil, nil, nil, err
	}
	if len(list) == 0 {
		return nil, nil, nil, fmt.Errorf("%w: %q", ErrNotFound, name)
	}
	r, c, err := decode(&list[0])
	return &list[0], r, c, err
}

// MaxReason bounds the reason of a pause, in bytes.
const MaxReason = 4 << 10

// Pause keeps a schedule from firing. One that is paused stays as it is.
func (a *Acts) Pause(ctx context.Context, name, reason string) error {
	return a.edit(ctx, name, func(r *Record, _ *calendar.Calendar, now store.Time) (bool, error) {
		if r.Paused != nil {
			return false, nil
		}
		r.Paused = &Pause{At: now, Reason: reason}
		return true, nil
	})
}

// Resume ends a pause. The times that have passed meanwhile do not fire. One that had come before the pause
// does, if it is late by its jitter and its moment is still to come.
func (a *Acts) Resume(ctx context.Context, name string) error {
	return a.edit(ctx, name, func(r *Record, c *calendar.Calendar, now store.Time) (bool, error) {
		if r.Paused == nil {
			return false, nil
		}
		if r.Settled < now || r.Settled > now.Add(farAhead) {
			r.Settled = r.passed(name, c, now)
		}
		r.Paused = nil
		return true, nil
	})
}

// Delete removes a schedule. Its runs stay.
func (a *Acts) Delete(ctx context.Context, name string) error {
	existed, err := a.Schedules.DeleteSchedule(ctx, name)
	if err == nil && !existed {
		err = fmt.Errorf("%w: %q", ErrNotFound, name)
	}
	return err
}

// Trigger starts a run of a schedule now, whatever its policies, and returns its id, which
// follows from the key. Later fires count it as the run before, also if a call that started it was
// cut short and is made again.
func (a *Acts) Trigger(ctx context.Context, name, key string) (string, error) {
	id := TriggerID(name, key)
	if err := store.CheckName("key of a trigger", key); err != nil {
		return "", err
	}
	_, r, _, err := a.read(ctx, name)
	if err != nil {
		return "", err
	}
	now, err := a.now(ctx)
	if err != nil {
		return "", err
	}
	starts, err := a.Engine.StartFires(ctx, name, &r.Definition, []Decided{{At: now, RunID: id}})
	if err == nil {
		err = starts.Refused[id]
	}
	if err != nil {
		return id, err
	}
	err = a.edit(ctx, name, func(r *Record, _ *calendar.Calendar, now store.Time) (bool, error) {
		watched := r.watches(id)
		if !watched && len(r.Live) >= maxLive {
			if _, err := r.forgetEnded(ctx, a.Store); err != nil {
				return false, err
			}
		}
		r.watch(name, id)
		if starts.Started == 0 {
			return !watched, nil // a fire that this call has not made is not told again
		}
		r.remember(Fire{At: now, RunID: id, Outcome: Started, Why: "triggered"})
		return true, nil
	})
	if errors.Is(err, ErrNotFound) {
		err = nil // deleted meanwhile; the run is there
	}
	return id, err
}

// MaxBackfill is how many times one backfill may have.
const MaxBackfill = 10_000

// Backfill starts the runs of the times from from to before to, which must have come,
// whatever the policies. Those that exist stay as they are.
func (a *Acts) Backfill(ctx context.Context, name string, from, to time.Time) (Starts, error) {
	r, fires, err := a.Fires(ctx, name, from, to)
	if err != nil {
		return Starts{}, err
	}
	return a.Engine.StartFires(ctx, name, &r.Definition, fires)
}

// Fires returns the schedule and what a Backfill of this span starts. It changes nothing.
func (a *Acts) Fires(ctx context.Context, name string, from, to time.Time) (*Record, []Decided, error) {
	_, r, c, err := a.read(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	now, err := a.now(ctx)
	if err != nil {
		return nil, nil, err
	}
	if store.TimeOf(from) <= 0 {
		return nil, nil, fmt.Errorf("durable: a backfill of schedule %s from %s: it must not begin before 1970: %w", name, from.Format(time.RFC3339), store.ErrInvalid)
	}
	if !from.Before(to) || store.TimeOf(to) > now {
		return nil, nil, fmt.Errorf("durable: a backfill of schedule %s from %s to %s, at %s: the span must not be empty, and must have passed: %w",
			name, from.Format(time.RFC3339), to.Format(time.RFC3339), now.Time().Format(time.RFC3339), store.ErrInvalid)
	}
	times := c.First(MaxBackfill+1, from.Add(-time.Microsecond), to.Add(-time.Microsecond))
	if len(times) > MaxBackfill {
		return nil, nil, fmt.Errorf("durable: a backfill of schedule %s has more than %d times; make it in parts, the first up to %s: %w",
			name, MaxBackfill, times[MaxBackfill].Format(time.RFC3339), store.ErrInvalid)
	}
	fires := make([]Decided, len(times))
	for i, at := range times {
		fires[i] = Decided{At: store.TimeOf(at), RunID: RunID(name, store.TimeOf(at))}
	}
	return r, fires, nil
}

// A State is a schedule as an operator finds it.
type State struct {
	Schedule store.Schedule
	Record   *Record     // nil: Err says why it cannot be read
	Next     []time.Time // the next fire times, as if it were not paused
	Err      error
}

// List returns the schedules of these names, or all, with the next n times.
func (a *Acts) List(ctx context.Context, n int, names ...string) ([]State, error) {
	list, err := a.Schedules.Schedules(ctx, names...)
	if err != nil {
		return nil, err
	}
	now, err := a.now(ctx)
	if err != nil {
		return nil, err
	}
	states := make([]State, len(list))
	for i := range list {
		s := State{Schedule: list[i]}
		var c *calendar.Calendar
		if s.Record, c, s.Err = decode(&list[i]); s.Err == nil {
			// One that has come may still be due, by its jitter.
			s.Next = c.First(n, max(s.Record.Settled, now.Add(-s.Record.Definition.jitter())).Time(), farFuture)
		}
		states[i] = s
	}
	return states, nil
}

// farFuture is later than any time of a calendar.
var farFuture = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
