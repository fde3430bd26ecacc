package durable

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"reflect"

	"github.com/holdfast-dev/holdfast/internal/cleaner"
	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/desk"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/schedules"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// Package operate reaches the engine through internal/desk alone.
func init() {
	desk.Of = func(engine any) desk.Engine { return operators{engine.(*Engine)} }
	desk.Begin = func(begin func(context.Context, desk.Start) error) any {
		return StartOption(func(o *startOptions) { o.begin = begin })
	}
	desk.Declared = func(definition any) (workflow, version string, steps []string) {
		def := definition.(Definition).definition()
		return def.name, def.version, def.steps
	}
}

// operators is the engine as package operate sees it.
type operators struct{ eng *Engine }

func (d operators) ID() string                  { return d.eng.id }
func (d operators) Store() store.Store          { return d.eng.store }
func (d operators) Limits() store.Limits        { return d.eng.committer.Limits() }
func (d operators) Sealer() *payload.Sealer     { return d.eng.sealer }
func (d operators) Now() store.Time             { return d.eng.now() }
func (d operators) Closing() bool               { return d.eng.roster.isClosing() }
func (d operators) Closed() <-chan struct{}     { return d.eng.roster.closed }
func (d operators) Nudge()                      { d.eng.claims.Wake() }
func (d operators) NextEpoch() int64            { return d.eng.imports.Next(d.eng.now()) }
func (d operators) Serves(workflow string) bool { return d.eng.program.defs.byName[workflow] != nil }
func (d operators) HasCode(row *store.Run) bool { return d.eng.program.defs.codeAt(row) != nil }

func (d operators) OutsideFunction(ctx context.Context, call string) error {
	return outsideFunction(ctx, call)
}

func (d operators) NotServed(row *store.Run) string { return d.eng.program.defs.notServed(row) }
func (d operators) SealMessage(m *store.Message)    { d.eng.mailroom.seal(m) }

func (d operators) CheckAttributes(a map[string]string) error { return checkAttributes(a) }

func (d operators) LogRun(level slog.Level, row *store.Run, msg string, attrs ...slog.Attr) {
	d.eng.log.AboutRun(level, row, msg, attrs...)
}

func (d operators) View(ctx context.Context, id string) (v *history.View, unreadable, err error) {
	return d.eng.view(ctx, id)
}

func (d operators) Runs(ctx context.Context, f store.Filter) iter.Seq2[*store.Run, error] {
	return d.eng.runsOf(ctx, f)
}

func (d operators) Events(ctx context.Context, id string, after int64) iter.Seq2[store.Event, error] {
	return d.eng.watchers.events(ctx, id, after)
}

func (d operators) Watch(id string) (changed <-chan struct{}, stop func()) {
	return d.eng.watchers.watch(id)
}

func (d operators) Act(ctx context.Context, row *store.Run, branches []store.Branch, a commit.Act) (int32, error) {
	return d.eng.act(ctx, row, branches, a)
}

func (d operators) Commit(ctx context.Context, change store.Change) error {
	return d.eng.commitOne(ctx, change)
}

func (d operators) Number(id string, events []store.Event) {
	var head commit.Head
	var steps int32
	for i := range events {
		ev := &events[i]
		if history.IsStepOutcome(ev) {
			steps++
		}
		ev.Steps = steps
		head.AppendSealed(d.eng.sealer, id, ev)
	}
}

func (d operators) Ended(id string, status store.Status) { d.eng.archiver.Want(id, status) }

func (d operators) AwaitClock(ctx context.Context) error { return awaitClock(ctx, d.eng) }

func (d operators) NewRunID(workflow string, collisions int) string {
	return generateID(workflow, d.eng.now().Time(), collisions)
}

func (d operators) ForkSpan(ctx context.Context, fork, source *store.Run) (keep func(*history.Beginning), done func()) {
	span, s := d.eng.tracing.StartSpan(ctx, fork, telemetry.Link(telemetry.Parse(source.Trace), telemetry.LinkForked))
	return s.KeepIn, func() {
		span.End()
		d.eng.metrics.RunStarted(fork)
	}
}

func (d operators) Steps(row *store.Run) (names []string, ok bool) {
	if def := d.eng.program.defs.find(row.Workflow, row.Version); def != nil {
		return def.steps, true
	}
	return nil, false
}

func (d operators) StepsOfLastCompleted(ctx context.Context, row *store.Run) (int, error) {
	return d.eng.stepsOfLastCompleted(ctx, row)
}

func (d operators) HasLiveOwner(ctx context.Context, row *store.Run) (bool, error) {
	return d.eng.recovery.HasLiveOwner(ctx, row)
}

func (d operators) Torn(ctx context.Context, v *history.View) (*history.Finding, error) {
	f, err := d.eng.recovery.Torn(ctx, v)
	return f, unrecoverable(err)
}

func (d operators) RepairFirst(ctx context.Context, row *store.Run) (repaired bool, err error) {
	repaired, err = d.eng.recovery.RepairFirst(ctx, row)
	return repaired, unrecoverable(err)
}

func (d operators) Unheard(ctx context.Context, row *store.Run, child string) (*desk.Unheard, error) {
	lost, err := d.eng.families.unheardOf(ctx, row, child)
	if err != nil || lost == nil {
		return nil, err
	}
	return d.toldOf(row, lost), nil
}

// toldOf returns what operators are told of a child of whose end the run with this row
// will not hear.
func (d operators) toldOf(row *store.Run, lost *unheard) *desk.Unheard {
	return &desk.Unheard{
		Child: lost.row, Text: lost.text(), Advice: lost.advice(row),
		Tell: func(ctx context.Context) error { return d.eng.families.tellEnd(ctx, lost) },
	}
}

func (d operators) EachUnheard(ctx context.Context, rows iter.Seq2[*store.Run, error], found func(*store.Run, *desk.Unheard)) error {
	return d.eng.families.eachUnheard(ctx, rows, func(row *store.Run, lost *unheard) { found(row, d.toldOf(row, lost)) })
}

func (d operators) Recovered() bool { return d.eng.claims.Recovered() }

func (d operators) Deferred() map[string]bool { return d.eng.claims.Deferred() }

func (d operators) Unreadable() []stuck.Run { return d.eng.dormitory.damaged() }

func (d operators) Asked(ctx context.Context, row *store.Run) ([]history.Asked, error) {
	return d.eng.asked(ctx, row)
}

func (d operators) Signal(ctx context.Context, runID, name string, value any) (id string, err error) {
	id = newExecutorID()
	return id, d.eng.mailroom.signal(ctx, runID, name, value, false, SignalID(id))
}

func (d operators) StartJSON(ctx context.Context, workflow, id string, input json.RawMessage, enqueue bool, options any) (string, error) {
	return d.eng.startJSON(ctx, workflow, id, input, enqueue, options.([]StartOption))
}

func (d operators) Input(workflow string) reflect.Type {
	if def := d.eng.program.defs.find(workflow, ""); def != nil {
		return def.input
	}
	return nil
}

func (d operators) Pause(ctx context.Context, id string, m history.MessageData) error {
	return d.eng.pause(ctx, id, m)
}

func (d operators) Claim(ctx context.Context, id string, data *history.Claim, v *history.View) (claimed bool, err error) {
	return d.eng.claims.Claim(ctx, id, data, v)
}

func (d operators) Schedules() *schedules.Acts {
	st := store.CapabilitiesOf(d.eng.store).Schedules
	if st == nil {
		return nil
	}
	return &schedules.Acts{Schedules: st, Store: d.eng.store, Engine: scheduling(d), By: d.eng.id}
}

func (d operators) Clean(ctx context.Context, o cleaner.Options, retention any) (cleaner.Result, error) {
	if r := retention.(*Retention); r != nil {
		o.Retention = r.rules()
	}
	return newCleaner(d.eng).Clean(ctx, o)
}

func (d operators) GoOn(ctx context.Context, id string) {
	ctx, e := context.WithoutCancel(ctx), d.eng
	if _, err := e.claims.Claim(ctx, id, &history.Claim{Resumed: true}, nil); err != nil {
		e.log.AboutID(ctx, slog.LevelWarn, id, "durable: a run could not be claimed at once; whoever serves it claims it soon", slog.Any("error", err))
		e.claims.Wake()
	}
}

// KeysToTake returns the exclusive keys that a run must take again when it is
// resumed: those it was started with, if it has failed or was cancelled and so freed
// them.
func (d operators) KeysToTake(ctx context.Context, row *store.Run) ([]string, error) {
	if row.Status != store.Failed && row.Status != store.Cancelled {
		return nil, nil
	}
	h, err := d.eng.store.Load(ctx, row.ID, store.Cursor{})
	if err != nil {
		return nil, fmt.Errorf("durable: resuming run %s: %w", row.ID, storeError(err))
	}
	born, err := birthOf(h)
	return born.Exclusive, err
}
