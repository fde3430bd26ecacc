package durable

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// Info is what Get tells of a run.
type Info struct {
	store.Run
	// Steps done so far in this generation, those in branches and items included.
	Steps int
	// Total is how many steps there are: the number of Declared names; without
	// any, the highest count that is known, of this run's steps and of those of the
	// last completed run of the same workflow and version. It is never a guess.
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
	// Headers it was started with, its own and those of its parent.
	Headers map[string]string
	// Exclusive are the keys it was started with: it holds them until it ends.
	Exclusive []string
	// Environment it was started in, nil if that was not recorded, and what of it
	// is another in this process, a line each.
	Environment *Environment
	Differences []string
}

// Get reads a run. ErrNotFound if there is none.
func (e *Engine) Get(ctx context.Context, id string) (Info, error) {
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
func (e *Engine) List(ctx context.Context, f store.Filter) (store.Page, error) {
	p, err := e.store.List(ctx, f)
	if err != nil {
		return p, fmt.Errorf("durable: listing runs: %w", storeError(err))
	}
	return p, nil
}

// History yields the events of a run's current lineage in order. After an error
// it ends.
func (e *Engine) History(ctx context.Context, id string) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
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

// Describe returns the one line a person needs of an event: what happened, to
// which call, and the error if there was one.
func Describe(ev store.Event) string {
	var b strings.Builder
	b.WriteString(string(ev.Type))
	if ev.Key != "" {
		b.WriteString(" " + ev.Key)
	}
	if ev.Attempt > 0 && (ev.Type == store.AttemptFailed || ev.Attempt > 1) {
		fmt.Fprintf(&b, " attempt %d", ev.Attempt)
	}
	d, err := history.DataOf(&ev)
	switch {
	case err != nil:
		b.WriteString(" (its data is not readable)")
	case d.Error != nil:
		b.WriteString(": " + d.Error.Message)
	case d.Reason != "":
		b.WriteString(": " + d.Reason)
	}
	return b.String()
}

// stepsOfLastCompleted returns how many steps the newest completed run of a
// workflow and version has made; 0 if there is none.
func (e *Engine) stepsOfLastCompleted(ctx context.Context, row *store.Run) (int, error) {
	f := store.Filter{Workflows: []string{row.Workflow}, Versions: []string{row.Version}, Statuses: []store.Status{store.Completed}, WithLast: true, Limit: 1}
	page, err := e.store.List(ctx, f)
	if err != nil {
		return 0, fmt.Errorf("durable: run %s: looking for a completed run of workflow %s: %w", row.ID, row.Workflow, storeError(err))
	}
	if len(page.Runs) == 0 || page.Runs[0].Last == nil {
		return 0, nil
	}
	return int(page.Runs[0].Last.Steps), nil
}

// Executing returns the key of a step whose body this engine executes for a run
// at this moment, of several the one that began last. ok is false when there is
// none: the run is elsewhere, or waits, or is between two steps. Nothing of a
// plain step is on record before it is over, so this is how a program shows what
// it does itself.
func (e *Engine) Executing(id string) (key string, ok bool) {
	r := e.roster.active(id)
	if r == nil {
		return "", false
	}
	if body := r.bodies.current.Load(); body != nil {
		return *body, true
	}
	return "", false
}
