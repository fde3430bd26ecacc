package durable

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// Info is what Get returns about a run.
type Info struct {
	store.Run
	// Steps with an outcome so far in this generation, including those in branches and items.
	// Those that have failed are among them; operate.Operator.Standing counts them apart.
	Steps int
	// Total is how many steps there are: the number of Declared names; without
	// any, the higher of two known counts: this run's steps, and those of the last
	// completed run of the same workflow and version. It is never a guess.
	// operate.Operator.Standing counts those of the Declared ones that are done.
	Total int
	// Active is how long the run was executed, in all processes together, up to
	// the last event.
	Active time.Duration
	// Declared names of the workflow's steps: by the code that is here, or else as
	// the run was started with.
	Declared []string
	// Key and Attempt of the last recorded step event.
	Key     string
	Attempt int
	// LastCheckpoint is the time of the last event.
	LastCheckpoint store.Time
	// Schedule has started it, for the time ScheduledAt; empty: none has.
	Schedule    string
	ScheduledAt time.Time
	// Headers it was started with, its own and those of its parent.
	Headers map[string]string
	// Exclusive are the keys it was started with: it holds them until it ends.
	Exclusive []string
	// Environment in which it was started, nil if that was not recorded.
	// Differences says, a line each, what is different in this process.
	Environment *Environment
	Differences []string
}

// Get reads a run. ErrNotFound if there is none; ErrInWorkflow in a workflow function.
func (e *Engine) Get(ctx context.Context, id string) (Info, error) {
	if err := outsideFunction(ctx, "Get of run "+id); err != nil {
		return Info{}, err
	}
	h, err := e.store.Load(ctx, id, store.Cursor{})
	if err != nil {
		return Info{}, fmt.Errorf("durable: run %s: %w", id, storeError(err))
	}
	i := Info{Run: h.Run}
	born, err := birthOf(h)
	if err != nil {
		return Info{}, err
	}
	i.Headers, i.Exclusive = born.Headers, born.Exclusive
	if s := born.Scheduled; s != nil {
		i.Schedule, i.ScheduledAt = s.Schedule, s.At.Time()
	}
	i.Environment = environmentOf(&born)
	i.Differences = i.Environment.Differences(e.program.environment)
	i.Declared = born.Declared
	if d := e.program.defs.find(h.Run.Workflow, h.Run.Version); d != nil {
		i.Declared = d.steps
	}
	if last := h.Run.Last; last != nil {
		i.Steps, i.Key, i.Attempt, i.LastCheckpoint = int(last.Steps), last.Key, int(last.Attempt), last.At
		i.Active = last.Active
	}
	if i.Total = len(i.Declared); i.Total == 0 {
		i.Total = i.Steps
		if i.Status != store.Completed {
			known, err := e.stepsOfLastCompleted(ctx, &i.Run)
			if err != nil {
				return Info{}, err
			}
			i.Total = max(i.Total, known)
		}
	}
	return i, nil
}

// List returns a page of runs; see store.Filter.
//
// Errors: ErrInvalid for a Filter.After of another filter; ErrUnavailable; ErrInWorkflow in a
// workflow function.
func (e *Engine) List(ctx context.Context, f store.Filter) (store.Page, error) {
	if err := outsideFunction(ctx, "List"); err != nil {
		return store.Page{}, err
	}
	p, err := e.store.List(ctx, f)
	if err != nil {
		return p, fmt.Errorf("durable: listing runs: %w", storeError(err))
	}
	return p, nil
}

// History yields the events of a run's current lineage in order. It ends after an
// error.
//
// Errors: ErrNotFound; ErrUnavailable; ErrInWorkflow in a workflow function.
func (e *Engine) History(ctx context.Context, id string) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		if err := outsideFunction(ctx, "History of run "+id); err != nil {
			yield(store.Event{}, err)
			return
		}
		h, err := e.store.Load(ctx, id, store.Cursor{})
		if err != nil {
			yield(store.Event{}, fmt.Errorf("durable: run %s: %w", id, storeError(err)))
			return
		}
		for ev, err := range h.Events {
			if err != nil {
				err = fmt.Errorf("durable: run %s: %w", id, storeError(err))
			}
			if !yield(ev, err) || err != nil {
				return
			}
		}
	}
}

// stepsOfLastCompleted is lengths.Book.Of with an error that names the run.
func (e *Engine) stepsOfLastCompleted(ctx context.Context, row *store.Run) (int, error) {
	n, err := e.program.lengths.Of(ctx, row)
	if err != nil {
		err = fmt.Errorf("durable: run %s: %w", row.ID, storeError(err))
	}
	return n, err
}

// Executing returns the key of a step whose body this engine executes for a run
// at this moment; of several, the one that began last. ok is false if there is
// none: the run is elsewhere, or waits, or is between two steps. A plain step
// records nothing before it is over, so this is how a program shows what it is
// doing itself.
func (e *Engine) Executing(id string) (key string, ok bool) {
	r := e.roster.active(id)
	if r == nil {
		return "", false
	}
	if body := r.bodies.under.Last(); body != nil {
		return *body, true
	}
	return "", false
}

// Health asks the store and looks at the engine. Its error, ErrUnavailable or
// the cause of ctx's end, says that the store did not answer; what the engine
// knows by itself is filled in nevertheless. It costs one small query.
func (e *Engine) Health(ctx context.Context) (Health, error) {
	h := Health{Closing: e.roster.isClosing()}
	h.Executing, h.Unloaded = e.roster.count()
	h.Recovered, h.Lease = e.claims.Recovered(), e.options.Lease
	h.CommitP99, h.Commits = e.committer.Pace(time.Now())
	h.TimersLate = e.dormitory.timersLate()
	h.BeatAge = e.heart.Age()
	// Of these runs only an interrupted one may have a code; a pending one has
	// none.
	waiting, err := e.store.Count(ctx, store.Filter{Statuses: []store.Status{store.Pending, store.Interrupted}}, store.ByCode)
	if err != nil {
		return h, fmt.Errorf("durable: health: %w", storeError(err))
	}
	h.Stuck = map[string]int64{}
	for code, n := range waiting {
		if code == "" {
			h.Backlog = n
			continue
		}
		h.Stuck[code] = n
	}
	return h, nil
}

// Watch yields what happens to a run, in any process. First come the waits that are
// pending now (their WaitRequested events, as they were recorded), so that a late
// caller sees what is asked of a person; then, in order, the events of the run's
// lineage with a Seq greater than after, and new ones as they come. Watch follows a
// run that continues with a new input through all its generations. To go on after a
// break, pass the Seq of the last event that was seen; waits that are still pending
// are announced again. It ends after the event that ends the run, when ctx ends
// (without an error), or with an error: ErrNotFound, ErrClosed, ErrInWorkflow in a workflow
// function, or one of the store. If no process executes the run, Watch waits, since any process may take it
// up later; Get, operate.Operator.Stuck and store.Store.Executors tell whether one
// does.
func (e *Engine) Watch(ctx context.Context, id string, after int64) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		if err := outsideFunction(ctx, "Watch of run "+id); err != nil {
			yield(store.Event{}, err)
			return
		}
		changed, stop := e.watchers.watch(id)
		defer stop()
		pending, err := e.watchers.pendingWaits(ctx, id)
		if err != nil {
			yield(store.Event{}, fmt.Errorf("durable: watching run %s: %w", id, storeError(err)))
			return
		}
		for _, ev := range pending {
			if ev.Seq <= after && !yield(ev, nil) {
				return
			}
		}
		e.watchers.tail(ctx, id, after, changed, yield)
	}
}

// view reads a run. When its history cannot be read, unreadable says why, and
// the row is valid nevertheless.
func (e *Engine) view(ctx context.Context, id string) (v *history.View, unreadable, err error) {
	h, err := e.loadGeneration(ctx, id)
	if err != nil {
		return nil, nil, fmt.Errorf("durable: run %s: %w", id, storeError(err))
	}
	v = &history.View{Row: &h.Run, Branches: h.Branches}
	for ev, err := range h.Events {
		if err != nil {
			return v, fmt.Errorf("durable: reading the history of run %s: %w", id, storeError(err)), nil
		}
		v.Events = append(v.Events, ev)
	}
	return v, unread(id, v.Judge()), nil
}

// loadGeneration reads a run with the events of its current generation and
// without its inbox, all of one moment. It passes over what earlier generations
// had. A caller that compares a row with events reads both with one Load.
func (e *Engine) loadGeneration(ctx context.Context, id string) (*store.History, error) {
	var before int64 // the last event of the generation before
	for {
		h, err := e.store.Load(ctx, id, store.Cursor{After: before, AfterMessage: math.MaxInt64})
		if err != nil {
			return nil, err
		}
		root := history.RootOf(h.Branches, h.Run.Branch).Cutoff
		if root == before {
			return h, nil
		}
		before = root // or another generation has begun since
	}
}

// birthOf returns what the first event of a run's lineage says of its start: nothing, if
// that event is lost.
func birthOf(h *store.History) (history.Beginning, error) {
	for ev, err := range h.Events {
		if err != nil {
			return history.Beginning{}, fmt.Errorf("durable: reading how run %s was started: %w", h.Run.ID, storeError(err))
		}
		if ev.Type != store.WorkflowCreated && ev.Type != store.WorkflowStarted {
			return history.Beginning{}, nil // the beginning is lost, and nothing is known of it
		}
		d, err := history.Of[history.Beginning](&ev)
		if err != nil {
			return history.Beginning{}, &DamagedError{RunID: h.Run.ID, Seq: ev.Seq, Err: err}
		}
		return d, nil
	}
	return history.Beginning{}, &DamagedError{RunID: h.Run.ID, Err: ErrNoHistory}
}
