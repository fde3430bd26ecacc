// Package archiver keeps copies of runs outside their store: archiver.go decides which
// runs are to be written and when, write.go writes one.
package archiver

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/nudge"
	"github.com/holdfast-dev/holdfast/store"
)

// Timeout bounds one write to the archive.
const Timeout = time.Minute

// The pace of the archive.
const (
	// lookEvery is how often the archiver asks the store for runs that are not
	// archived, apart from at the start.
	lookEvery = time.Hour
	// minRest and share bound how often a run that waits again and
	// again is written: after a pause, and at most for this share of the time.
	minRest = time.Second
	share   = 20
	// maxDue bounds the list of runs to be written; the archiver asks the store for the
	// rest.
	maxDue = 10_000
)

// A Target keeps copies of runs; durable.Archive has the contract.
type Target interface {
	Store(ctx context.Context, runID string, file []byte) error
}

// Options configure an Archiver.
type Options struct {
	To    Target
	Store store.Store
	Log   *slog.Logger
	// AboutID logs a line about a run of which only the id is known.
	AboutID func(ctx context.Context, level slog.Level, id, msg string, more ...slog.Attr)
	// Now returns the store's time.
	Now func() store.Time
	// RunsOf yields the matching rows, page by page; it ends after an error.
	RunsOf func(context.Context, store.Filter) iter.Seq2[*store.Run, error]
	// Commit commits a change, and retries until the store has decided about it.
	Commit func(context.Context, store.Change) error
	// Known returns the wording, for people, of a store error or of damage.
	Known func(error) error
	// Sync archives a run that has begun to wait before it goes on waiting.
	Sync bool
}

// An Archiver writes copies of an engine's runs. It owns its goroutines: Start starts
// them, Finish ends them. A nil Archiver archives nothing.
type Archiver struct {
	to      Target
	store   store.Store
	log     *slog.Logger
	aboutID func(ctx context.Context, level slog.Level, id, msg string, more ...slog.Attr)
	now     func() store.Time
	runsOf  func(context.Context, store.Filter) iter.Seq2[*store.Run, error]
	commit  func(context.Context, store.Change) error
	known   func(error) error
	atWaits bool

	ctx  context.Context // of the writes
	stop context.CancelFunc
	work sync.WaitGroup
	wake chan struct{}
	look chan struct{}

	mu      sync.Mutex
	due     map[string]store.Status // runs to be written, with the status they have reached
	later   map[string]time.Time    // other runs, which are left alone until then
	resting map[string]time.Time    // runs that were written while they waited: until when they are left alone
	busy    map[string]*writing     // runs that are being written
	again   map[string]store.Status // of those, the ones that have reached another status meanwhile
	closing bool
}

// New returns an Archiver that has not started yet.
func New(o Options) *Archiver {
	a := &Archiver{
		to: o.To, store: o.Store, log: o.Log, aboutID: o.AboutID, now: o.Now, runsOf: o.RunsOf, commit: o.Commit, known: o.Known, atWaits: o.Sync,
		wake: make(chan struct{}, 1), look: make(chan struct{}, 1),
		due: map[string]store.Status{}, later: map[string]time.Time{}, resting: map[string]time.Time{}, busy: map[string]*writing{}, again: map[string]store.Status{},
	}
	a.ctx, a.stop = context.WithCancel(context.Background())
	return a
}

// Start starts writing, beginning with what earlier processes left undone.
func (a *Archiver) Start(until context.Context) {
	a.work.Go(a.writeLoop)
	before := a.now() // Want reports what changes later
	a.work.Go(func() { a.lookLoop(until, before) })
}

// Finish keeps writing what is due for as long as grace, and then ends the Archiver.
func (a *Archiver) Finish(grace time.Duration) {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.closing = true
	a.mu.Unlock()
	nudge.Send(a.wake)
	done := make(chan struct{})
	go func() {
		a.work.Wait()
		close(done)
	}()
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
		a.mu.Lock()
		left := len(a.due) + len(a.later)
		a.mu.Unlock()
		a.stop()
		<-done
		if left > 0 {
			a.log.Warn("durable: Close did not wait for the archive; the next start writes what is missing", "runs", left)
		}
	}
	a.stop()
}

// archivable reports whether a run in this status is archived.
func archivable(s store.Status) bool { return s == store.Waiting || s.Terminal() }

// Want says that a run has reached a state that is to be archived. It never blocks,
// because its callers hold locks.
func (a *Archiver) Want(id string, s store.Status) {
	if a == nil || !archivable(s) {
		return
	}
	a.mu.Lock()
	rest := a.resting[id]
	switch {
	case len(a.due)+len(a.later) >= maxDue:
		nudge.Send(a.look)
	case !s.Terminal() && rest.After(time.Now()):
		a.later[id] = rest
	default:
		delete(a.later, id)
		a.due[id] = s
	}
	a.mu.Unlock()
	nudge.Send(a.wake)
}

// next takes a run off the list, or says how long there will be nothing to do; more is
// false when there will be nothing any more.
func (a *Archiver) next(now time.Time) (id string, status store.Status, pause time.Duration, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, s := range a.due {
		delete(a.due, id)
		if rest := a.resting[id]; !s.Terminal() && rest.After(now) && !a.closing {
			a.later[id] = rest // it was written after this request
			continue
		}
		return id, s, 0, true
	}
	for id, until := range a.resting {
		if !until.After(now) {
			delete(a.resting, id)
		}
	}
	pause = lookEvery
	for id, at := range a.later {
		if wait := at.Sub(now); wait > 0 && !a.closing {
			pause = min(pause, wait)
			continue
		}
		delete(a.later, id)
		return id, store.Waiting, 0, true
	}
	return "", "", pause, !a.closing
}

func (a *Archiver) writeLoop() {
	for {
		id, status, pause, more := a.next(time.Now())
		switch {
		case !more || a.ctx.Err() != nil:
			return
		case id != "":
			a.write(a.ctx, id, status, false)
			continue
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-a.wake:
		case <-a.ctx.Done():
		}
		t.Stop()
	}
}

// lookLoop asks the store, at the start and from time to time, for what is not
// archived: left by a process that was killed, by one without an archive, or by a
// failed write.
func (a *Archiver) lookLoop(until context.Context, before store.Time) {
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		f := store.Filter{Statuses: []store.Status{store.Waiting, store.Completed, store.Failed, store.Cancelled}, Unarchived: true, OldestFirst: true, UpdatedTo: before}
		for row, err := range a.runsOf(until, f) {
			if err != nil {
				if until.Err() == nil {
					a.log.Warn("durable: the store could not be asked for runs to archive; they are looked for again", "retry_in_ms", float64(lookEvery.Milliseconds()), "error", err)
				}
				break
			}
			if until.Err() != nil {
				break
			}
			if !a.wanted(row.ID) {
				a.write(a.ctx, row.ID, row.Status, false)
			}
		}
		select {
		case <-until.Done():
			return
		case <-t.C:
		case <-a.look:
		}
		before = a.now()
	}
}

// wanted reports whether a run is about to be written, or is being written.
func (a *Archiver) wanted(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, later := a.later[id]
	return later || a.due[id] != "" || a.busy[id] != nil
}
