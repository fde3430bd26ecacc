package target

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Remote acts on the runs of a server. Its messages are those prescribed for servers.
type Remote struct {
	commands *show.Commands
	c        *client.Client
}

// Connect returns a target on a server. Nothing is sent yet.
func Connect(p Place, c *show.Commands) (*Remote, error) {
	var o client.Options
	if p.Token != "" {
		o.Header = http.Header{"Authorization": {"Bearer " + p.Token}}
	}
	cl, err := client.New(p.Server, o)
	if err != nil {
		return nil, show.Usage("%s (from %s)", strings.TrimPrefix(err.Error(), "client: "), p.From)
	}
	return &Remote{commands: c, c: cl}, nil
}

// said turns an error of the client into what a command says.
func (r *Remote) said(err error) error {
	var e *client.Error
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, client.ErrUnreachable):
		return &show.Failure{Code: "server_not_running", Exit: show.ExitUnreachable, Message: "Server not running", Next: "Start it, or: " + r.commands.ThisWith("--store", "DSN"), Err: err}
	case !errors.As(err, &e):
		return err
	}
	f := &show.Failure{Code: show.OrElse(e.Code, "server"), Exit: show.ExitFailed, Message: show.Flags(e.Message), Next: show.Escape(e.Next), Err: err}
	switch {
	case e.Code == "" && (e.Status == http.StatusBadGateway || e.Status == http.StatusServiceUnavailable || e.Status == http.StatusGatewayTimeout):
		// A proxy answers in the place of the program.
		f.Exit, f.Code, f.Message = show.ExitUnreachable, "server_not_running", "Server not running: what answers at "+r.c.Server()+" does not reach it ("+e.Message+")"
		f.Next = "Start it, or name its store: --store DSN"
	case e.Code == "no_route" || e.Code == "" && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotImplemented):
		// Neither a run nor anything else is missing: the address is.
		f.Exit, f.Code, f.Message = show.ExitUnreachable, "no_route", "The program at "+r.c.Server()+" does not have what this command asks for. Nothing was changed"
		f.Next = "Either --server lacks the path where its pages are mounted, or its version is older than this terminal: then use that version's terminal, or act on the store: --store DSN"
	case errors.Is(err, client.ErrNotFound):
		f.Exit, f.Code, f.Message, f.Next = show.ExitNotFound, "not_found", "Workflow not found", "List: "+r.commands.Self("sessions", "ls")
		f.Err = errors.Join(err, durable.ErrNotFound)
	case errors.Is(err, client.ErrConflict):
		f.Exit = show.ExitRefused
	case errors.Is(err, client.ErrInvalid):
		f.Exit = show.ExitUsage
	case errors.Is(err, client.ErrUnauthenticated), errors.Is(err, client.ErrForbidden):
		f.Exit = show.ExitRefused
		if f.Next == "" {
			f.Next = "Say who is asking: set DURABLE_TOKEN, or token in a profile."
		}
	case errors.Is(err, client.ErrBusy), e.Status == http.StatusServiceUnavailable:
		f.Exit = show.ExitUnreachable
	case e.Code == "unrecoverable", e.Code == "unrepairable":
		f.Exit = show.ExitRefused
	}
	if next := r.inCommands(e); next != "" {
		f.Next = next
	}
	return f
}

// inCommands says what to do about a refusal as a command, where the server names a
// route; empty: what the server says will do.
func (r *Remote) inCommands(e *client.Error) string {
	args := r.commands.Args
	if len(args) == 0 {
		return ""
	}
	id := args[0]
	switch {
	case e.Code == "busy" && strings.Contains(e.Next, "/pause"):
		return "Pause it, then try again: " + r.commands.Self("pause", id)
	case e.Code == "not_resumable" && strings.HasSuffix(e.Next, "/unpause"):
		return "Let it go on: " + r.commands.Self("unpause", id)
	case e.Code == "no_checkpoint" && e.Next != "":
		return "Restart from its input: " + r.commands.Self("resume", id, "--force")
	}
	return ""
}

// rowOf returns the row of a run that a server sent.
func rowOf(r *client.Run) *store.Run {
	row := &store.Run{
		ID: r.ID, Workflow: r.Workflow, Version: r.Version, InitialVersion: r.InitialVersion, Status: store.Status(r.Status), Code: r.Code, Reason: r.Reason,
		Recoverable: r.Recoverable, Paused: r.Paused, CancelAsked: r.CancelAsked, Owner: r.Owner, Branch: int32(r.Branch), Generation: int32(r.Generation), Resumes: int32(r.Resumes),
		Queue: r.Queue, Partition: r.Partition, Priority: int32(r.Priority), Parent: r.Parent, ParentKey: r.ParentKey, ForkedFrom: r.ForkedFrom,
		CreatedAt: store.TimeOf(r.CreatedAt), StartedAt: store.TimeOf(r.StartedAt), UpdatedAt: store.TimeOf(r.UpdatedAt), EndedAt: store.TimeOf(r.EndedAt),
		WakeAt: store.TimeOf(r.WakeAt), DeadlineAt: store.TimeOf(r.DeadlineAt), Attributes: r.Attributes,
	}
	if r.LastSeq > 0 {
		row.Last = &store.Event{Seq: r.LastSeq, Type: store.Type(r.LastType), Key: r.Key, Attempt: int32(r.Attempt), At: store.TimeOf(r.LastAt), Steps: int32(r.Steps)}
	}
	return row
}

func eventOf(e *client.Event) store.Event {
	ev := store.Event{
		Seq: e.Seq, Type: store.Type(e.Type), Branch: int32(e.Branch), Key: e.Key, Attempt: int32(e.Attempt), Ordinal: int32(e.Ordinal),
		At: store.TimeOf(e.At), Took: time.Duration(e.TookMS * float64(time.Millisecond)), Steps: int32(e.Steps),
	}
	if len(e.Data) > 0 {
		ev.Data, _ = json.Marshal(e.Data) // it was decoded from JSON
	}
	if e.Payload != nil && !e.Payload.Redacted && !e.Payload.Truncated {
		ev.Payload = e.Payload.Value
	}
	return ev
}

// runOf returns a run that a server sent as the commands show it.
func runOf(r *client.Run, tail []store.Event) *Run {
	live := map[string]store.Executor{}
	if r.Executed == nil || *r.Executed { // a list does not say; the status says enough there
		live[r.Owner] = store.Executor{}
	}
	s := newRun(rowOf(r), live)
	s.Live = r.Executed != nil && *r.Executed
	if tail == nil && r.LastSeq > 0 {
		tail = []store.Event{*rowOf(r).Last}
	}
	if d := r.Damage; d != nil {
		s.unreadable(&durable.DamagedError{RunID: r.ID, Seq: d.Seq, Err: errors.New(d.Text)})
	}
	s.Line = r.Line
	s.locate(tail, r.Declared)
	if s.Damage == nil {
		s.judge(tail)
	}
	return s
}

// Runs implements Target.
func (r *Remote) Runs(ctx context.Context, q Query) (list []Run, total int64, err error) {
	o := client.ListOptions{Workflows: q.Workflows, Queues: q.Queues, OldestFirst: q.Oldest, Counts: true}
	for _, st := range q.Statuses {
		o.Statuses = append(o.Statuses, string(st))
	}
	if q.Resumable && len(o.Statuses) == 0 {
		o.Statuses = []string{"interrupted", "failed", "running", "resuming"}
	}
	for first := true; ; first = false {
		if o.Limit = 100; q.Limit > 0 && !q.Resumable {
			o.Limit = min(o.Limit, q.Limit-len(list))
		}
		page, err := r.c.ListRuns(ctx, o)
		if err != nil {
			return nil, 0, r.said(err)
		}
		for status, n := range page.Counts {
			if first && (len(o.Statuses) == 0 || slices.Contains(o.Statuses, status)) {
				total += n
			}
		}
		for i := range page.Runs {
			s := runOf(&page.Runs[i], nil)
			if q.Resumable && !s.Resumable {
				continue
			}
			if list = append(list, *s); q.Limit > 0 && len(list) == q.Limit {
				break
			}
		}
		if o.Cursor = page.Next; o.Cursor == "" || q.Limit > 0 && len(list) >= q.Limit {
			if q.Resumable {
				total = int64(len(list))
			}
			return list, max(total, int64(len(list))), nil
		}
	}
}

// Run implements Target.
func (r *Remote) Run(ctx context.Context, id string) (*Run, error) {
	run, err := r.c.GetRun(ctx, id)
	if err != nil {
		return nil, r.said(err)
	}
	page, err := r.c.Events(ctx, id, client.EventsOptions{Tail: tailed})
	if err != nil {
		return nil, r.said(err)
	}
	tail := make([]store.Event, 0, len(page.Events))
	for i := range page.Events {
		tail = append(tail, eventOf(&page.Events[i]))
	}
	return runOf(&run, tail), nil
}

// LastInterrupted implements Target.
func (r *Remote) LastInterrupted(ctx context.Context) (*Run, error) {
	list, _, err := r.Runs(ctx, Query{Resumable: true, Statuses: []store.Status{store.Interrupted, store.Running, store.Resuming}})
	if err != nil {
		return nil, err
	}
	var last *Run
	for i := range list {
		if last == nil || list[i].Checkpoint > last.Checkpoint {
			last = &list[i]
		}
	}
	if last == nil {
		return nil, show.NothingToResume(r.commands)
	}
	return r.Run(ctx, last.ID)
}

// Approvals implements Target.
func (r *Remote) Approvals(ctx context.Context, id string) ([]durable.Approval, error) {
	run, err := r.c.GetRun(ctx, id)
	if err != nil {
		return nil, r.said(err)
	}
	var open []durable.Approval
	for _, a := range run.Approvals {
		open = append(open, durable.Approval{
			RunID: a.RunID, Workflow: a.Workflow, Key: a.Key, Name: a.Name, Prompt: a.Prompt, Answer: a.ID,
			AskedAt: store.TimeOf(a.AskedAt), Until: store.TimeOf(a.Until), Seq: a.Seq, Sample: a.Sample,
		})
	}
	return open, nil
}

// Answer implements Target.
func (r *Remote) Answer(ctx context.Context, to durable.Approval, a Answer) (json.RawMessage, error) {
	if _, err := a.verdict(&to); err != nil {
		return nil, err
	}
	_, err := r.c.Answer(ctx, to.RunID, client.Answer{Wait: to.Key, Reason: a.Reason, Value: a.Value, Approved: &a.Yes})
	return a.Value, r.said(err)
}

// Branches implements Target.
func (r *Remote) Branches(ctx context.Context, id string) ([]operate.BranchInfo, error) {
	list, err := r.c.Branches(ctx, id)
	if err != nil {
		return nil, r.said(err)
	}
	var out []operate.BranchInfo
	for _, b := range list {
		out = append(out, operate.BranchInfo{
			N: int32(b.N), Parent: int32(b.Parent), Root: b.Root, Generation: b.Generation, Cutoff: b.Cutoff, Scope: b.Scope, Reason: b.Reason,
			CreatedAt: store.TimeOf(b.CreatedAt), Current: b.Current, InLineage: b.InLineage, Events: b.Events, Left: b.Left,
		})
	}
	return out, nil
}

// Stuck implements Target.
func (r *Remote) Stuck(ctx context.Context, _ int) ([]Stuck, error) {
	list, err := r.c.Stuck(ctx)
	if err != nil {
		return nil, r.said(err)
	}
	out := make([]Stuck, 0, len(list))
	for _, one := range list {
		next := one.Next
		switch one.Code {
		case durable.CodePaused:
			next = r.commands.Self("unpause", one.RunID)
		case durable.CodeQuarantined, durable.CodeUndecodable, durable.CodeDefinitionChanged, durable.CodeUnrecorded, operate.CodeOrphaned, durable.CodeChildMissing, durable.CodeChildNotRegistered, durable.CodeStranded:
			next = r.commands.Self("resume", one.RunID, "--dry-run")
		}
		if history.UnreadInput(one.Code, one.Reason) {
			next = r.commands.Self("cancel", one.RunID)
		}
		out = append(out, Stuck{ID: one.RunID, Workflow: one.Workflow, Code: one.Code, Reason: one.Reason, Next: next, Since: show.RFC3339(store.TimeOf(one.Since)), Moved: store.TimeOf(one.Since)})
	}
	return out, nil
}

// Start implements Target.
func (r *Remote) Start(ctx context.Context, workflow string, s NewRun) (string, error) {
	done, err := r.c.Start(ctx, workflow, client.StartRequest{
		ID: s.ID, Input: s.Input, Exclusive: s.Exclusive, Attributes: s.Attributes, Queue: s.Queue, Partition: s.Partition,
		Priority: s.Priority, Dedup: s.Dedup, DelayMS: s.Delay.Milliseconds(), DeadlineMS: s.Deadline.Milliseconds(),
	})
	return done.RunID, r.said(err)
}

// Resume implements Target.
func (r *Remote) Resume(ctx context.Context, id string, o operate.ResumeOptions) (operate.Plan, error) {
	co := client.ResumeOptions{FromCheckpoint: o.FromCheckpoint, ResetFailures: o.ResetFailures, Force: o.Force, DryRun: o.DryRun}
	done, err := r.c.Resume(ctx, id, co)
	if err != nil {
		err = r.said(err)
		var f *show.Failure
		if errors.As(err, &f) && f.Code == "no_checkpoint" && f.Next == "" && o.FromCheckpoint == 0 {
			f.Next = "Restart from its input: " + r.commands.Self("resume", id, "--force")
		}
		return operate.Plan{}, err
	}
	return planFrom(&done.Plan), nil
}

// planFrom returns a plan as an engine returns it.
func planFrom(p *client.Plan) operate.Plan {
	return operate.Plan{
		RunID: p.RunID, Workflow: p.Workflow, Status: store.Status(p.Status), From: p.From, Scope: p.Scope, Branch: int32(p.Branch), NewBranch: p.NewBranch,
		Skipped: p.Skipped, Again: p.Again, Edited: p.Edited, Reset: p.Reset, Warnings: p.Warnings, Step: p.Step, Steps: p.Steps, Declared: p.Declared,
		Unchecked: p.Unchecked, Ends: p.Ends,
		Next: operate.ResumePoint{Key: p.Next.Key, Kind: p.Next.Kind, Attempt: p.Next.Attempt, After: p.Next.After, Failed: p.Next.Failed},
	}
}

// Cancel implements Target.
func (r *Remote) Cancel(ctx context.Context, id, reason string) error {
	_, err := r.c.Cancel(ctx, id, reason)
	return r.said(err)
}

// Pause implements Target.
func (r *Remote) Pause(ctx context.Context, id, reason string) error {
	_, err := r.c.Pause(ctx, id, reason)
	return r.said(err)
}

// Unpause implements Target.
func (r *Remote) Unpause(ctx context.Context, id string) error {
	_, err := r.c.Unpause(ctx, id)
	return r.said(err)
}

// Signal implements Target.
func (r *Remote) Signal(ctx context.Context, id, name string, value json.RawMessage, signalID string) error {
	_, err := r.c.Signal(ctx, id, name, value, signalID)
	return r.said(err)
}

// Fork implements Target.
func (r *Remote) Fork(ctx context.Context, id string, o operate.ForkOptions) (string, error) {
	done, err := r.c.Fork(ctx, id, forkRequest(&o))
	return done.RunID, r.said(err)
}

// PlanFork implements Target.
func (r *Remote) PlanFork(ctx context.Context, id string, o operate.ForkOptions) (operate.Plan, error) {
	p, err := r.c.PlanFork(ctx, id, forkRequest(&o))
	if err != nil {
		return operate.Plan{}, r.said(err)
	}
	return planFrom(&p), nil
}

// forkRequest asks a server for a fork; the server itself knows who asks.
func forkRequest(o *operate.ForkOptions) client.ForkRequest {
	req := client.ForkRequest{At: o.At, Reason: o.Reason, Force: o.Force}
	if o.ID != durable.AutoID {
		req.ID = o.ID
	}
	for key, value := range o.Edits {
		if req.Edits == nil {
			req.Edits = map[string]json.RawMessage{}
		}
		req.Edits[key], _ = value.(json.RawMessage) // the command has read it as that
	}
	return req
}

// Outline implements Target.
func (r *Remote) Outline(ctx context.Context, id string) (*outline.Builder, *Run, error) {
	run, err := r.c.GetRun(ctx, id)
	if err != nil {
		return nil, nil, r.said(err)
	}
	branches, err := r.c.Branches(ctx, id)
	if err != nil {
		return nil, nil, r.said(err)
	}
	in := outline.Input{Run: *rowOf(&run), Line: r.line(ctx, run.Line), Now: store.TimeOf(time.Now()), Zone: time.Local}
	for _, b := range branches {
		if b.N > 0 {
			in.Branches = append(in.Branches, store.Branch{N: int32(b.N), Parent: int32(b.Parent), Generation: int32(b.Generation), Cutoff: b.Cutoff, CutScope: b.Scope, Reason: b.Reason, CreatedAt: store.TimeOf(b.CreatedAt)})
		}
	}
	if h, err := r.c.Health(ctx); err == nil { // a user who may read the run may not be allowed to see this
		for _, x := range h.Executors {
			e := store.Executor{ID: x.ID, Name: x.Name, Host: x.Host, PID: x.PID, StartedAt: store.TimeOf(x.StartedAt), BeatAt: store.TimeOf(x.BeatAt), Live: x.Live}
			for _, w := range x.Workflows {
				e.Serves = append(e.Serves, store.Served{Workflow: w, Versions: []string{run.Version}, Queues: x.Queues})
			}
			in.Executors = append(in.Executors, e)
		}
	}
	b := outline.New(in)
	var tail []store.Event
	for e, err := range r.c.History(ctx, id, client.EventsOptions{All: true}) {
		if err != nil {
			return nil, nil, r.said(err)
		}
		ev := eventOf(&e)
		b.Add(&ev)
		if !e.LeftBehind {
			tail = append(tail, ev)
			tail = tail[max(0, len(tail)-tailed):]
		}
	}
	return b, runOf(&run, tail), nil
}

// Output implements Target.
func (r *Remote) Output(ctx context.Context, id string) (json.RawMessage, error) {
	page, err := r.c.Events(ctx, id, client.EventsOptions{Tail: 1})
	if err != nil {
		return nil, r.said(err)
	}
	if len(page.Events) == 0 || page.Events[0].Type != string(store.WorkflowCompleted) {
		return nil, nil
	}
	return eventOf(&page.Events[0]).Payload, nil
}

// Difference is nil: a server says it in the reason.
func (r *Remote) Difference(context.Context, *Run) *durable.DefinitionChangedError { return nil }

// Watch implements Target.
func (r *Remote) Watch(ctx context.Context, id string, after int64) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		for u, err := range r.c.Watch(ctx, id, after) {
			switch {
			case err != nil:
				yield(store.Event{}, r.said(err))
				return
			case u.Event == nil:
			case !yield(eventOf(u.Event), nil):
				return
			}
		}
	}
}

// History implements Target.
func (r *Remote) History(ctx context.Context, id string) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		for e, err := range r.c.History(ctx, id, client.EventsOptions{}) {
			if err != nil {
				yield(store.Event{}, r.said(err))
				return
			}
			if !yield(eventOf(&e), nil) {
				return
			}
		}
	}
}

// Value returns the payload as the server has sent it.
func (r *Remote) Value(_ string, ev store.Event) json.RawMessage { return ev.Payload }

// Standing implements Target.
func (r *Remote) Standing(ctx context.Context, id string) (operate.Standing, error) {
	run, err := r.c.GetRun(ctx, id)
	if err != nil {
		return operate.Standing{}, r.said(err)
	}
	t := operate.Tracker{Names: run.Declared}
	for ev, err := range r.History(ctx, id) {
		if err != nil {
			return operate.Standing{}, err
		}
		if err := t.Add(ev); err != nil {
			return operate.Standing{}, err
		}
	}
	return t.Standing(), nil
}

// CheckpointOf implements Target.
func (r *Remote) CheckpointOf(ctx context.Context, id, step string) (int64, error) {
	at := int64(0)
	for ev, err := range r.History(ctx, id) {
		if err != nil {
			return 0, err
		}
		if ev.Key == step && ev.Type.Stable() {
			at = ev.Seq
		}
	}
	if at == 0 {
		return 0, &operate.CheckpointError{RunID: id, Key: step, Reason: "it has no outcome"}
	}
	return at, nil
}

// FirstCheckpoint implements Target.
func (r *Remote) FirstCheckpoint(ctx context.Context, id string) int64 {
	page, err := r.c.Events(ctx, id, client.EventsOptions{Limit: 100})
	if err != nil {
		return 1
	}
	for i := range page.Events {
		if store.Type(page.Events[i].Type).Stable() {
			return page.Events[i].Seq
		}
	}
	return 1
}

// Code implements Target.
func (r *Remote) Code(_ context.Context, run *Run) string { return recordedCommand(run, r.commands) }

// Who returns nothing: a server names executors by their ids.
func (r *Remote) Who(context.Context, string) string { return "" }

// Revive registers a run that waits for a person with the server's program, which
// may not execute it yet.
func (r *Remote) Revive(ctx context.Context, workflow, id string) error {
	_, err := r.c.ResumeRun(ctx, workflow, id)
	return r.said(err)
}

// Archived lists the runs that the server's archive holds.
func (r *Remote) Archived(ctx context.Context) (client.History, error) {
	h, err := r.c.ArchivedRuns(ctx)
	return h, r.said(err)
}
