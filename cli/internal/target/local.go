package target

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/internal/wire"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Local acts on a store through an engine.
type Local struct {
	Engine  *durable.Engine
	Store   store.Store
	Mounted bool // the engine is the program's own, and executes
	HasCode bool // the engine executes nothing, in a program that has code

	commands *show.Commands
	owned    store.Store // closed with it; nil: it is another's
}

var _, _ Target = (*Local)(nil), (*Remote)(nil)

// Mounted returns a target on the store of the program's own engine.
func Mounted(eng *durable.Engine, c *show.Commands) *Local {
	return &Local{commands: c, Engine: eng, Store: eng.Store(), Mounted: true}
}

// OpenLocal returns a target on a store, through its own engine that serves no
// workflow and so claims nothing.
func OpenLocal(ctx context.Context, st store.Store, c *show.Commands) (*Local, error) {
	eng, err := durable.Open(ctx, st, durable.Options{Name: "durable command line", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return &Local{commands: c, Engine: eng, Store: st}, nil
}

// Close closes the engine, unless it is the program's own, and the store if Open has opened it.
func (l *Local) Close() {
	if !l.Mounted {
		_ = l.Engine.Close()
	}
	if l.owned != nil {
		_ = l.owned.Close()
	}
}

// Lost returns err, in the words of a store if it says that the run does not exist.
func (l *Local) Lost(id string, err error) error {
	if err == nil || !errors.Is(err, durable.ErrNotFound) {
		return err
	}
	var at *operate.CheckpointError
	var edit *operate.EditError
	if errors.As(err, &at) || errors.As(err, &edit) {
		return err // the run exists
	}
	return show.UnknownRun(id, l.commands)
}

// live returns the executors that are alive, by id.
func (l *Local) live(ctx context.Context) (map[string]store.Executor, error) {
	executors, err := l.Store.Executors(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing executors: %w", err)
	}
	m := map[string]store.Executor{}
	for _, x := range executors {
		if x.Live {
			m[x.ID] = x
		}
	}
	return m, nil
}

// Runs implements Target.
func (l *Local) Runs(ctx context.Context, q Query) ([]Run, int64, error) {
	live, err := l.live(ctx)
	if err != nil {
		return nil, 0, err
	}
	names := declared{}
	var list []Run
	if q.Resumable {
		var rows []store.Run
		// Some of the runs that the engine would resume have nothing to resume from.
		look := func() {
			for _, s := range l.readAll(ctx, rows, live, names) {
				if s.Resumable && (q.Limit == 0 || len(list) < q.Limit) {
					list = append(list, s)
				}
			}
			rows = nil
		}
		for row, err := range operate.On(l.Engine).ListResumable(ctx) {
			if err != nil {
				return nil, 0, err
			}
			if !wanted(&row, q) {
				continue
			}
			if rows = append(rows, row); len(rows) == cmp.Or(q.Limit, 500) {
				look()
			}
			if q.Limit > 0 && len(list) == q.Limit {
				break
			}
		}
		look()
		return list, int64(len(list)), nil
	}
	f := store.Filter{Statuses: q.Statuses, Workflows: q.Workflows, Queues: q.Queues, OldestFirst: q.Oldest, WithLast: true}
	counts, err := l.Store.Count(ctx, f, "")
	if err != nil {
		return nil, 0, fmt.Errorf("counting runs: %w", err)
	}
	for {
		if f.Limit = 500; q.Limit > 0 {
			f.Limit = min(f.Limit, q.Limit-len(list))
		}
		p, err := l.Engine.List(ctx, f)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, l.readAll(ctx, p.Runs, live, names)...)
		if f.After = p.Next; p.Next == "" || q.Limit > 0 && len(list) >= q.Limit {
			return list, counts[""], nil
		}
	}
}

func wanted(row *store.Run, q Query) bool {
	has := func(n int, is func(i int) bool) bool {
		for i := range n {
			if is(i) {
				return true
			}
		}
		return n == 0
	}
	return has(len(q.Statuses), func(i int) bool { return q.Statuses[i] == row.Status }) &&
		has(len(q.Workflows), func(i int) bool { return q.Workflows[i] == row.Workflow })
}

// read adds to a row where the run stands. A run whose events cannot be read is listed
// as corrupt, and does not keep others from being listed.
func (l *Local) read(ctx context.Context, row *store.Run, live map[string]store.Executor, names declared) *Run {
	tail, err := l.tail(ctx, row)
	return l.stands(ctx, row, tail, err, live, names)
}

func (s *Run) unreadable(err error) {
	s.Resumable, s.Damage = false, err
	s.Corrupt = errors.Is(err, store.ErrCorrupt)
	if s.Code == "" {
		s.Code, s.Reason = durable.CodeDamaged, err.Error()
	}
}

// Run implements Target.
func (l *Local) Run(ctx context.Context, id string) (*Run, error) {
	live, err := l.live(ctx)
	if err != nil {
		return nil, err
	}
	i, err := l.Engine.Get(ctx, id)
	if errors.Is(err, durable.ErrNoHistory) {
		h, lerr := l.Store.Load(ctx, id, store.Cursor{NoEvents: true})
		if lerr != nil {
			return nil, l.Lost(id, lerr)
		}
		s := l.stands(ctx, &h.Run, nil, err, live, declared{})
		s.Info, s.RowOnly = &durable.Info{Run: h.Run}, true
		return s, nil
	}
	if err != nil {
		return nil, l.Lost(id, err)
	}
	s := l.read(ctx, &i.Run, live, declared{})
	s.Headers, s.Env, s.Info = i.Headers, i.Environment, &i
	if !l.Mounted {
		i.Differences = nil // they say nothing about a program that executes nothing
	}
	return s, nil
}

// LastInterrupted implements Target.
func (l *Local) LastInterrupted(ctx context.Context) (*Run, error) {
	row, err := operate.On(l.Engine).LastInterrupted(ctx)
	if errors.Is(err, durable.ErrNotFound) {
		return nil, show.NothingToResume(l.commands)
	}
	if err != nil {
		return nil, err
	}
	return l.Run(ctx, row.ID)
}

// Approvals implements Target.
func (l *Local) Approvals(ctx context.Context, id string) ([]durable.Approval, error) {
	open, err := operate.On(l.Engine).ApprovalsOf(ctx, id)
	return open, l.Lost(id, err)
}

// Answer implements Target.
func (l *Local) Answer(ctx context.Context, to durable.Approval, a Answer) (json.RawMessage, error) {
	value, err := a.verdict(&to)
	if err != nil {
		return nil, err
	}
	return value, l.Lost(to.RunID, operate.On(l.Engine).Answer(ctx, to, value))
}

// Start implements Target.
func (l *Local) Start(ctx context.Context, workflow string, s NewRun) (string, error) {
	if s.ID == "" {
		s.ID = durable.AutoID
	}
	o := s.options()
	if l.Mounted || l.HasCode { // else this is a terminal without code, in which no run continues
		o = append(o, durable.Header(CommandHeader, strings.Join(l.commands.Program, " ")))
	}
	return operate.On(l.Engine).StartJSON(ctx, workflow, s.ID, s.Input, o...)
}

// Stuck implements Target.
func (l *Local) Stuck(ctx context.Context, limit int) ([]Stuck, error) {
	all, err := operate.On(l.Engine).Stuck(ctx, limit)
	if err != nil {
		return nil, err
	}
	list := make([]Stuck, 0, len(all))
	nobody := map[[2]string]bool{} // no process executes this version of this workflow, and this program adds nothing to that
	for _, one := range all {
		reason, code := one.Reason, [2]string{one.Workflow, one.Version}
		if _, known := nobody[code]; one.Code == durable.CodeNotRegistered && !known {
			other := l.Mounted && l.Serves(ctx, one.Workflow, "") && !l.Serves(ctx, one.Workflow, one.Version)
			nobody[code] = !other && !l.OthersServe(ctx, one.Workflow)
		}
		if one.Code == durable.CodeNotRegistered && nobody[code] {
			reason = "nobody alive runs " + one.Workflow // the reason that the engine gives is about this program
		}
		list = append(list, Stuck{ID: one.RunID, Workflow: one.Workflow, Code: one.Code, Reason: reason, Next: l.nextFor(ctx, one), Since: show.RFC3339(one.Since), Moved: one.Since})
	}
	return list, nil
}

// nextFor says what to do about a run that is stuck, as a command if one helps.
func (l *Local) nextFor(ctx context.Context, one durable.Stuck) string {
	if history.UnreadInput(one.Code, one.Reason) {
		return l.commands.Self("cancel", one.RunID)
	}
	switch one.Code {
	case durable.CodePaused:
		return l.commands.Self("unpause", one.RunID)
	case durable.CodeQuarantined, durable.CodeUndecodable, durable.CodeDefinitionChanged, durable.CodeUnrecorded, durable.CodeChildMissing, durable.CodeChildNotRegistered:
		return l.commands.Self("resume", one.RunID, "--dry-run")
	case durable.CodeDamaged:
		if one.Reason == durable.ErrNoHistory.Error() {
			return l.commands.Self("checkpoints", "delete", one.RunID, "--dry-run")
		}
		return l.commands.Self("checkpoints", "repair", one.RunID, "--dry-run")
	}
	if s, err := l.Run(ctx, one.RunID); err == nil {
		if run := l.Code(ctx, s); run != "" {
			return run
		}
		if one.Code == durable.CodeNotRegistered && !l.Mounted {
			return s.Starter()
		}
	}
	if one.Code == durable.CodeNotRegistered || one.Code == durable.CodeQueueNotServed || one.Next == "" {
		return one.Next
	}
	return l.commands.Self("resume", one.RunID, "--dry-run")
}

// Outline implements Target.
func (l *Local) Outline(ctx context.Context, id string) (*outline.Builder, *Run, error) {
	s, err := l.Run(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	executors, err := l.Store.Executors(ctx)
	if err != nil {
		return nil, nil, err
	}
	// This program serves the workflow, but only claims the run that it is told to.
	executors = slices.DeleteFunc(executors, func(x store.Executor) bool { return x.ID == l.Engine.ID() && s.Owner != x.ID })
	h, err := l.Store.Load(ctx, id, store.Cursor{All: true, AfterMessage: 1<<63 - 1})
	if err != nil {
		return nil, nil, l.Lost(id, err)
	}
	line, err := l.line(ctx, &h.Run)
	if err != nil {
		return nil, nil, err
	}
	s.Line = wire.Line(line, store.TimeOf(time.Now()), time.Local)
	b := outline.New(outline.Input{Run: h.Run, Branches: h.Branches, Executors: executors, Line: line, Now: store.TimeOf(time.Now()), Zone: time.Local})
	for ev, err := range h.Events {
		if err != nil {
			s.unreadable(err)
			break // the events read so far are still shown
		}
		b.Add(&ev)
	}
	return b, s, nil
}

// KeptSignals returns the names of the signals that a run has not taken, o being its outline: those
// that no wait of it is for now (most are mistyped; some come early), and those that one takes once
// the run is executed, without the answers to questions, which Approvals knows.
func (l *Local) KeptSignals(ctx context.Context, id string, o *outline.Outline) (kept, arrived []string, err error) {
	h, err := l.Store.Load(ctx, id, store.Cursor{})
	if err != nil {
		return nil, nil, l.Lost(id, err)
	}
	past, err := history.Read(id, h.Events, o.Events)
	if err != nil {
		return nil, nil, err
	}
	for i := range h.Inbox {
		m := &h.Inbox[i]
		if m.Kind != store.KindSignal || past.Consumed(m) || slices.Contains(kept, m.Name) || slices.Contains(arrived, m.Name) {
			continue
		}
		if open, _ := o.Listening(m.Name); len(open) == 0 {
			kept = append(kept, m.Name)
		} else if open[0].Kind == outline.Wait {
			arrived = append(arrived, m.Name)
		}
	}
	return kept, arrived, nil
}

// An Unawaited is a run that waits, and has signals that none of its waits is for.
type Unawaited struct {
	ID    string
	Kept  []string // names of the signals, as they came
	Waits []string // names that it waits for
}

// Unawaited lists the runs that wait for a signal and have others instead; none if more runs
// wait than limit, and of any number if it is 0. A run that cannot be read is left to those
// who list damage.
func (l *Local) Unawaited(ctx context.Context, limit int) ([]Unawaited, error) {
	waiting := store.Filter{Statuses: []store.Status{store.Waiting}, OldestFirst: true, Limit: max(limit, 0)}
	if limit == 0 {
		waiting.Limit = unawaitedPage
	}
	var list []Unawaited
	for {
		page, err := l.Store.List(ctx, waiting)
		if err != nil {
			return nil, l.Lost("", err)
		}
		if limit > 0 && page.Next != "" {
			return nil, nil
		}
		for _, row := range page.Runs {
			if row.Inbox == 0 {
				continue
			}
			b, _, err := l.Outline(ctx, row.ID)
			if err != nil {
				continue
			}
			o := b.Outline()
			kept, _, err := l.KeptSignals(ctx, row.ID, o)
			if _, waits := o.Listening(""); err == nil && len(kept) > 0 && len(waits) > 0 {
				list = append(list, Unawaited{row.ID, kept, waits})
			}
		}
		if page.Next == "" {
			return list, nil
		}
		waiting.After = page.Next
	}
}

// unawaitedPage is how many waiting runs are listed at a time.
const unawaitedPage = 1000

// Branches implements Target.
func (l *Local) Branches(ctx context.Context, id string) ([]operate.BranchInfo, error) {
	b, err := operate.On(l.Engine).Branches(ctx, id)
	return b, l.Lost(id, err)
}

// Cancel implements Target.
func (l *Local) Cancel(ctx context.Context, id, reason string) error {
	return l.Lost(id, l.Engine.Cancel(ctx, id, reason))
}

// Pause implements Target.
func (l *Local) Pause(ctx context.Context, id, reason string) error {
	return l.Lost(id, l.Engine.Pause(ctx, id, reason))
}

// Unpause implements Target.
func (l *Local) Unpause(ctx context.Context, id string) error {
	return l.Lost(id, l.Engine.Unpause(ctx, id))
}

// Signal implements Target.
func (l *Local) Signal(ctx context.Context, id, name string, value json.RawMessage, signalID string) error {
	var o []durable.SignalOption
	if signalID != "" {
		o = append(o, durable.SignalID(signalID))
	}
	return l.Lost(id, l.Engine.Signal(ctx, id, name, value, o...))
}

// Fork implements Target.
func (l *Local) Fork(ctx context.Context, id string, o operate.ForkOptions) (string, error) {
	made, err := operate.On(l.Engine).Fork(ctx, id, o)
	return made, l.Lost(id, err)
}

// PlanFork implements Target.
func (l *Local) PlanFork(ctx context.Context, id string, o operate.ForkOptions) (operate.Plan, error) {
	p, err := operate.On(l.Engine).PlanFork(ctx, id, o)
	return p, l.Lost(id, err)
}

// Watch implements Target.
func (l *Local) Watch(ctx context.Context, id string, after int64) iter.Seq2[store.Event, error] {
	return l.Engine.Watch(ctx, id, after)
}

// History implements Target.
func (l *Local) History(ctx context.Context, id string) iter.Seq2[store.Event, error] {
	return l.Engine.History(ctx, id)
}

// Executing returns the step that this process is executing, for views.
func (l *Local) Executing(id string) (key string, ok bool) { return l.Engine.Executing(id) }

// Value implements Target.
func (l *Local) Value(id string, ev store.Event) json.RawMessage {
	p, err := operate.On(l.Engine).Payload(id, ev)
	if err != nil {
		return nil
	}
	return JSON(p)
}

// Standing implements Target.
func (l *Local) Standing(ctx context.Context, id string) (operate.Standing, error) {
	st, err := operate.On(l.Engine).Standing(ctx, id)
	return st, l.Lost(id, err)
}

// Output implements Target.
func (l *Local) Output(ctx context.Context, id string) (json.RawMessage, error) {
	h, err := l.Store.Load(ctx, id, store.Cursor{Tail: 1, AfterMessage: 1<<63 - 1})
	if err != nil {
		return nil, l.Lost(id, err)
	}
	if h.Run.Last == nil || h.Run.Last.Type != store.WorkflowCompleted {
		return nil, nil
	}
	p, err := operate.On(l.Engine).Payload(id, *h.Run.Last)
	if err != nil {
		return nil, err
	}
	return JSON(p), nil
}

// JSON returns a payload as JSON: the payload itself if it is JSON, else its text for
// people, as a string.
func JSON(p operate.Payload) json.RawMessage {
	if p.Codec == "" || len(p.Data) == 0 {
		return nil
	}
	if json.Valid(p.Data) {
		return p.Data
	}
	b, err := json.Marshal(p.String())
	if err != nil {
		return nil
	}
	return b
}

// Difference implements Target.
func (l *Local) Difference(ctx context.Context, s *Run) *durable.DefinitionChangedError {
	if s.Code != durable.CodeDefinitionChanged {
		return nil
	}
	h, err := durable.Ref[json.RawMessage, json.RawMessage](s.Workflow).Handle(durable.NewContext(ctx, l.Engine), s.ID)
	if err != nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	var changed *durable.DefinitionChangedError
	if _, err := h.Wait(ctx); errors.As(err, &changed) {
		return changed
	}
	return nil
}

// CheckpointOf implements Target.
func (l *Local) CheckpointOf(ctx context.Context, id, step string) (int64, error) {
	n, err := operate.On(l.Engine).CheckpointOf(ctx, id, step)
	return n, l.Lost(id, err)
}

// FirstCheckpoint implements Target.
func (l *Local) FirstCheckpoint(ctx context.Context, id string) int64 {
	for ev, err := range l.Engine.History(ctx, id) {
		if err != nil {
			break
		}
		if ev.Type.Stable() {
			return ev.Seq
		}
	}
	return 1
}
