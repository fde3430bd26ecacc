package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/goroutine"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/nudge"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// A Future is the outcome of a branch begun with Go, or the reason why there is
// none.
type Future[T any] struct {
	*branch
	value T
}

// branch is a Future without its type: a goroutine with a scope of its own.
type branch struct {
	run    *run
	key    string // empty: it was never begun
	done   chan struct{}
	waited atomic.Bool // its outcome was asked for
	// recorded: its outcome was recorded in an earlier execution. replayed: its
	// function is called nevertheless; the branch is over when that has returned.
	recorded, replayed bool

	// Set before done is closed.
	err error
	at  store.Time // of the recorded outcome

	// Guarded by the mutex of the run's waits.
	joiners []*parking
	over    bool
}

// Go begins a branch: fn runs on a goroutine of its own and makes its durable
// calls with the context it is given. Branches of one scope may run at the same
// time; their keys, such as "name/charge", do not depend on scheduling. The outcome
// is recorded. A branch that has ended is at most replayed, and none of its bodies
// runs again.
//
// Every branch must be waited for, with Future.Wait or First: a function that
// returns a result while one was forgotten fails, and its error names the branch.
func Go[T any](ctx context.Context, name string, fn func(ctx context.Context) (T, error)) *Future[T] {
	f := &Future[T]{branch: &branch{done: make(chan struct{})}}
	fail := func(err error) *Future[T] {
		f.err = err
		f.over = true
		f.waited.Store(true)
		close(f.done)
		return f
	}
	if fn == nil {
		return fail(fmt.Errorf("durable: Go %q: the function is nil: %w", name, ErrInvalid))
	}
	s, err := scopeOf(ctx, name)
	if err != nil {
		return fail(err)
	}
	var c call
	if err := s.begin(&c, name, history.CallGo); err != nil {
		return fail(err)
	}
	defer s.end()
	r := s.run
	f.run, f.key = r, c.key
	if c.rec != nil {
		s.lastAt = max(s.lastAt, c.rec.OpenedAt)
	}
	if c.done() {
		f.at, f.recorded = c.rec.Outcome.At, true
		f.value, f.err = outcomeOf[T](r, c.rec)
		s.begun = append(s.begun, f.branch)
		if !c.rec.Again || r.dead.Load() != nil {
			f.over = true
			close(f.done)
			return f
		}
		inner := s.replayEnded(f.branch, c.key, c.ordinal)
		ctx = inner.holdBack(ctx)
		goroutine.ForBranch(func() {
			defer s.forked.Add(-1)
			defer r.eng.roster.runners.Done()
			defer r.goroutines.all.Done()
			defer r.goroutines.end(r.goroutines.begin(inner))
			f.replay(inner, func() { _, _ = fn(&scopeContext{Context: ctx, scope: inner}) })
		})
		return f
	}
	if c.rec == nil {
		// That it was begun is recorded with the run's next write, so that a replay
		// knows its place among the calls.
		s.stash(&c, store.Event{Type: store.StepStarted, Data: history.Encode(&history.Begun{Kind: history.CallGo})})
	}
	r.goroutines.beginBranch(f.branch)
	s.begun = append(s.begun, f.branch)
	s.forked.Add(1)
	inner := s.child(c.key, false, c.ordinal)
	ctx = inner.holdBack(inner.trace.Begin(ctx, "branch", name, inner.path, nil, inner.replay.Empty()))
	goroutine.ForBranch(func() {
		defer s.forked.Add(-1)
		defer r.eng.roster.runners.Done()
		defer r.goroutines.all.Done()
		defer r.goroutines.end(r.goroutines.begin(inner))
		f.branchBody(&c, inner, func() ([]byte, error) {
			v, err := fn(&scopeContext{Context: ctx, scope: inner})
			if err != nil {
				return nil, err
			}
			env, seen, err := payload.Encode(r.eng.sealer, r.origin.maxPayload, v)
			if err != nil {
				return nil, Permanent(r.refuses(&EncodeError{RunID: r.id, Key: c.key, Type: reflect.TypeFor[T]().String(), Err: err}))
			}
			f.value = seen
			return env, nil
		})
	})
	return f
}

// child makes the scope of a branch or an item. ended: it ended in an earlier
// execution.
func (s *scope) child(key string, ended bool, place ...int32) *scope {
	inner := newScope(s.run, key)
	inner.up, inner.lastAt, inner.undo = s, s.lastAt, s.undo
	inner.trace = s.trace.Child()
	inner.place = append(s.place[:len(s.place):len(s.place)], place...)
	if inner.ended = ended; ended || !inner.replay.Empty() {
		s.run.goroutines.replaying.Add(1)
	} else {
		inner.left.Store(true)
	}
	return inner
}

// replayEnded counts the goroutine that replays a branch which has ended, and
// returns the branch's scope.
func (s *scope) replayEnded(b *branch, key string, ordinal int32) *scope {
	b.replayed = true
	s.replaysAgain()
	s.forked.Add(1)
	r := s.run
	r.waits.beginPass()
	r.goroutines.all.Add(1)
	r.eng.roster.runners.Add(1)
	return s.child(key, true, ordinal)
}

// replay calls the function of a branch that has ended.
func (f *branch) replay(inner *scope, fn func()) {
	defer func() {
		_ = recover() // if it panics, it also did when its outcome was recorded
		inner.replayed()
		r := f.run
		r.waits.endPass(f)
		close(f.done)
		nudge.Send(r.goroutines.branchOver)
		if r.dead.Load() == nil {
			r.waits.unload() // all others may have begun to wait
		}
	}()
	fn()
}

// outcomeOf returns the recorded outcome of a branch.
func outcomeOf[T any](r *run, rec *history.Call) (v T, err error) {
	ev := &rec.Outcome
	if ev.Type == store.StepFailed {
		d, dataErr := history.Of[history.StepEnd](ev)
		if dataErr != nil || d.Error == nil {
			return v, r.damaged(ev.Seq, errors.New("its error is not readable"))
		}
		return v, r.eng.program.errors.Restore(d.Error)
	}
	if recorded, err := r.eng.sealer.DecodeOutcome(payload.PlaceOf(r.id, ev), ev.Payload, &v); err != nil {
		var zero T
		return zero, r.undecodable(rec.Key, recorded, reflect.TypeFor[T](), err)
	}
	return v, nil
}

// beginBranch counts a branch as one of the run's goroutines.
func (gs *runGoroutines) beginBranch(b *branch) {
	r := gs.run
	r.waits.begin()
	gs.all.Add(1)
	r.eng.roster.runners.Add(1) // the caller is counted, so Close is still waiting
}

// branchBody runs the function of a branch and records its outcome. A panic or
// Goexit of the user's code ends here.
func (f *branch) branchBody(c *call, inner *scope, body func() ([]byte, error)) {
	r := f.run
	var payload []byte
	err := error(ErrGoexit)
	defer func() {
		inner.noteStop(0)
		if v := recover(); v != nil {
			payload, err = nil, guard.Panicked(v)
		}
		if !inner.seat.close() && err == nil {
			payload, err = nil, inner.concurrent("the end of "+inner.path)
		}
		f.err = f.record(c, inner, payload, err)
		inner.trace.End(f.err, f.at != 0)
		inner.leave()
		r.goroutines.leave(f)
	}()
	payload, err = body()
}

// record records how the branch ended and returns the error its Future
// gives, as a replay will give it.
func (f *branch) record(c *call, inner *scope, payload []byte, err error) error {
	r := f.run
	if err == nil {
		if err = inner.forgotten(); err != nil {
			payload = nil
		}
	}
	if stopped := inner.stopped(); stopped != nil {
		return stopped // however the function reacted, that is not its outcome
	}
	if changed := inner.replay.finish(); changed != nil {
		return changed
	}
	ev := store.Event{Type: store.StepCompleted, Key: c.key, Ordinal: c.ordinal, Payload: payload}
	d := &history.StepEnd{Kind: history.CallGo, Again: inner.mustReplay()}
	if err != nil {
		ev.Type = store.StepFailed
		d.Error = r.eng.program.errors.Record(err)
	}
	ev.Data = history.Encode(d)
	w := &commit.Write{Events: []store.Event{ev}}
	if err := r.write(w); definite(err) {
		return r.unrecorded(c.key, err)
	} else if err != nil {
		return err
	}
	f.at = w.At()
	return r.eng.program.errors.Restore(d.Error)
}

// leave ends a branch.
func (gs *runGoroutines) leave(f *branch) {
	r := gs.run
	r.waits.end(f)
	close(f.done)
	nudge.Send(gs.branchOver)
	if r.dead.Load() == nil {
		_ = r.waits.sync() // an error is the store's, and the next write gets it too
		r.waits.unload()   // it may have been the last one that was not waiting
	}
}

// Wait returns the outcome of the branch, and waits for it if necessary.
//
// Errors: the error with which the branch ended, as recorded; what Go was refused with, such as
// ErrInvalid or ErrConcurrent; those of every durable call (package documentation, Errors).
func (f *Future[T]) Wait(ctx context.Context) (T, error) {
	f.waited.Store(true)
	var zero T
	if f.key == "" {
		return zero, f.err
	}
	s, err := scopeOf(ctx, f.key)
	if err != nil {
		return zero, err
	}
	if s.run != f.run {
		return zero, fmt.Errorf("durable: branch %s belongs to run %s and is waited for in run %s: %w", f.key, f.run.id, s.run.id, ErrInvalid)
	}
	if err := s.enterAs("waiting for " + f.key); err != nil {
		return zero, err
	}
	defer s.end()
	if !f.recorded {
		if err := s.mayWait(f.key, s.limits(ctx) && !f.hasOutcome()); err != nil {
			return zero, err
		}
		s.beforeCall()
	}
	if s.ended && !f.recorded {
		return zero, s.goesBeyond("waiting for " + f.key)
	}
	if err := s.run.goroutines.join(goroutine.Ours(), f.branch); err != nil {
		return zero, err
	}
	s.lastAt = max(s.lastAt, f.at)
	if f.err != nil {
		return zero, f.err
	}
	return f.value, nil
}

// hasOutcome reports whether the branch has ended and its outcome is recorded.
func (f *branch) hasOutcome() bool { return f.run.waits.over(f) && f.at != 0 }

// join waits, parked, until one of the branches is over. own: the caller is on a
// goroutine of the engine's.
func (gs *runGoroutines) join(own bool, bs ...*branch) error {
	r := gs.run
	for _, b := range bs {
		if b.replayed {
			// It ends by itself, so the caller does not count as waiting.
			return gs.oneOf([]*branch{b})
		}
	}
	if r.dead.Load() != nil {
		// A call before this one was refused for that, and is still to be made by the log: the row
		// must not say that all wait.
		return gs.oneOf(bs)
	}
	p := &parking{own: own}
	if !r.waits.join(p, bs) {
		return r.deathOf()
	}
	defer r.waits.unpark(p)
	if err := r.waits.sync(); err != nil {
		return err
	}
	r.waits.unload()
	return gs.oneOf(bs)
}

// oneOf waits until one of the branches is over. A cancel does not end the wait: it
// stops the branches, which are then over.
func (gs *runGoroutines) oneOf(bs []*branch) error {
	r := gs.run
	if len(bs) == 1 {
		select {
		case <-bs[0].done:
			return r.deathOf()
		case <-r.gone:
			return r.deathOf()
		}
	}
	cases := make([]reflect.SelectCase, 0, len(bs)+1)
	for _, b := range bs {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(b.done)})
	}
	cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(r.gone)})
	reflect.Select(cases)
	return r.deathOf()
}

// endLeftovers stops the branches that First left behind, and waits for them:
// two generations must not run at the same time, and only after that is it known
// which messages were taken.
func (gs *runGoroutines) endLeftovers() {
	r := gs.run
	if left, _ := r.waits.open(); left > 0 {
		_ = r.die(&death{kind: deathRenewed, err: ErrContinued})
		r.cancel(ErrContinued)
	}
	gs.all.Wait()
}

// end takes a branch out of the count. It first unparks those that wait for it, so
// that the run never looks as if all its goroutines waited.
func (wt *runWaits) end(b *branch) {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	for _, p := range b.joiners {
		delete(wt.parked, p)
	}
	b.over = true
	if b.at == 0 && wt.run.dead.Load() != nil {
		// The execution has ended it. By the log it goes on, and a row that says that all others
		// wait would have nobody come to it.
		return
	}
	wt.branches--
}

// endPass takes a replayed branch out of the count.
func (wt *runWaits) endPass(b *branch) {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	b.over = true
	wt.passes--
}

// over reports whether a branch has ended.
func (wt *runWaits) over(b *branch) bool {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	return b.over
}

// anyOpen reports whether one of the branches has not ended.
func (wt *runWaits) anyOpen(bs []*branch) bool {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	return slices.ContainsFunc(bs, func(b *branch) bool { return !b.over })
}

// join parks the calling goroutine until one of the branches ends. It returns false
// if one has ended already.
func (wt *runWaits) join(p *parking, bs []*branch) bool {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	for _, b := range bs {
		if b.over {
			return false
		}
	}
	wt.parked[p] = struct{}{}
	for _, b := range bs {
		b.joiners = append(b.joiners, p)
	}
	return true
}

// runGoroutines are the goroutines of a run's branches.
type runGoroutines struct {
	run        *run
	root       *scope // nil until the workflow function is called
	all        sync.WaitGroup
	ofBranches sync.Map      // id to *branchGoroutine
	replaying  atomic.Int32  // branches and items that have not left their history
	branchOver chan struct{} // gets a value when a branch is over
}

// A branchGoroutine is the goroutine of a branch or of items of a Map, and the scope
// whose function it runs at the moment.
type branchGoroutine struct {
	id    uint64
	scope atomic.Pointer[scope]
}

// begin makes the calling goroutine known as one of the run's branches.
func (gs *runGoroutines) begin(s *scope) *branchGoroutine {
	st := &branchGoroutine{id: goroutine.ID()}
	st.scope.Store(s)
	gs.ofBranches.Store(st.id, st)
	return st
}

// end forgets a goroutine that is about to end.
func (gs *runGoroutines) end(st *branchGoroutine) { gs.ofBranches.Delete(st.id) }

// runsOther returns the scope whose function the calling goroutine runs, if that
// is not s: then the context of s has found its way into one of its branches. While
// s has no running branch, there is nothing to check.
func (gs *runGoroutines) runsOther(s *scope) *scope {
	if s.forked.Load() == 0 || goroutine.Calling() != goroutine.OfBranch {
		return nil
	}
	st, ok := gs.ofBranches.Load(goroutine.ID())
	if !ok {
		return nil
	}
	if at := st.(*branchGoroutine).scope.Load(); at != s {
		return at
	}
	return nil
}

// returned is called when the workflow function has ended, however it did.
func (gs *runGoroutines) returned() {
	if gs.root != nil {
		gs.root.seat.close()
	}
}

// await waits until the goroutines of the run's branches have ended. Their deferred
// calls are the user's, and may take long.
func (gs *runGoroutines) await() {
	r := gs.run
	t := time.AfterFunc(stuckUnload, func() {
		r.logLine(slog.LevelWarn, "durable: a waiting run does not unload: a deferred call of its code does not return; see KeepLoaded")
	})
	defer t.Stop()
	gs.all.Wait()
}

// stuckUnload is how long an unloading may take before it is worth a warning.
const stuckUnload = 10 * time.Second
