package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// maxTraces bounds the traces that a History holds in memory, in events; others
// are read on demand.
const maxTraces = 100_000

// History is what an archive holds, in memory, so that it can be shown at once
// and without the archive. It is an Archive itself, on top of the one it was
// made from: pass it to durable.Options.Archive, and it also contains what this
// process archives. What other processes archive appears after Refresh. All
// methods may be called concurrently.
type History struct {
	to  Archive
	log *slog.Logger

	mu     sync.Mutex
	runs   map[string]Run
	traces map[string][]Event
	events int // in traces
	stored map[string]bool
}

// Hydrate reads what is archived, and the events of the newest runs. It never
// fails: when the archive cannot be listed, it logs one warning and the history
// is empty; it leaves out a run that cannot be read, with a warning. log may be
// nil: slog.Default(). to may be nil: there is no archive, the history stays
// empty, and nothing is stored.
func Hydrate(ctx context.Context, to Archive, log *slog.Logger) *History {
	if log == nil {
		log = slog.Default()
	}
	h := &History{to: to, log: log, runs: map[string]Run{}, traces: map[string][]Event{}, stored: map[string]bool{}}
	h.Refresh(ctx)
	return h
}

// Refresh reads the archive again, as Hydrate does. If it cannot be listed, the
// history stays as it was.
func (h *History) Refresh(ctx context.Context) {
	if h.to == nil {
		return
	}
	h.mu.Lock()
	clear(h.stored)
	h.mu.Unlock()
	runs := map[string]Run{}
	for run, err := range h.to.List(ctx) {
		switch {
		case err == nil:
			runs[run.ID] = run
		case errors.Is(err, ErrUnreadable):
			h.log.Warn("archive: an archived run cannot be read and is left out of the history", "run", run.ID, "error", err)
		default:
			h.log.Warn("archive: the archive cannot be listed; the history of earlier processes is not shown", "error", err)
			return
		}
	}
	traces, events := h.readTraces(ctx, runs)
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.stored { // stored meanwhile, by this process
		runs[id] = h.runs[id]
		events -= len(traces[id])
		delete(traces, id)
	}
	h.runs, h.traces, h.events = runs, traces, events
}

// readTraces reads the events of the newest runs. It removes runs whose events
// cannot be read.
func (h *History) readTraces(ctx context.Context, runs map[string]Run) (traces map[string][]Event, events int) {
	traces = map[string][]Event{}
	for _, run := range newestFirst(runs) {
		if events+int(run.Seq) > maxTraces {
			continue
		}
		trace, err := h.to.Trace(ctx, run.ID)
		if err != nil {
			h.log.Warn("archive: the events of an archived run cannot be read; it is left out of the history", "run", run.ID, "error", err)
			delete(runs, run.ID)
			continue
		}
		traces[run.ID] = trace
		events += len(trace)
	}
	return traces, events
}

func newestFirst(runs map[string]Run) []Run {
	list := make([]Run, 0, len(runs))
	for _, run := range runs {
		list = append(list, run)
	}
	slices.SortFunc(list, func(a, b Run) int { return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID)) })
	return list
}

// Runs returns the known archived runs, newest first. The slice belongs to the
// caller.
func (h *History) Runs() []Run {
	h.mu.Lock()
	defer h.mu.Unlock()
	return newestFirst(h.runs)
}

// Beside is Runs merged with a store in use: if the store also has a run, its
// status, reason and times come from the store, and Live is set.
func (h *History) Beside(ctx context.Context, eng *durable.Engine) ([]Run, error) {
	runs := h.Runs()
	for page := range slices.Chunk(runs, store.DefaultLimit) {
		ids := make([]string, len(page))
		for i := range page {
			ids[i] = page[i].ID
		}
		found, err := eng.List(ctx, store.Filter{IDs: ids, Limit: len(ids), WithLast: true})
		if err != nil {
			return nil, err
		}
		live := map[string]*store.Run{}
		for i := range found.Runs {
			live[found.Runs[i].ID] = &found.Runs[i]
		}
		for i := range page {
			if row := live[page[i].ID]; row != nil {
				page[i].liven(row)
			}
		}
	}
	return runs, nil
}

// liven replaces the archived state with that of the store.
func (r *Run) liven(row *store.Run) {
	if !row.CreatedAt.Time().Equal(r.CreatedAt) { // the id was reused
		*r = Run{ID: row.ID, Format: format}
	}
	if row.Last == nil || row.Last.Seq != r.Seq {
		r.Output, r.Error, r.Prompt, r.ResumeAt = nil, "", "", ""
	}
	r.Live = true
	r.Workflow, r.Version, r.Status, r.Code, r.Reason, r.Recoverable = row.Workflow, row.Version, row.Status, row.Code, row.Reason, row.Recoverable
	r.CreatedAt, r.StartedAt, r.EndedAt, r.Attributes = row.CreatedAt.Time(), row.StartedAt.Time(), row.EndedAt.Time(), row.Attributes
	end := row.EndedAt
	if row.Last != nil {
		r.Seq, r.Sum = row.Last.Seq, row.Last.Sum
		end = max(end, row.Last.At)
	}
	r.DurationMS = max(end.Sub(cmp.Or(row.StartedAt, row.CreatedAt)), 0).Milliseconds()
}

// Run returns what is known about one archived run.
func (h *History) Run(runID string) (Run, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	run, ok := h.runs[runID]
	return run, ok
}

// Off reports that there is no underlying archive: the engine then archives
// nothing, and considers nothing archived. See durable.Archive.
func (h *History) Off() bool { return h.to == nil }

// StoreWord returns what log lines of the engine call the underlying archive.
func (h *History) StoreWord() string {
	if to, ok := h.to.(interface{ StoreWord() string }); ok {
		return to.StoreWord()
	}
	return ""
}

// Store implements Archive: the underlying archive stores the run, and the
// history shows it. Without one it returns ErrUnavailable.
func (h *History) Store(ctx context.Context, runID string, file []byte) error {
	if h.to == nil {
		return fmt.Errorf("%w: there is none below this history", ErrUnavailable)
	}
	if err := h.to.Store(ctx, runID, file); err != nil {
		return err
	}
	e, err := readEntry(runID, file)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if have, ok := h.runs[runID]; ok && have.CreatedAt.Equal(e.CreatedAt) && have.Seq > e.Seq {
		return nil // an earlier state arrived late
	}
	h.events -= len(h.traces[runID])
	delete(h.traces, runID) // read again on demand
	h.runs[runID], h.stored[runID] = e.Run, true
	return nil
}

// List implements Archive, from memory.
func (h *History) List(context.Context) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		for _, run := range h.Runs() {
			if !yield(run, nil) {
				return
			}
		}
	}
}

// Trace implements Archive. The caller must not change the slice.
func (h *History) Trace(ctx context.Context, runID string) ([]Event, error) {
	h.mu.Lock()
	trace, ok := h.traces[runID]
	h.mu.Unlock()
	switch {
	case ok:
		return trace, nil
	case h.to == nil:
		return nil, ErrNotFound
	}
	return h.to.Trace(ctx, runID)
}

// Get implements Archive, from the underlying archive.
func (h *History) Get(ctx context.Context, runID string) (*Entry, error) {
	if h.to == nil {
		return nil, ErrNotFound
	}
	return h.to.Get(ctx, runID)
}
