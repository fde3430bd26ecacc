package durable

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/holdfast-dev/holdfast/internal/declared"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/schedules"
	"github.com/holdfast-dev/holdfast/store"
)

// Schedule starts runs of a workflow at times. Workflow.Schedule makes one,
// Options.Schedules declares it. It is a value: each method returns another one.
type Schedule struct {
	name    string
	paused  bool
	flow    *definition
	times   Timetable
	overlap OverlapPolicy
	missed  MissedPolicy
	options []StartOption
	input   func(e *Engine) ([]byte, error) // an envelope
}

// Timetable says when a schedule fires. Cron and Every make one. It is a value: each
// method returns another one. What is wrong with it is reported by Open.
type Timetable struct {
	cron, zone    string
	every, jitter time.Duration
	anchor        time.Time
}

// Cron fires at the times of a cron expression: five fields (minute, hour, day of the
// month, month, day of the week), six (seconds first), or a descriptor such as @daily.
// Its zone is UTC, unless In or a beginning such as "CRON_TZ=Europe/Berlin" names
// another one.
//
// A time that does not exist on a day, because the clock is set forward, fires once at the
// first moment after the gap; one that comes twice fires the first time. An expression
// with every hour of the day in it goes by what the clock shows instead, so that hourly
// stays hourly.
func Cron(expression string) Timetable { return Timetable{cron: expression} }

// Every fires each time that d has passed, at least a second, counted from 1 January 1970,
// 00:00 UTC, or from the moment given to From: every 15 minutes is at the full quarters of
// an hour, whenever the program was started.
func Every(d time.Duration) Timetable {
	if d <= 0 {
		d = -1 // refused
	}
	return Timetable{every: d}
}

// In names the time zone of a cron expression, from the IANA database, such as
// "Europe/Berlin". All programs on the store need that database; import time/tzdata where
// the system has none.
func (t Timetable) In(zone string) Timetable { t.zone = zone; return t }

// From sets the moment from which Every counts, which is also the first one that fires.
func (t Timetable) From(anchor time.Time) Timetable { t.anchor = anchor; return t }

// Jitter makes each fire up to d later than its time, at most an hour and before the next time, so that many
// schedules do not fire at once. How much later follows from the name of the schedule and
// the time. ScheduledAt and the id of the run are those of the time itself.
func (t Timetable) Jitter(d time.Duration) Timetable { t.jitter = d; return t }

// OverlapPolicy says what a fire does while the run before, of the same schedule, has not
// ended: completed, failed or cancelled.
type OverlapPolicy int

// The policies for overlap.
const (
	// OverlapSkip starts nothing. It is the default.
	OverlapSkip OverlapPolicy = iota
	// OverlapAllow starts the run beside the one before.
	OverlapAllow
	// OverlapQueue starts the run once the one before has ended. Up to 100 fires wait;
	// further ones are skipped.
	OverlapQueue
	// OverlapCancel cancels the run before, and starts the run once that one has ended. Only
	// the latest fire waits.
	OverlapCancel
)

// MissedPolicy says what becomes of fires that are more than a minute late when an engine
// looks, because none was there. It is one of the constants, or a number from 1 to 1,000:
// how many of the latest are started.
type MissedPolicy int

// The policies for missed fires.
const (
	// MissedOnce starts the latest one, unless a later one is in time. It is the default.
	MissedOnce MissedPolicy = 0
	// MissedSkip starts none.
	MissedSkip MissedPolicy = -1
	// MissedAll starts all, in order. The policy for overlap holds for them too.
	MissedAll MissedPolicy = -2
)

// Schedule returns a schedule that starts this workflow with this input and these options.
// The name, of 1 to 255 bytes, belongs to the schedule in the whole store. The run of a fire
// has the id "NAME@2026-11-23T02:00:00Z", its time in UTC, so that no two engines start it
// twice. The options that belong to one start (WithSignal, StartAt, InTx, Abandon) are refused by Open.
func (w *Workflow[I, O]) Schedule(name string, t Timetable, in I, o ...StartOption) Schedule {
	return Schedule{name: name, flow: w.def, times: t, options: o, input: func(e *Engine) ([]byte, error) {
		input, _, err := payload.Encode(e.sealer, e.sealer.Limit(), in)
		if err != nil {
			return nil, &EncodeError{RunID: name, Type: reflect.TypeFor[I]().String(), Err: err}
		}
		return input, nil
	}}
}

// Name returns the name of the schedule.
func (s Schedule) Name() string { return s.name }

// Overlap sets what a fire does while the run before has not ended; default: OverlapSkip.
func (s Schedule) Overlap(p OverlapPolicy) Schedule { s.overlap = p; return s }

// Missed sets what becomes of fires that no engine looked at in time; default: MissedOnce.
func (s Schedule) Missed(p MissedPolicy) Schedule { s.missed = p; return s }

// Paused has the schedule paused when it is stored for the first time. Later it is for
// operators to pause and resume it.
func (s Schedule) Paused() Schedule { s.paused = true; return s }

// ScheduledAt returns the time for which the schedule has started the run that ctx
// belongs to: the time of the timetable, without jitter and however late the run began, or,
// of a run that was triggered by hand, the time of that. It is in UTC, and the same on
// replay. It is the zero time for a run that no schedule has started, such as a child.
func ScheduledAt(ctx context.Context) time.Time {
	if r := runOf(ctx); r != nil && r.origin.scheduled != nil {
		return r.origin.scheduled.At.Time()
	}
	return time.Time{}
}

// schedulePolicies are the stored forms of the policies for overlap.
var schedulePolicies = []schedules.Overlap{schedules.OverlapSkip, schedules.OverlapAllow, schedules.OverlapQueue, schedules.OverlapCancel}

// definition returns the schedule as it is stored, without its input and options.
func (s *Schedule) definition() (*schedules.Definition, error) {
	if s.flow == nil {
		return nil, fmt.Errorf("durable: schedule %q is not made by Workflow.Schedule: %w", s.name, ErrInvalid)
	}
	if err := store.CheckName("schedule name", s.name); err != nil {
		return nil, err
	}
	if s.flow.err != nil {
		return nil, fmt.Errorf("durable: schedule %s: %w", s.name, s.flow.err)
	}
	refuse := func(reason string) error {
		return fmt.Errorf("durable: schedule %s: %s: %w", s.name, reason, ErrInvalid)
	}
	t := &s.times
	switch {
	case s.overlap < 0 || int(s.overlap) >= len(schedulePolicies):
		return nil, refuse("Overlap is no policy")
	case t.every != 0 && t.zone != "":
		return nil, refuse("In is for Cron: Every counts elapsed time, which has no zone")
	case t.every == 0 && !t.anchor.IsZero():
		return nil, refuse("From is for Every")
	case t.every < 0:
		return nil, refuse("Every needs at least a second")
	case t.every%time.Microsecond != 0 || t.jitter%time.Microsecond != 0:
		return nil, refuse("Every and Jitter take whole microseconds")
	case !t.anchor.IsZero() && (t.anchor.Year() < 1 || t.anchor.Year() > 9999):
		return nil, refuse("From takes a moment of the years 1 to 9999")
	}
	d := &schedules.Definition{
		Workflow: s.flow.name, Cron: t.cron, Zone: t.zone, Every: t.every.Microseconds(), Anchor: store.TimeOf(t.anchor), Jitter: t.jitter.Microseconds(),
		Overlap: schedulePolicies[s.overlap], Missed: schedules.Missed(s.missed),
	}
	if err := d.Check(); err != nil {
		return nil, fmt.Errorf("durable: schedule %s: %w", s.name, err)
	}
	return d, nil
}

// storedStart are the options of a start as a schedule keeps them.
type storedStart struct {
	Attributes map[string]string `json:"attributes,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	Exclusive  []string          `json:"exclusive,omitempty"`
	Deadline   int64             `json:"deadline,omitempty"` // microseconds
	Queue      string            `json:"queue,omitempty"`
	Partition  string            `json:"partition,omitempty"`
	Priority   int32             `json:"priority,omitempty"`
	Dedup      string            `json:"dedup,omitempty"`
	Delay      int64             `json:"delay,omitempty"` // microseconds
}

// scheduling is the engine as package schedules sees it, and what it does for schedules.
type scheduling struct{ eng *Engine }

// stored returns the options as they are stored, or why they cannot be.
func (sc scheduling) stored(list []StartOption) (json.RawMessage, error) {
	var o startOptions
	if err := guard.Options(&o, list); err != nil {
		return nil, err
	}
	switch {
	case len(o.signals) > 0:
		return nil, fmt.Errorf("WithSignal is for one start; give what it says in the input: %w", ErrInvalid)
	case o.abandon:
		return nil, fmt.Errorf("Abandon is for a child: %w", ErrInvalid)
	case o.begin != nil:
		return nil, fmt.Errorf("FromExport is for one start: %w", ErrInvalid)
	case o.tx != nil:
		return nil, fmt.Errorf("InTx is for one start: %w", ErrInvalid)
	case o.line.debounce != nil:
		return nil, fmt.Errorf("Debounce is for starts that come close together; a fire is one start: %w", ErrInvalid)
	case o.line.at != 0:
		return nil, fmt.Errorf("StartAt is for one start; the timetable says when, and Delay how much later: %w", ErrInvalid)
	}
	o = startOptions{}
	if err := o.apply(context.Background(), sc.eng, "", list); err != nil {
		return nil, err
	}
	return mustJSON(storedStart{
		Attributes: o.attributes, Headers: o.headers, Exclusive: o.exclusive, Deadline: o.deadline.Microseconds(),
		Queue: o.line.queue, Partition: o.line.partition, Priority: o.line.priority, Dedup: o.line.dedup, Delay: o.line.delay.Microseconds(),
	}), nil
}

// restore sets the options to those that are stored.
func (o *startOptions) restore(stored json.RawMessage) error {
	var s storedStart
	if len(stored) > 0 {
		if err := json.Unmarshal(stored, &s); err != nil {
			return err
		}
	}
	o.attributes, o.headers, o.exclusive, o.deadline = s.Attributes, s.Headers, s.Exclusive, time.Duration(s.Deadline)*time.Microsecond
	o.line = inLine{queue: s.Queue, partition: s.Partition, priority: s.Priority, dedup: s.Dedup, delay: time.Duration(s.Delay) * time.Microsecond}
	return nil
}

// placeOfInput is where a schedule keeps the input of its runs.
func placeOfInput(name string) payload.Place {
	return payload.Place{Run: name, Type: "schedule", Key: "input"}
}

// declared returns the schedules of Options.Schedules in the form in which they are stored.
func (sc scheduling) declared() (list []declared.Schedule, err error) {
	e := sc.eng
	if len(e.options.Schedules) > 0 && store.CapabilitiesOf(e.store).Schedules == nil {
		return nil, fmt.Errorf("durable: Options.Schedules: the store %T keeps no schedules: %w", e.store, ErrInvalid)
	}
	seen := map[string]bool{}
	for i := range e.options.Schedules {
		s := &e.options.Schedules[i]
		d, err := s.definition()
		switch {
		case err != nil:
			return nil, err
		case seen[s.name]:
			return nil, fmt.Errorf("durable: Options.Schedules: %q is declared twice: %w", s.name, ErrInvalid)
		}
		seen[s.name] = true
		if err := sc.complete(s, d); err != nil {
			return nil, fmt.Errorf("durable: schedule %s: %w", s.name, err)
		}
		list = append(list, declared.Schedule{Name: s.name, Definition: d, Paused: s.paused})
	}
	return list, nil
}

// complete adds to a definition what this engine encodes: its input and its options.
func (sc scheduling) complete(s *Schedule, d *schedules.Definition) error {
	e := sc.eng
	input, err := s.input(e)
	if err != nil {
		return err
	}
	if err := e.sealer.Ready(); err != nil {
		return fmt.Errorf("its input cannot be encrypted: %w", err)
	}
	sum := payload.InputHash(input)
	d.Input, d.InputHash = e.sealer.Seal(placeOfInput(s.name), input), hex.EncodeToString(sum[:])
	if d.Options, err = sc.stored(s.options); err != nil {
		return err
	}
	return d.CheckSize(e.id, s.name, e.store.Limits().Payload)
}

// keep fires what is due, until the loops of the engine end. An engine without
// code, such as a terminal's, leaves that to others.
func (sc scheduling) keep() {
	e := sc.eng
	st := store.CapabilitiesOf(e.store).Schedules
	if st == nil || len(e.program.defs.byName) == 0 {
		return
	}
	keeper := schedules.NewKeeper(schedules.Options{
		Store: e.store, Schedules: st, Engine: sc, By: e.id, Log: e.log.Logger, Poll: e.options.Lease,
		Fired: func(workflow string, o schedules.Outcome, n int64) { e.metrics.ScheduleFired(workflow, string(o), n) },
		Delay: e.metrics.ScheduleDelayed,
	})
	e.roster.background(func() { keeper.Loop(e.life.loops) })
}

// StartFires implements schedules.Engine. The runs wait in the store, like those of
// StartAll.
func (sc scheduling) StartFires(ctx context.Context, name string, d *schedules.Definition, fires []schedules.Decided) (starts schedules.Starts, err error) {
	e := sc.eng
	input, err := e.sealer.Unseal(placeOfInput(name), d.Input)
	if err == nil {
		err = e.sealer.Ready()
	}
	def := e.program.defs.find(d.Workflow, "")
	if def == nil {
		def = &definition{name: d.Workflow}
	}
	b := &bulkStart{eng: e, def: def, ctx: ctx, ids: map[string]bool{}}
	if err == nil {
		err = b.options.restore(d.Options)
	}
	if err != nil {
		return starts, &schedules.UnreadableError{Err: fmt.Errorf("durable: schedule %s: what it starts cannot be read: %w", name, err)}
	}
	b.options.input = def.input
	started := map[string]bool{}
	b.started = func(id string) { started[id] = true }
	for _, f := range fires {
		if err = b.add(bulkItem{id: f.RunID, input: input, scheduled: &history.Scheduled{Schedule: name, At: f.At}}); err != nil {
			break
		}
	}
	if err == nil {
		err = b.finish()
	}
	for _, f := range fires {
		if started[f.RunID] {
			starts.RunIDs = append(starts.RunIDs, f.RunID)
		}
	}
	starts.Started, starts.Existing, starts.Refused = b.told.Started, b.told.Existing, map[string]error{}
	for _, r := range b.told.Refused {
		if c := (*ConflictError)(nil); errors.As(r.Err, &c) && c.SameFlow {
			starts.Existing++ // started under another declaration
			continue
		}
		starts.Refused[r.ID] = r.Err
	}
	return starts, err
}

// Cancel implements schedules.Engine.
func (sc scheduling) Cancel(ctx context.Context, runID, reason string) error {
	err := sc.eng.Cancel(ctx, runID, reason)
	if errors.Is(err, ErrNotRunning) || errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
