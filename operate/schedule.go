package operate

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/schedules"
	"github.com/holdfast-dev/holdfast/store"
)

// ErrScheduleNotFound: there is no schedule of this name.
var ErrScheduleNotFound = schedules.ErrNotFound

// NextFires is how many of its next fire times a ScheduleState has.
const NextFires = 5

// ScheduleState is a schedule as an operator finds it.
type ScheduleState struct {
	Name      string
	Workflow  string
	Timetable string // in words, such as `cron "0 0 2 * * *" in Europe/Berlin`
	Overlap   string // "skip", "allow", "queue" or "cancel"
	Missed    string // "once", "skip", "all" or "up to 5"

	// Paused since PausedAt, for PausedReason.
	Paused       bool
	PausedAt     time.Time
	PausedReason string

	// Next are the next fire times in UTC; of a paused schedule, those if it were not.
	Next []time.Time
	// Last are the last fires, at most ten, the latest first.
	Last []ScheduleFire
	// Held are the fire times that wait for the run before.
	Held []time.Time
	// How many fires there were: that started a run, that were skipped, missed, and whose
	// run could not be started.
	Started, Skipped, MissedFires, Refused int64

	// Problem says why this program cannot read the schedule, of which only the name is
	// known then; empty: it can.
	Problem   string
	UpdatedAt time.Time // by the store's clock
}

// ScheduleFire is what became of a fire of a schedule.
type ScheduleFire struct {
	At      time.Time // the fire time; of a triggered run, the time of the trigger
	Outcome string    // "started", "skipped", "missed" or "refused"
	// RunID is the run that was started, and Status its status; empty if it was deleted
	// since.
	RunID  string
	Status store.Status
	Reason string // why it was skipped or refused
	// Count is how many fires were missed together, the last of them at At.
	Count int64
}

// acts returns the acts on the schedules of the store.
func (op *Operator) acts(ctx context.Context) (*schedules.Acts, error) {
	if err := op.desk.OutsideFunction(ctx, "a call of the Operator for schedules"); err != nil {
		return nil, err
	}
	if a := op.desk.Schedules(); a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("durable: the store %T keeps no schedules: %w", op.store, durable.ErrInvalid)
}

// scheduleError returns err in the form callers know.
func scheduleError(what, name string, err error) error {
	if err == nil || errors.Is(err, ErrScheduleNotFound) {
		return err
	}
	if !errors.Is(err, durable.ErrConflict) { // which is no word of the store
		err = storeError(err)
	}
	return fmt.Errorf("durable: %s schedule %s: %w", what, name, err)
}

// Schedules returns the schedules of these names, or all of them without names, in the order
// of their names.
//
// Errors: ErrScheduleNotFound for a name of which there is none; durable.ErrUnavailable.
func (op *Operator) Schedules(ctx context.Context, names ...string) ([]ScheduleState, error) {
	a, err := op.acts(ctx)
	if err != nil {
		return nil, err
	}
	found, err := a.List(ctx, NextFires, names...)
	if err != nil {
		return nil, fmt.Errorf("durable: listing schedules: %w", storeError(err))
	}
	for _, name := range names {
		if !slices.ContainsFunc(found, func(f schedules.State) bool { return f.Schedule.Name == name }) {
			return nil, fmt.Errorf("durable: schedule %q: %w", name, ErrScheduleNotFound)
		}
	}
	states := make([]ScheduleState, len(found))
	for i := range found {
		states[i] = stateOf(&found[i])
	}
	return states, op.addStatuses(ctx, states)
}

func stateOf(f *schedules.State) ScheduleState {
	s := ScheduleState{Name: f.Schedule.Name, Next: f.Next, UpdatedAt: f.Schedule.UpdatedAt.Time()}
	if f.Err != nil {
		s.Problem = f.Err.Error()
		return s
	}
	r := f.Record
	d := &r.Definition
	s.Workflow, s.Timetable, s.Overlap, s.Missed = d.Workflow, d.Timetable(), d.Overlap.String(), d.Missed.String()
	if r.Paused != nil {
		s.Paused, s.PausedAt, s.PausedReason = true, r.Paused.At.Time(), r.Paused.Reason
	}
	for _, at := range r.Held {
		s.Held = append(s.Held, at.Time())
	}
	for _, fire := range slices.Backward(r.Last) {
		s.Last = append(s.Last, ScheduleFire{At: fire.At.Time(), Outcome: string(fire.Outcome), RunID: fire.RunID, Reason: fire.Why, Count: fire.Count})
	}
	s.Started, s.Skipped, s.MissedFires, s.Refused = r.Started, r.Skipped, r.Missed, r.Refused
	return s
}

// addStatuses looks up the runs of the last fires, many at a time.
func (op *Operator) addStatuses(ctx context.Context, states []ScheduleState) error {
	runs := map[string][]*ScheduleFire{}
	var ids []string
	for i := range states {
		for j := range states[i].Last {
			if fire := &states[i].Last[j]; fire.RunID != "" {
				runs[fire.RunID] = append(runs[fire.RunID], fire)
				ids = append(ids, fire.RunID)
			}
		}
	}
	for part := range slices.Chunk(ids, 500) {
		for row, err := range op.desk.Runs(ctx, store.Filter{IDs: part}) {
			if err != nil {
				return fmt.Errorf("durable: listing the runs of schedules: %w", storeError(err))
			}
			for _, fire := range runs[row.ID] {
				fire.Status = row.Status
			}
		}
	}
	return nil
}

// keysOfSchedules counts the schedules by the id of the key of their input.
func (op *Operator) keysOfSchedules(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	a := op.desk.Schedules()
	if a == nil {
		return counts, nil
	}
	list, err := a.Schedules.Schedules(ctx)
	if err != nil {
		return nil, fmt.Errorf("durable: looking for keys: listing schedules: %w", storeError(err))
	}
	for i := range list {
		if key, err := schedules.KeyOf(&list[i]); err == nil { // one that is damaged needs none
			counts[key]++
		}
	}
	return counts, nil
}

// PauseSchedule keeps a schedule from firing until ResumeSchedule, also when a program that
// declares it opens anew. Runs that were started go on, and so do fires that were decided. A
// schedule that is paused keeps its reason.
//
// Errors: ErrScheduleNotFound, durable.ErrUnavailable.
func (op *Operator) PauseSchedule(ctx context.Context, name, reason string) error {
	a, err := op.acts(ctx)
	if err == nil {
		err = a.Pause(ctx, name, guard.Text(reason, schedules.MaxReason))
	}
	return scheduleError("pausing", name, err)
}

// ResumeSchedule ends a pause. Times that have passed meanwhile do not fire; BackfillSchedule
// makes up for them. A schedule that is not paused stays as it is.
//
// Errors: ErrScheduleNotFound, durable.ErrUnavailable.
func (op *Operator) ResumeSchedule(ctx context.Context, name string) error {
	a, err := op.acts(ctx)
	if err == nil {
		err = a.Resume(ctx, name)
	}
	return scheduleError("resuming", name, err)
}

// DeleteSchedule removes a schedule. Its runs stay. A program that declares it stores it again
// when it opens.
//
// Errors: ErrScheduleNotFound, durable.ErrUnavailable.
func (op *Operator) DeleteSchedule(ctx context.Context, name string) error {
	a, err := op.acts(ctx)
	if err == nil {
		err = a.Delete(ctx, name)
	}
	return scheduleError("deleting", name, err)
}

// TriggerSchedule starts a run of a schedule now, whatever its timetable, pause and policies
// say, and returns its id, "NAME@now-KEY". The next fires count it as the run before. Called
// again with the same key, it returns the same run and starts none. An empty key makes one up:
// each call starts a run.
//
// Errors: ErrScheduleNotFound; durable.ErrInvalid for a key that is no name; *durable.ConflictError
// if that id is another workflow's; durable.ErrOccupied; durable.ErrUnavailable.
func (op *Operator) TriggerSchedule(ctx context.Context, name, key string) (runID string, err error) {
	a, err := op.acts(ctx)
	if err == nil {
		runID, err = a.Trigger(ctx, name, cmp.Or(key, rand.Text()[:10]))
	}
	return runID, scheduleError("triggering", name, err)
}

// Backfill is what BackfillSchedule has done.
type Backfill struct {
	// Started runs were recorded; Existing ones were there already.
	Started, Existing int
	// Refused are the runs that could not be started, by id.
	Refused map[string]error
	// RunIDs are the runs that it has started, in the order of their times.
	RunIDs []string
}

// BackfillSchedule starts the runs of the fire times from from to before to, whatever pause
// and policies say: those that were missed, skipped, or before the schedule existed. The span
// must have passed. A time whose run exists is left alone, so a backfill of times that have
// fired does nothing, and one that was cut short can be made again. At most 10,000 times can be
// filled in one call. The runs wait in the store, and all may be executed at once: give the
// schedule a queue where that is too much. What it returns has happened, also with an error.
//
// Errors: ErrScheduleNotFound; durable.ErrInvalid for a span that is empty, begins before 1970, lies ahead or has
// too many times, which changes nothing; durable.ErrUnavailable.
func (op *Operator) BackfillSchedule(ctx context.Context, name string, from, to time.Time) (Backfill, error) {
	a, err := op.acts(ctx)
	if err != nil {
		return Backfill{}, err
	}
	starts, err := a.Backfill(ctx, name, from, to)
	return Backfill(starts), scheduleError("filling", name, err)
}

// A PlannedFire is a fire time that a backfill would fill.
type PlannedFire struct {
	At     time.Time // the fire time
	RunID  string
	Exists bool // the run is there already, and stays as it is
}

// PlanBackfill returns what BackfillSchedule would do, in the order of the times, and changes
// nothing.
//
// Errors are those of BackfillSchedule.
func (op *Operator) PlanBackfill(ctx context.Context, name string, from, to time.Time) ([]PlannedFire, error) {
	a, err := op.acts(ctx)
	if err != nil {
		return nil, err
	}
	_, fires, err := a.Fires(ctx, name, from, to)
	if err != nil {
		return nil, scheduleError("planning to fill", name, err)
	}
	plan := make([]PlannedFire, len(fires))
	index := make(map[string]int, len(fires))
	ids := make([]string, len(fires))
	for i, f := range fires {
		plan[i] = PlannedFire{At: f.At.Time(), RunID: f.RunID}
		index[f.RunID], ids[i] = i, f.RunID
	}
	for part := range slices.Chunk(ids, 500) {
		for row, err := range op.desk.Runs(ctx, store.Filter{IDs: part}) {
			if err != nil {
				return nil, fmt.Errorf("durable: listing the runs of schedule %s: %w", name, storeError(err))
			}
			plan[index[row.ID]].Exists = true
		}
	}
	return plan, nil
}
