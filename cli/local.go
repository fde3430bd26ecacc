package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// local acts on a store through an engine.
type local struct {
	call    *call
	eng     *durable.Engine
	st      store.Store
	mounted bool // the engine is the program's own, and executes
}

// lost says of an error that the run it is about does not exist, where it does.
func (l *local) lost(id string, err error) error {
	if err == nil || !errors.Is(err, durable.ErrNotFound) {
		return err
	}
	var at *durable.CheckpointError
	if errors.As(err, &at) {
		return err
	}
	return l.call.unknownRun(id)
}

// nothing says that there is no run to resume.
func (c *call) nothing() *failure {
	return &failure{code: "nothing_to_resume", exit: ExitNotFound, message: "Nothing to resume. List: " + c.self("sessions", "ls"), err: durable.ErrNotFound}
}

// unknownRun is what a store says of a run that is not there.
func (c *call) unknownRun(id string) *failure {
	return &failure{code: "not_found", exit: ExitNotFound, message: "Session not found: " + id, next: "List: " + c.self("sessions", "ls"), err: durable.ErrNotFound}
}

// live returns the executors that live.
func (l *local) live(ctx context.Context) (map[string]store.Executor, error) {
	executors, err := l.st.Executors(ctx)
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

func (l *local) sessions(ctx context.Context, q query) ([]Session, int64, error) {
	live, err := l.live(ctx)
	if err != nil {
		return nil, 0, err
	}
	names := declared{}
	var list []Session
	if q.resumable {
		var rows []store.Run
		// Of those that the engine would resume, some have nothing to resume from.
		look := func() {
			for _, s := range l.readAll(ctx, rows, live, names) {
				if s.Resumable && (q.limit == 0 || len(list) < q.limit) {
					list = append(list, s)
				}
			}
			rows = nil
		}
		for row, err := range l.eng.ListResumable(ctx) {
			if err != nil {
				return nil, 0, err
			}
			if !wanted(&row, q) {
				continue
			}
			if rows = append(rows, row); len(rows) == cmp.Or(q.limit, 500) {
				look()
			}
			if q.limit > 0 && len(list) == q.limit {
				break
			}
		}
		look()
		return list, int64(len(list)), nil
	}
	f := store.Filter{Statuses: q.statuses, Workflows: q.workflows, WithLast: true}
	counts, err := l.st.Count(ctx, f, "")
	if err != nil {
		return nil, 0, fmt.Errorf("counting runs: %w", err)
	}
	for {
		if f.Limit = 500; q.limit > 0 {
			f.Limit = min(f.Limit, q.limit-len(list))
		}
		p, err := l.eng.List(ctx, f)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, l.readAll(ctx, p.Runs, live, names)...)
		if f.After = p.Next; p.Next == "" || q.limit > 0 && len(list) >= q.limit {
			return list, counts[""], nil
		}
	}
}

func wanted(row *store.Run, q query) bool {
	has := func(n int, is func(i int) bool) bool {
		for i := range n {
			if is(i) {
				return true
			}
		}
		return n == 0
	}
	return has(len(q.statuses), func(i int) bool { return q.statuses[i] == row.Status }) &&
		has(len(q.workflows), func(i int) bool { return q.workflows[i] == row.Workflow })
}

// read adds to a row where the run stands. A run whose events cannot be read is
// listed as corrupt, and keeps no other from being listed.
func (l *local) read(ctx context.Context, row *store.Run, live map[string]store.Executor, names declared) *Session {
	tail, err := l.tail(ctx, row)
	return l.stands(ctx, row, tail, err, live, names)
}

func (s *Session) unreadable(err error) {
	s.Resumable, s.damage = false, err
	s.Corrupt = errors.Is(err, store.ErrCorrupt)
	if s.Code == "" {
		s.Code, s.Reason = durable.CodeDamaged, err.Error()
	}
}

func (l *local) session(ctx context.Context, id string) (*Session, error) {
	live, err := l.live(ctx)
	if err != nil {
		return nil, err
	}
	i, err := l.eng.Get(ctx, id)
	if errors.Is(err, durable.ErrNoHistory) {
		h, lerr := l.st.Load(ctx, id, store.Cursor{NoEvents: true})
		if lerr != nil {
			return nil, l.lost(id, lerr)
		}
		s := l.stands(ctx, &h.Run, nil, err, live, declared{})
		s.info, s.rowOnly = &durable.Info{Run: h.Run}, true
		return s, nil
	}
	if err != nil {
		return nil, l.lost(id, err)
	}
	s := l.read(ctx, &i.Run, live, declared{})
	s.headers, s.env, s.info = i.Headers, i.Environment, &i
	if !l.mounted {
		i.Differences = nil // of a program that executes nothing they say nothing
	}
	return s, nil
}

func (l *local) lastInterrupted(ctx context.Context) (*Session, error) {
	row, err := l.eng.LastInterrupted(ctx)
	if errors.Is(err, durable.ErrNotFound) {
		return nil, l.call.nothing()
	}
	if err != nil {
		return nil, err
	}
	return l.session(ctx, row.ID)
}

func (l *local) approvals(ctx context.Context, id string) ([]durable.Approval, error) {
	open, err := l.eng.ApprovalsOf(ctx, id)
	return open, l.lost(id, err)
}

func (l *local) answer(ctx context.Context, to durable.Approval, a answerOf) (json.RawMessage, error) {
	value, err := a.verdict(&to)
	if err != nil {
		return nil, err
	}
	return value, l.lost(to.RunID, l.eng.Answer(ctx, to, value))
}

func (l *local) start(ctx context.Context, workflow string, s newRun) (string, error) {
	if s.id == "" {
		s.id = durable.AutoID
	}
	return l.eng.StartJSON(ctx, workflow, s.id, s.input, durable.Header(commandHeader, strings.Join(l.call.mount(), " ")), durable.Exclusive(s.exclusive...))
}

func (l *local) stuck(ctx context.Context) ([]stuckRun, error) {
	all, err := l.eng.Stuck(ctx, 0)
	if err != nil {
		return nil, err
	}
	list := make([]stuckRun, 0, len(all))
	nobody := map[[2]string]bool{} // executes this version of this workflow, and what this program has says nothing more of it
	for _, one := range all {
		reason, code := one.Reason, [2]string{one.Workflow, one.Version}
		if _, known := nobody[code]; one.Code == durable.CodeNotRegistered && !known {
			other := l.mounted && l.call.serves(one.Workflow, "") && !l.call.serves(one.Workflow, one.Version)
			nobody[code] = !other && !l.somebodyElseServes(ctx, one.Workflow)
		}
		if one.Code == durable.CodeNotRegistered && nobody[code] {
			reason = "nobody alive runs " + one.Workflow // what this program has says nothing of it
		}
		list = append(list, stuckRun{ID: one.RunID, Workflow: one.Workflow, Code: one.Code, Reason: reason, Next: l.nextFor(ctx, one)})
	}
	return list, nil
}

// nextFor says what to do about a run that is stuck, as a command where there is
// one.
func (l *local) nextFor(ctx context.Context, one durable.Stuck) string {
	switch one.Code {
	case durable.CodePaused:
		return l.call.self("unpause", one.RunID)
	case durable.CodeQuarantined, durable.CodeUndecodable, durable.CodeDefinitionChanged, durable.CodeUnrecorded, durable.CodeChildMissing:
		return l.call.self("resume", one.RunID, "--dry-run")
	case durable.CodeDamaged:
		if one.Reason == durable.ErrNoHistory.Error() {
			return l.call.self("checkpoints", "delete", one.RunID, "--dry-run")
		}
		return l.call.self("checkpoints", "repair", one.RunID, "--dry-run")
	}
	if s, err := l.session(ctx, one.RunID); err == nil {
		if run := l.call.code(s); run != "" {
			return run
		}
	}
	if one.Code == durable.CodeNotRegistered || one.Next == "" {
		return one.Next
	}
	return l.call.self("resume", one.RunID, "--dry-run")
}

func (l *local) tell(ctx context.Context, id string) (*outline.Builder, *Session, error) {
	s, err := l.session(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	executors, err := l.st.Executors(ctx)
	if err != nil {
		return nil, nil, err
	}
	// This program serves the workflow, and takes up no run but the one it is told.
	executors = slices.DeleteFunc(executors, func(x store.Executor) bool { return x.ID == l.eng.ID() && s.Owner != x.ID })
	h, err := l.st.Load(ctx, id, store.Cursor{All: true, AfterMessage: 1<<63 - 1})
	if err != nil {
		return nil, nil, l.lost(id, err)
	}
	b := outline.New(outline.Input{Run: h.Run, Branches: h.Branches, Executors: executors, Now: store.TimeOf(time.Now()), Zone: time.Local})
	for ev, err := range h.Events {
		if err != nil {
			s.unreadable(err)
			break // what came before is still told
		}
		b.Add(&ev)
	}
	return b, s, nil
}

func (l *local) branches(ctx context.Context, id string) ([]durable.BranchInfo, error) {
	b, err := l.eng.Branches(ctx, id)
	return b, l.lost(id, err)
}

func (l *local) resume(ctx context.Context, id string, o durable.ResumeOptions) (durable.Plan, error) {
	p, err := l.eng.Resume(ctx, id, o)
	return p, l.lost(id, err)
}

func (l *local) cancel(ctx context.Context, id, reason string) error {
	return l.lost(id, l.eng.Cancel(ctx, id, reason))
}

func (l *local) pause(ctx context.Context, id, reason string) error {
	return l.lost(id, l.eng.Pause(ctx, id, reason))
}

func (l *local) unpause(ctx context.Context, id string) error {
	return l.lost(id, l.eng.Unpause(ctx, id))
}

func (l *local) signal(ctx context.Context, id, name string, value json.RawMessage, signalID string) error {
	var o []durable.SignalOption
	if signalID != "" {
		o = append(o, durable.SignalID(signalID))
	}
	return l.lost(id, l.eng.Signal(ctx, id, name, value, o...))
}

func (l *local) fork(ctx context.Context, id string, o durable.ForkOptions) (string, error) {
	made, err := l.eng.Fork(ctx, id, o)
	return made, l.lost(id, err)
}

func (l *local) planFork(ctx context.Context, id string, o durable.ForkOptions) (durable.Plan, error) {
	p, err := l.eng.PlanFork(ctx, id, o)
	return p, l.lost(id, err)
}

func (l *local) Watch(ctx context.Context, id string, after int64) iter.Seq2[store.Event, error] {
	return l.eng.Watch(ctx, id, after)
}

func (l *local) History(ctx context.Context, id string) iter.Seq2[store.Event, error] {
	return l.eng.History(ctx, id)
}

// Executing is what a view asks to show the step under way in this process.
func (l *local) Executing(id string) (key string, ok bool) { return l.eng.Executing(id) }

func (l *local) value(id string, ev store.Event) json.RawMessage {
	p, err := l.eng.Payload(id, ev)
	if err != nil {
		return nil
	}
	return jsonOf(p)
}

func (l *local) standing(ctx context.Context, id string) (durable.Standing, error) {
	st, err := l.eng.Standing(ctx, id)
	return st, l.lost(id, err)
}

func (l *local) output(ctx context.Context, id string) (json.RawMessage, error) {
	h, err := l.st.Load(ctx, id, store.Cursor{Tail: 1, AfterMessage: 1<<63 - 1})
	if err != nil {
		return nil, l.lost(id, err)
	}
	if h.Run.Last == nil || h.Run.Last.Type != store.WorkflowCompleted {
		return nil, nil
	}
	p, err := l.eng.Payload(id, *h.Run.Last)
	if err != nil {
		return nil, err
	}
	return jsonOf(p), nil
}

// jsonOf returns a payload as JSON: itself where it is, else the text for people,
// as a string.
func jsonOf(p durable.Payload) json.RawMessage {
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

func (l *local) changed(ctx context.Context, s *Session) *durable.DefinitionChangedError {
	if s.Code != durable.CodeDefinitionChanged {
		return nil
	}
	h, err := durable.Ref[json.RawMessage, json.RawMessage](s.Workflow).Handle(durable.NewContext(ctx, l.eng), s.ID)
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
