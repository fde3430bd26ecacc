package read

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A Reader reads runs for the packages that show them. It may be used concurrently.
type Reader struct {
	*web.Env
	askers askingRuns

	queues, schedules used
	mu                sync.Mutex
	known             []store.Executor // as of knownAt
	knownAt           time.Time
}

// New makes a Reader.
func New(env *web.Env) *Reader { return &Reader{Env: env} }

// An Archive has runs that are kept outside the store.
type Archive interface {
	// Source names the kind of archive.
	Source() string
	// Runs lists the archived runs, most recently ended first.
	Runs(ctx context.Context) ([]client.ArchivedRun, error)
}

// RowOnly reads the row of a run and nothing else.
var RowOnly = store.Cursor{NoEvents: true, AfterMessage: 1<<63 - 1}

// newest reads the events that the verdict on a run needs, without the messages.
var newest = store.Cursor{Tail: outline.Newest, AfterMessage: 1<<63 - 1}

// Run reads a run, with what is known of it besides its row.
func (rd *Reader) Run(ctx context.Context, id string) (client.Run, error) {
	info, err := rd.Engine.Get(ctx, id)
	if err != nil {
		return client.Run{}, err
	}
	// The row must be as of the same moment as the events for the verdict. It is read
	// before the executors, so that an executor that claims the run in between is known.
	hist, err := rd.Engine.Store().Load(ctx, id, newest)
	if err != nil {
		return client.Run{}, fmt.Errorf("run %s: %w", id, web.Unavailable(err))
	}
	info.Run = hist.Run
	executors, err := rd.Executors(ctx)
	if err == nil && hist.Run.Owner != "" && !slices.ContainsFunc(executors, func(x store.Executor) bool { return x.ID == hist.Run.Owner }) {
		executors, err = rd.ExecutorsNow(ctx) // its owner has appeared since they were listed
	}
	if err != nil {
		return client.Run{}, err
	}
	line, err := rd.Line(ctx, &info.Run)
	if err != nil {
		return client.Run{}, err
	}
	run := rd.Wire.Run(&info.Run)
	run.Line = rd.Wire.Line(line)
	run.Declared, run.Exclusive, run.Differences = info.Declared, info.Exclusive, rd.Redact.List(info.Differences)
	if o, err := rd.OutlineOf(hist, executors, line); err == nil {
		run.Verdict = rd.Redact.Text(o.Verdict.Text())
		if o.Damage != nil {
			run.Damage = &client.Damage{Seq: o.Damage.Seq, Text: o.Damage.Err.Error()}
		}
	} else {
		rd.Log.Warn("dashboard: the history of a run cannot be read", "run", id, "error", err)
	}
	run.Nobody = view.Nobody(&info.Run, executors)
	if !info.Run.Status.Terminal() {
		executed := run.Nobody == ""
		run.Executed = &executed
	}
	if !info.Run.Status.Terminal() {
		open, err := operate.On(rd.Engine).ApprovalsOf(ctx, id)
		if err != nil {
			rd.Log.Warn("dashboard: the approvals of a run cannot be read", "run", id, "error", err)
		}
		room := web.Quota(web.ListBytes)
		for i := range open {
			a := rd.Wire.Approval(&open[i])
			if !room.Take(a) {
				break // the others appear as these are answered
			}
			run.Approvals = append(run.Approvals, a)
		}
	}
	return run, nil
}

// Outline reads a run and tells its story.
func (rd *Reader) Outline(ctx context.Context, id string) (*outline.Outline, error) {
	// The row is read before the executors, so that an executor that claims the run in
	// between is known.
	hist, err := rd.Engine.Store().Load(ctx, id, store.Cursor{All: true})
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, web.Unavailable(err))
	}
	executors, err := rd.Engine.Store().Executors(ctx)
	if err != nil {
		return nil, fmt.Errorf("dashboard: listing processes: %w", err)
	}
	line, err := rd.Line(ctx, &hist.Run)
	if err != nil {
		return nil, err
	}
	o, err := rd.OutlineOf(hist, executors, line)
	if err != nil {
		return nil, fmt.Errorf("run %s: reading its history: %w", id, err)
	}
	return o, nil
}

// Line reads where a run stands in line of its queue; nil: in none. It is redacted.
func (rd *Reader) Line(ctx context.Context, run *store.Run) (*outline.Line, error) {
	if !run.NeedsPlace() {
		return nil, nil // most runs
	}
	l, err := operate.On(rd.Engine).Line(ctx, run.ID)
	if err != nil || l == nil {
		return nil, err
	}
	l.Queue.Reason = rd.Redact.Text(l.Queue.Reason)
	return (*outline.Line)(l), nil
}

// OutlineOf tells the story of a history that was read; line is what Line returned.
func (rd *Reader) OutlineOf(hist *store.History, executors []store.Executor, line *outline.Line) (*outline.Outline, error) {
	if executors == nil {
		executors = []store.Executor{} // it is known that there are none
	}
	// Texts are redacted before the story is told. The story cuts texts, and a secret that
	// was cut would not be recognised.
	run, branches := hist.Run, slices.Clone(hist.Branches)
	run.Reason = rd.Redact.Text(run.Reason)
	for i := range branches {
		branches[i].Reason = rd.Redact.Text(branches[i].Reason)
	}
	var damage *history.Damage
	o, err := outline.Of(outline.Input{Run: run, Executing: rd.executing(&hist.Run), Branches: branches, Executors: executors, Line: line, Now: view.Now(), Zone: view.Zone}, rd.Redact.Events(looked(hist, &damage)))
	if err == nil && damage != nil {
		o.Damaged(damage)
	}
	return o, err
}

// looked yields the events of a history, and sets damage to the first thing that is wrong with those of its lineage.
func looked(hist *store.History, damage **history.Damage) iter.Seq2[store.Event, error] {
	chain, lineage := outline.NewChain(hist), store.LineageOf(hist.Branches, hist.Run.Branch)
	return func(yield func(store.Event, error) bool) {
		for ev, err := range hist.Events {
			if err == nil && *damage == nil && lineage.Has(&ev) {
				*damage = chain.Next(&ev)
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// executing is the key of the step of a run that this process executes.
func (rd *Reader) executing(run *store.Run) string {
	if run.Owner != rd.Engine.ID() {
		return ""
	}
	key, _ := rd.Engine.Executing(run.ID)
	return key
}

// Event reads one event; nil if there is none with that number.
func (rd *Reader) Event(r *http.Request, id string, seq int64) (*store.Event, error) {
	hist, err := rd.Engine.Store().Load(r.Context(), id, store.Cursor{All: true, After: seq - 1, AfterMessage: 1<<63 - 1})
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, web.Unavailable(err))
	}
	for e, err := range hist.Events {
		if err != nil {
			return nil, fmt.Errorf("run %s: reading event %d: %w", id, seq, err)
		}
		if e.Seq != seq {
			return nil, nil
		}
		return &e, nil
	}
	return nil, nil
}

// Counts counts the runs of the store by status and workflow, and the approvals.
func (rd *Reader) Counts(ctx context.Context) (client.Counts, error) {
	var c client.Counts
	var err error
	st := rd.Engine.Store()
	if c.Status, err = st.Count(ctx, store.Filter{}, store.ByStatus); err != nil {
		return c, web.Unavailable(err)
	}
	if c.Workflow, err = st.Count(ctx, store.Filter{}, store.ByWorkflow); err != nil {
		return c, web.Unavailable(err)
	}
	asking, err := st.Count(ctx, store.Filter{Statuses: []store.Status{store.Waiting}, Codes: []string{durable.CodeApproval}}, "")
	if err != nil {
		return c, web.Unavailable(err)
	}
	c.Approvals = asking[""]
	for _, n := range c.Status {
		c.Total += n
	}
	return c, nil
}

// executorsFor is how long a list of executors is used.
const executorsFor = time.Second

// Executors lists the processes on the store, as of at most a second ago.
func (rd *Reader) Executors(ctx context.Context) ([]store.Executor, error) {
	rd.mu.Lock()
	list, at := rd.known, rd.knownAt
	rd.mu.Unlock()
	if !at.IsZero() && time.Since(at) < executorsFor {
		return list, nil
	}
	return rd.ExecutorsNow(ctx)
}

// ExecutorsNow lists the processes on the store, without what is remembered.
func (rd *Reader) ExecutorsNow(ctx context.Context) ([]store.Executor, error) {
	list, err := rd.Engine.Store().Executors(ctx)
	if err != nil {
		return nil, web.Unavailable(err)
	}
	rd.mu.Lock()
	rd.known, rd.knownAt = list, time.Now()
	rd.mu.Unlock()
	return list, nil
}
