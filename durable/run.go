package durable

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/goroutine"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/matching"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// A run is one execution in this process, from its start or claim until its goroutine has
// ended. It consists of parts, each of which owns what it knows. The run ties them
// together: it is loaded, executed and ended, and dies once.
type run struct {
	eng    *Engine
	id     string
	def    *definition
	row    store.Run // as created or claimed
	origin origin
	source source
	past   *history.Past // nil for a run that has just been created

	ctx    context.Context // of step bodies; ends by cancel
	cancel context.CancelCauseFunc

	// dead is set once when the run must make no further durable call here.
	dead       atomic.Pointer[death]
	gone       chan struct{} // closed when dead is set: waits end
	stop       stopping      // from outside
	claimed    claimedAs
	spans      telemetry.Run
	bodies     bodies
	goroutines runGoroutines
	matching   matching.Run // calls are matched with the history
	log        commit.Log
	waits      runWaits
	inbox      inbox
	offspring  offspring
	undoing    undoing
	decided    decisions
	renewing   renewing

	misuse  sync.Once // a misused call was logged
	wanting bool      // something happened while it was being unloaded; guarded by the roster's mutex
	told    bool      // mail has come for it; guarded likewise

	ending atomic.Bool   // its last write is in progress
	loaded chan struct{} // closed once the history has been read, if there is one
	// rehearsal: the execution only follows the history, and records nothing; nil: it
	// goes on.
	rehearsal *rehearsal

	// recorded is closed when this execution has written its first event.
	recorded     chan struct{}
	recordedOnce sync.Once

	// ended is closed when the goroutine is done and its last write is settled;
	// then outcome may be read.
	ended   chan struct{}
	outcome outcome
	// lastWord writes the log line about the end; nil: that is written already, or there
	// is none.
	lastWord func()
	unread   *death // why its history could not be read, nil if it was; read it once ended is closed

	born   chan struct{} // closed when its creation is settled; nil for a claimed run
	bornAt store.Time    // of workflow_created, for a run that has just been created
}

// origin is what the creation of a run recorded, or is about to. It never changes
// once the run is launched or loaded.
type origin struct {
	input      []byte // envelope, as it is in inputAt
	inputAt    payload.Place
	seed       uint64
	forkSeeds  []history.Seed // those of the runs it was forked from
	maxPayload int            // how many bytes an encoded value may have
	deadline   store.Time     // when the engine stops it; 0: never
	headers    map[string]string
	exclusive  []string // keys it was started with
	scheduled  *history.Scheduled
	trace      telemetry.Start // of the span of its start
}

// decisions are what writes of a run decide when they get their place in the log. They
// are guarded by the log's mutex.
type decisions struct {
	run        *run
	answers    map[string]string // which call has answered a request, by the request's id
	attributes map[string]string // never changed, only replaced
	lastBranch int32             // highest number of a branch
}

// newRun prepares an execution; launch begins it.
func newRun(e *Engine, row store.Run, def *definition) *run {
	r := &run{
		eng: e, id: row.ID, def: def, row: row,
		gone: make(chan struct{}), loaded: make(chan struct{}), recorded: make(chan struct{}), ended: make(chan struct{}),
	}
	r.origin.deadline = row.DeadlineAt
	r.log = e.committer.NewLog(row.ID, logOwner{r}, &e.heart.Clock)
	r.waits = runWaits{run: r, mu: &r.log, parked: map[*parking]struct{}{}, branches: 1, rowSays: rowState{status: row.Status, wake: row.WakeAt, code: row.Code, text: row.Reason, seen: row.Seen}}
	r.stop = stopping{run: r, done: make(chan struct{})}
	r.bodies = bodies{run: r, resting: make(chan struct{}, 1)}
	r.goroutines = runGoroutines{run: r, branchOver: make(chan struct{}, 1)}
	r.inbox = inbox{run: r, reading: make(chan struct{}, 1)}
	r.decided = decisions{run: r, attributes: row.Attributes}
	r.source.run, r.claimed.run = r, r
	r.spans = e.tracing.NewRun(row.ID, row.Workflow)
	r.offspring.run, r.undoing.run, r.renewing.run = r, r, r
	r.ctx, r.cancel = context.WithCancelCause(e.life.runs)
	return r
}

// stash keeps an event to be committed in front of r's next write. full says that it is
// time for one.
func (r *run) stash(ev store.Event) (at store.Time, full bool) {
	if r.eng.sealer.Seals(ev.Payload) {
		sealed := [1]store.Event{ev}
		r.sealEvents(sealed[:], r.row.Branch)
		ev = sealed[0]
	}
	return r.log.Stash(ev)
}

// write commits w and returns once it is durable.
func (r *run) write(w *commit.Write) error {
	if r.rehearsal != nil {
		return r.rehearsal.frontier()
	}
	if b := w.Branching; b != nil {
		r.sealEvents(w.Events[:b.At], r.row.Branch)
		r.sealEvents(w.Events[b.At:], b.Branch.N)
	} else {
		r.sealEvents(w.Events, r.row.Branch)
	}
	for i := range w.Send {
		r.eng.mailroom.seal(&w.Send[i])
	}
	if len(w.Send) > 0 {
		defer r.eng.mailroom.sending(w.Send)()
	}
	err := r.eng.committer.Commit(context.Background(), &r.log, w)
	if err == nil {
		r.recordedOnce.Do(func() { close(r.recorded) })
	}
	return err
}

// flush commits what is stashed.
func (r *run) flush() error {
	if !r.log.Stashes() {
		return nil
	}
	return r.write(&commit.Write{})
}

// sealEvents seals the payloads of events that r is about to record on a branch. The
// events get that branch when they are numbered.
func (r *run) sealEvents(events []store.Event, branch int32) {
	for i := range events {
		if ev := &events[i]; r.eng.sealer.Seals(ev.Payload) {
			p := payload.PlaceOf(r.id, ev)
			p.Branch = branch
			ev.Payload = r.eng.sealer.Seal(p, ev.Payload)
		}
	}
}

// launch executes r, which was added to the engine, on its own goroutine.
func (r *run) launch() { goroutine.ForRun(r.execute) }

// execute runs the workflow function and records how it ended. The bookkeeping is in
// deferred calls, so that it also happens when the user's code panics or ends the
// goroutine with runtime.Goexit.
func (r *run) execute() {
	if r.spans.Start != nil {
		r.spans.Start.End() // before the spans below it
	}
	defer func() {
		r.endSpans()
		if status := r.outcome.status; status != "" {
			r.eng.metrics.RunEnded(r.ctx, &r.row, status, r.log.Time()) // a branch that has lost a race may still be writing
		}
		r.cancel(nil)
		switch next := r.outcome.next; {
		case next != nil:
			r.eng.roster.succeed(r, next)
		case r.unloaded():
			r.goroutines.await()
			r.eng.dormitory.makeDormant(r)
		default:
			if told := r.eng.roster.forget(r); told && r.outcome.status == "" {
				// The run was given up, paused or parked before its mail came. The mail
				// is for the executor that claims the run; without this, none would look
				// before the next heartbeat.
				r.eng.claims.Wake()
			}
			if r.row.Queue != "" {
				r.eng.claims.Freed() // its place, if that is recorded
			}
		}
		r.recordedOnce.Do(func() { close(r.recorded) })
		close(r.ended)
		if r.lastWord != nil {
			r.lastWord() // Close waits for it
		}
		r.eng.roster.runners.Done()
	}()
	var output []byte
	err := ErrGoexit
	defer func() {
		if v := recover(); v != nil {
			output, err = nil, guard.Panicked(v)
		} else if at := r.bodies.exited.Load(); at != nil && err == ErrGoexit {
			err = fmt.Errorf("step %s: %w", *at, ErrGoexit)
		}
		r.goroutines.returned()
		r.bodies.await()
		r.outcome = r.end(output, err)
		if r.unloaded() {
			return // its goroutines must find it unloaded until they have ended
		}
		_ = r.die(endedHere(r.id))
	}()
	r.log.Begin(time.Now())
	if r.origin.input == nil {
		if loadErr := r.load(); loadErr != nil {
			r.unread, err = r.dead.Load(), loadErr
			return
		}
	}
	r.spans.EndSegment(&r.row, r.past)
	close(r.loaded)
	defer r.stop.watchDeadline()()
	if dead := r.deathOf(); dead != nil {
		err = dead // it was paused, for example, before it could go on
		return
	}
	if pinErr := r.pin(); pinErr != nil {
		err = pinErr
		return
	}
	output, err = r.call()
}

// isLoaded reports whether r is known to exist, and to have its history.
func (r *run) isLoaded() bool {
	select {
	case <-r.loaded:
		return true
	default:
		return false
	}
}

// call runs the workflow function.
func (r *run) call() (output []byte, err error) {
	r.matching.Past, r.matching.Steps, r.matching.Version = r.past, r.def.steps, r.def.version
	r.matching.Build, r.matching.Executor = r.eng.program.build, r.eng.id
	r.matching.ByName = r.past != nil && (r.def.byName || r.past.Forced)
	root := newScope(r, "")
	r.goroutines.root = root
	root.trace = r.spans.Root()
	root.lastAt = r.bornAt
	if r.past != nil {
		root.lastAt = r.past.Created.At
	}
	if root.replay.Empty() {
		root.leave()
	}
	output, err = r.def.call(&scopeContext{Context: r.ctx, scope: root}, r, r.origin.input)
	root.noteStop(0)
	if r.dead.Load() != nil {
		return output, err
	}
	return judged(r, root, output, err)
}

// judged returns what the workflow function has returned, or what was wrong with it. It is apart from call, whose frame is
// on the stack of every body. Also when the function failed: code that fails before calls which
// are recorded is not the code that recorded them.
func judged(r *run, root *scope, output []byte, err error) ([]byte, error) {
	calling := !root.seat.close()
	err = r.renewing.returned(err)
	ends := err == nil || r.renewing.asked(err) != nil
	if ends && calling {
		// The outcome of that call would be lost silently.
		return nil, root.concurrent("the end of the workflow function")
	}
	if changed := root.replay.finish(); changed != nil {
		return nil, changed
	}
	if ends && r.stop.cause() == nil {
		if left := root.forgotten(); left != nil {
			err = left
		}
	}
	return output, err
}

// endSpans ends what r has begun to trace.
func (r *run) endSpans() {
	if r.spans.Segment != nil {
		steps, active := r.log.Totals()
		r.spans.End(r.ctx, &r.row, r.past, &r.origin.trace, telemetry.Ended{Status: r.outcome.status, Err: r.outcome.err, Steps: steps, Active: active})
	}
}

// misused returns err, the refusal of a call that only a change of the code can mend. It
// also logs the refusal, once for each run: code that ignores the error goes on as if the
// call had been made.
func (r *run) misused(err error) error {
	at := callerOutside()
	r.misuse.Do(func() {
		r.logLine(slog.LevelWarn, "durable: a call was refused: the workflow's code is wrong", slog.Any("error", err), slog.String("source", at))
	})
	return err
}
