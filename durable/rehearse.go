package durable

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/desk"
	"github.com/holdfast-dev/holdfast/internal/goroutine"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// A rehearsal replays a run with the code that is here, and stops where the
// history ends: at the first call of each goroutine that has no recorded outcome.
// It finds out, before anything is written, whether the code fits what is recorded
// and can read it. No body of a step runs, nothing is written, and nothing is
// logged; what the workflow function does between its calls happens, as on every
// replay.
//
// It is an execution that the engine does not know of: it owns no run and takes no message,
// though a wait at the frontier looks whether it can read the one that it would get. Each of its
// goroutines that reaches the frontier waits there. Once all of them do, they are ended like those
// of a run that is unloaded.
type rehearsal struct {
	run    *run
	done   chan struct{} // closed when the function's goroutine has ended
	output []byte
	err    error
	ended  bool // the function has returned, with output or err

	mu    sync.Mutex
	added []string // see insert
}

// rehearsalLimit is how long a function may take to reach its frontier. A function
// that waits for something other than a durable call is not judged.
const rehearsalLimit = 5 * time.Second

// Rehearse replays the history with which a run is to go on: events, without the
// outcome of the calls in reset. repinned is the version that a repair gives it;
// empty: none. The error is why the run cannot go on with the code that is here:
// *DefinitionChangedError, *UndecodableError, *DamagedError.
func (d operators) Rehearse(ctx context.Context, row *store.Run, events []store.Event, reset []string, repinned string, force bool) (found desk.Rehearsed, err error) {
	e := d.eng
	def := e.program.defs.codeAt(row)
	switch {
	case def == nil:
		return desk.Rehearsed{Unknown: "this program lacks the code of workflow " + nameVersion(row.Workflow, row.Version)}, nil
	case def.keepLoaded:
		return desk.Rehearsed{Unknown: fmt.Sprintf("the goroutines of workflow %s cannot be ended before it ends (durable.KeepLoaded)", row.Workflow)}, nil
	}
	p, err := history.PastOf(row.ID, events)
	if err != nil {
		return found, damaged(err)
	}
	if len(reset) > 0 {
		p.Forget(reset, math.MaxInt64)
	}
	p.Forced = p.Forced || force
	if repinned != "" {
		p.Repinned = repinned
	}
	born, err := history.Of[history.Beginning](&p.Created)
	if err != nil {
		return found, &DamagedError{RunID: row.ID, Seq: p.Created.Seq, Err: err}
	}
	if err := damaged(p.CheckVersion(row.ID, def.version, &born)); err != nil {
		return found, err
	}
	r := newRun(e, *row, def)
	defer r.cancel(nil)
	r.past, r.rehearsal = p, &rehearsal{run: r, done: make(chan struct{})}
	if err := r.adopt(&p.Created); err != nil {
		return found, err
	}
	if err := checkInput(e.sealer, row, p, &born); err != nil {
		return found, err
	}
	if p.Cancel != nil {
		d, err := history.Of[history.Cancelling](p.Cancel)
		if err != nil {
			return found, &DamagedError{RunID: r.id, Seq: p.Cancel.Seq, Err: err}
		}
		r.stop.cancel(d.Reason)
	} else if row.CancelAsked {
		r.stop.cancel("") // the run meets it before anything that is not recorded
	}
	r.inbox.Expect(p.Waits, row.Branch)
	if err := r.rehearsal.deliver(ctx); err != nil {
		return found, err
	}
	if !e.roster.countRunner() {
		return found, ErrClosed
	}
	goroutine.ForRun(r.rehearsal.playBack)
	t := time.NewTimer(rehearsalLimit)
	defer t.Stop()
	select {
	case <-r.rehearsal.done:
	case <-r.gone:
		// Parked, or all of its goroutines are at the frontier.
	case <-ctx.Done():
		_ = r.die(&death{kind: deathUnloaded, err: ErrUnloaded})
		return found, context.Cause(ctx)
	case <-t.C:
		_ = r.die(&death{kind: deathUnloaded, err: ErrUnloaded})
		return desk.Rehearsed{Unknown: fmt.Sprintf("its code waits for something that is no durable call, and did not come to the end of the history within %s", rehearsalLimit)}, nil
	}
	return r.rehearsal.judge()
}

// Reopen makes a parked run claimable if the code that is here fits its history, and
// reports whether it does. It writes nothing about a run that does not fit. It does not
// try the build that has parked the run: the claim in the history says which one that was.
func (d operators) Reopen(ctx context.Context, row *store.Run) (fits bool, err error) {
	e := d.eng
	v, unreadable, err := e.view(ctx, row.ID)
	if err != nil || unreadable != nil || v.Row.Status != store.Interrupted || v.Row.Code != row.Code || v.Row.Paused && !v.Row.CancelAsked {
		return false, err
	}
	by, _ := v.Past.HolderAt(math.MaxInt64)
	switch {
	case row.Code == CodeDefinitionChanged && by != nil && by.IsBuild(e.program.build):
		return false, nil
	case row.Code == CodeUnrecorded && (by == nil || !by.IsOtherBuild(e.program.build)):
		// Its history fits. The call is made again, and its body runs again: only by code that may
		// record another outcome, or each boot would run it.
		return false, nil
	}
	found, misfit := d.Rehearse(ctx, v.Row, v.Events, nil, "", false)
	if misfit != nil || found.Unknown != "" {
		return false, ctx.Err()
	}
	if row.Code == CodeUndecodable && !d.readsForBody(v, by) {
		return false, nil
	}
	_, err = e.act(ctx, v.Row, v.Branches, commit.Act{
		From:  []store.Status{store.Interrupted},
		Event: store.Event{Type: store.WorkflowInterrupted, Data: history.Encode(&history.Stop{Executor: e.id, Reason: "the code of this program fits it"})},
		Row:   commit.Claimable(),
	})
	if err != nil && !commit.Overtaken(err) {
		return false, fmt.Errorf("durable: run %s could not be continued: %w", row.ID, storeError(err))
	}
	return err == nil, nil
}

// deliver gives the rehearsal the messages that the history has not taken. A cancel or a pause among
// them changes nothing in what the code can read.
func (re *rehearsal) deliver(ctx context.Context) error {
	r := re.run
	h, err := r.eng.store.Load(ctx, r.id, store.Cursor{NoEvents: true, AfterMessage: r.past.Floor()})
	if err != nil {
		return fmt.Errorf("durable: run %s: reading its inbox: %w", r.id, storeError(err))
	}
	if err := checkMail(r.id, r.past, h.Inbox); err != nil {
		return err
	}
	r.inbox.Skip(r.past.Floor())
	r.inbox.Receive(h.Inbox, r.past.Consumed)
	return nil
}

// readsForBody reports whether what the body of a step could not read when the run was parked may be
// read here. A rehearsal runs no body. by had the run.
func (d operators) readsForBody(v *history.View, by *history.Holder) bool {
	cause, unread := d.eng.program.errors.Restore(stuck.ParkedBy(v.Events)), (*UndecodableError)(nil)
	if !errors.As(cause, &unread) {
		return true
	}
	ev := stuck.ReadByBody(v.Events, unread.Key)
	if ev == nil {
		return true
	}
	if d.eng.sealer.Check(payload.PlaceOf(v.Row.ID, ev), ev.Payload, true) != nil {
		return false
	}
	// It lacked only the key, or the body alone finds out whether it is what the code asks for: then
	// it runs again only if its code may be another one.
	return errors.Is(cause, ErrNoKey) || errors.Is(cause, ErrWrongKey) || by != nil && by.IsOtherBuild(d.eng.program.build)
}

// judge returns the result of the rehearsal, once the run is gone or its function
// has ended.
func (re *rehearsal) judge() (found desk.Rehearsed, err error) {
	r := re.run
	if d := r.dead.Load(); d != nil {
		if d.kind == deathParked {
			return found, d.err
		}
		found.Added = re.inserted()
		return found, nil
	}
	found.Ended, found.Err = re.ended, re.err
	var read *UndecodableError
	if errors.As(re.err, &read) {
		return found, read
	}
	// The branches that are left end: nothing waits for them any more.
	_ = r.die(&death{kind: deathUnloaded, err: ErrUnloaded})
	r.cancel(ErrUnloaded)
	found.Added = re.inserted()
	return found, nil
}

// playBack calls the workflow function of a rehearsal.
func (re *rehearsal) playBack() {
	r := re.run
	err := ErrGoexit
	defer r.eng.roster.runners.Done()
	defer close(re.done)
	defer func() {
		if v := recover(); v != nil {
			re.output, err = nil, guard.Panicked(v)
		}
		re.err, re.ended = err, true
	}()
	re.output, err = r.call()
}

// frontier is called before a call that has no recorded outcome goes on. In a
// rehearsal it returns only once that is over; without one (re is nil) the call goes
// on.
func (re *rehearsal) frontier() error {
	if re == nil {
		return nil
	}
	r := re.run
	p := &parking{}
	r.waits.park(p)
	re.endIfIdle()
	<-r.gone
	r.waits.unpark(p)
	return r.deathOf()
}

// endIfIdle ends a rehearsal all of whose goroutines wait: at the frontier, or
// for one that does.
func (re *rehearsal) endIfIdle() {
	r := re.run
	if r.waits.allParked() {
		_ = r.die(&death{kind: deathUnloaded, err: ErrUnloaded})
		r.cancel(ErrUnloaded)
	}
}

// insert keeps the key of a call that is matched by name, if the history lacks this
// call but has later ones.
func (re *rehearsal) insert(c *call) {
	if !c.scope.replay.HasRest() {
		return
	}
	re.mu.Lock()
	defer re.mu.Unlock()
	re.added = append(re.added, c.key)
}

// inserted returns what insert has kept, sorted.
func (re *rehearsal) inserted() []string {
	re.mu.Lock()
	defer re.mu.Unlock()
	return slices.Sorted(slices.Values(re.added))
}

// codeAt is codeOf without logging: it returns the code that would execute the run;
// nil: it is not here.
func (ds *definitions) codeAt(row *store.Run) *definition {
	if row.Version == "" && row.InitialVersion != "" {
		if def := ds.find(row.Workflow, row.InitialVersion); def != nil {
			return def
		}
	}
	return ds.find(row.Workflow, row.Version)
}

// nameVersion names a workflow, with its version if it has one.
func nameVersion(workflow, version string) string {
	if version == "" {
		return workflow
	}
	return workflow + " version " + version
}
