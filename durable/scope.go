package durable

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"runtime"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/goroutine"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/misuse"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// A scope is a sequence of durable calls. The workflow function has one, and so has each
// branch and item. Its calls are made one after the other, so each has an ordinal that
// does not depend on scheduling. Each kind of call has code of its own; the scope begins
// and ends the call, and records for it.
type scope struct {
	run  *run
	path string
	up   *scope // the one around it; nil: none
	// trace is its place among the spans; nil: nobody traces.
	trace *telemetry.Scope
	// place is where the scope is in the run: the ordinals of the calls around it, and an
	// item's number after the ordinal of its Map.
	place []int32
	// undo: the calls are those of compensations, which a cancel does not stop.
	undo bool
	// forked is how many of its own branches and workers are running.
	forked atomic.Int32
	replay replay
	// left: nothing of what the code does from here on is in the history; see leave.
	left atomic.Bool
	held func() // ends the context that was held back until then; nil: none
	// limited: its context, or one around it, has a deadline that the code has set.
	limited bool
	// again: once the scope has ended, a replay calls its function nevertheless, because
	// the scope, or one within it, has registered a compensation or left a branch
	// running.
	again atomic.Bool
	// ended: its outcome is recorded, and its function is called only to be replayed.
	// beyond is how many calls the function has made that it had not made before it
	// ended.
	ended  bool
	beyond int
	// noted: the run knows where the context has ended; see noteStop.
	noted bool
	seat  seat

	// What follows belongs to the one call that is in progress.
	naming     naming
	memory     scopeMemory
	lastAt     store.Time // of the last event of the scope
	registered int32      // compensations
	followed   []*undo    // compensations after whose registration nothing was called yet
	begun      []*branch  // by Go
	draws      uint32     // NewID and Rand since the last call
	waits      int32      // for branches and children, since the last call
	empty      []string   // keys of calls that were placed and have recorded nothing
	preface    preface
}

// A seat is for the one call of a scope that is in progress. Once the function of the scope has returned,
// no other call takes it: a goroutine that the function has left behind would record what no replay of
// the function finds.
type seat struct {
	// call is the one in progress, nil if there is none. It is the caller's: the memory of a step is
	// used again once it has ended. Others know its name; see naming.
	call   atomic.Pointer[call]
	closed atomic.Bool
	// performing: the call is a step that is not replayed. Its body, which may have the context of the
	// function, has drawn so often.
	performing atomic.Bool
	drawn      uint32
}

// afterwards is in the seat of a scope whose function has returned.
var afterwards call

// taker returns the call in progress, nil if there is none.
func (st *seat) taker() *call { return st.call.Load() }

// take makes c the call in progress, unless there is one.
func (st *seat) take(c *call) bool { return st.call.CompareAndSwap(nil, c) }

// perform says that the call in progress is a step whose body is about to run.
func (st *seat) perform() {
	st.performing.Store(true)
	st.drawn = 0
}

// leave ends the call in progress.
func (st *seat) leave() {
	if st.performing.Load() {
		st.performing.Store(false)
	}
	st.call.Store(nil)
	if st.closed.Load() {
		st.take(&afterwards)
	}
}

// close is called when the function has returned. It reports false if a call is in progress.
func (st *seat) close() bool { return st.closed.Swap(true) || st.take(&afterwards) }

// scopeMemory is what the calls of a scope share, so that a call needs fewer allocations.
type scopeMemory struct {
	keys    history.Keys
	results payload.Results
}

// newScope makes the scope with this path, and gives it what the history has of it.
func newScope(r *run, path string) *scope {
	s := &scope{run: r, path: path}
	s.replay.scope = s
	s.replay.Begin(&r.matching, path)
	return s
}

// A naming gives the calls of a scope their names: the second call of "send" is "send#2".
type naming struct {
	// calling is the name of the call in progress, or of the last one. Anybody may read it.
	calling atomic.Pointer[string]

	last *named            // of the last call: a loop asks for the same one repeatedly
	all  map[string]*named // by name; that of the last call only once another one is asked for
}

// named is a name of calls.
type named struct {
	name, escaped string // they do not change
	calls         int32
}

// next returns the name of the next call, which counts once its calls are one more.
func (nm *naming) next(name string) (*named, error) {
	if nm.last != nil && nm.last.name == name {
		return nm.last, nil
	}
	if err := store.CheckName("step name", name); err != nil {
		return nil, err
	}
	// Filed only now, so that a scope whose calls have one name needs no map.
	if nm.last != nil && nm.last.calls > 0 {
		nm.all = put(nm.all, nm.last.name, nm.last)
	}
	if nm.last = nm.all[name]; nm.last == nil {
		nm.last = &named{name: name, escaped: history.EscapeName(name)}
	}
	return nm.last, nil
}

// call is one durable call, from begin to end.
type call struct {
	scope   *scope
	key     string
	name    string
	rec     *history.Call // what the history has of it; nil: nothing
	ordinal int32
	draws   uint32 // of its scope, between the call before it and this one
	// placed: it was given its ordinal, and nothing of it is in the log yet.
	placed bool
	// limited: it is to wait with a context that has a deadline of the code's own.
	limited  bool
	undoable bool // a compensation was registered just before it
	// codeless: the code of the child run that it starts is not here.
	codeless error
}

// done reports whether the history holds the call's outcome.
func (c *call) done() bool { return c.rec != nil && c.rec.Outcome.Seq != 0 }

// opened reports whether the history holds that it has begun.
func (c *call) opened() bool { return c.rec != nil && c.rec.Opened }

// begin checks that the call c may be made, gives it its key and its ordinal and
// finds its record. After a nil error end must be called.
//
// An ordinal that is given out is recorded with an event, or it is the last one of
// its scope in this execution: a call after a place that stays empty would be
// recorded where no replay looks for it. So begin gives none to a new call once the
// run was stopped, because from then on only the outcomes of running bodies are recorded.
// And end notes a call that has recorded nothing: begin parks the run instead of making
// another call after it.
func (s *scope) begin(c *call, name string, kind history.CallKind) error {
	if err := s.run.alive(); err != nil {
		return err
	}
	if err := s.enter(c, name); err != nil {
		return err
	}
	nd, err := s.naming.next(name)
	if err != nil {
		s.end()
		return err
	}
	if s.naming.calling.Load() != &nd.name {
		s.naming.calling.Store(&nd.name)
	}
	c.key = s.memory.keys.Join(s.path, nd.escaped, nd.calls+1)
	c.ordinal = s.replay.Next() // a call that is refused here comes after those before it, and is no wait
	if err := checkKey(c.key, kind); err != nil {
		s.end() // it is not matched, since the history does not have it
		return err
	}
	err = s.replay.match(c, kind)
	switch {
	case err != nil:
	case c.rec == nil:
		s.beforeCall()
		err = s.mayPlace(c, kind)
		if err == nil {
			err = s.mayWait(c.key, c.limited)
		}
		if err == nil && c.codeless != nil && !s.ended && s.stopped() == nil {
			err = s.run.misused(s.run.die(&death{kind: deathParked, code: CodeChildNotRegistered, err: fmt.Errorf("run %s: %s is not started: %w", s.run.id, c.key, c.codeless)}))
		}
		if err == nil && s.run.rehearsal != nil {
			s.run.rehearsal.insert(c)
			if kind != history.CallWait && kind != history.CallRequest { // which look at the mail first
				err = s.run.rehearsal.frontier()
			}
		}
	case s.ended && !c.done() && kind != history.CallGo && kind != history.CallMap && kind != history.CallChild:
		err = s.goesBeyond(name) // the function ended in the middle of this call
	}
	if err != nil {
		s.end()
		return err
	}
	s.replay.Take(c.ordinal)
	nd.calls++
	c.draws = s.draws
	s.draws, s.waits = 0, 0
	if c.undoable = s.followed != nil && s.run.undoing.follow(s.followed, c.key, kind); c.undoable {
		s.followed = nil
	}
	c.placed = c.rec == nil
	if c.rec != nil && !c.done() {
		s.lastAt = max(s.lastAt, c.rec.LastAt) // the call may be stopped before it records more
		if kind != history.CallGo {
			s.beforeCall()
		}
	}
	return nil
}

// checkKey returns why a call of this kind cannot have this key.
func checkKey(key string, kind history.CallKind) error {
	most, whose := store.MaxKey, ""
	if kind == history.CallMap {
		most, whose = store.MaxKey-history.ItemRoom, " for a Map, whose items have longer ones"
	}
	if len(key) <= most {
		return nil
	}
	return &store.NameError{Kind: "key", Value: key[:80], Reason: fmt.Sprintf("is %d bytes long; at most %d are allowed%s", len(key), most, whose)}
}

// mayPlace returns why c, which the history does not have, gets no place in it.
func (s *scope) mayPlace(c *call, kind history.CallKind) error {
	if s.ended {
		s.replay.TakeBack()
		return s.goesBeyond(c.name)
	}
	if err := s.stopped(); err != nil {
		if kind == history.CallFirst {
			return nil // it waits for branches first, which meet the stop themselves, and then records nothing
		}
		s.replay.TakeBack()
		return err
	}
	if len(s.empty) > 0 {
		return s.run.unrecorded(s.empty[0], fmt.Errorf("it ended in a panic, which the function has recovered, and %s was called after it", c.key))
	}
	return nil
}

// enterAs makes a call in progress in s that is no part of its history. After a nil error end
// must be called.
func (s *scope) enterAs(name string) error {
	if err := s.enter(new(call), name); err != nil {
		return err
	}
	s.naming.calling.Store(&name)
	return nil
}

// enter makes c the call in progress in s. After a nil error end must be called.
func (s *scope) enter(c *call, name string) error {
	c.scope, c.name = s, name
	return s.occupy(c, name)
}

// occupy is enter for a call of which nobody sees more than that it is in progress. After a nil error
// seat.leave must be called.
func (s *scope) occupy(c *call, name string) error {
	if at := s.run.goroutines.runsOther(s); at != nil {
		return s.run.misused(&misuse.OuterContextError{RunID: s.run.id, Call: name, Scope: s.path, Within: at.path})
	}
	if !s.seat.take(c) {
		if s.seat.taker() == &afterwards {
			return s.run.misused(fmt.Errorf("%w: the function of %s in run %s has returned, and %q was called with its context", ErrOutsideRun, cmp.Or(s.path, "the workflow"), s.run.id, name))
		}
		return s.run.misused(s.concurrent(name))
	}
	return nil
}

// concurrent returns the error of a call that was made while another is in progress.
func (s *scope) concurrent(name string) error {
	running := "a call that has just ended"
	if p := s.naming.calling.Load(); p != nil && s.seat.taker() != nil {
		running = *p
	}
	return &misuse.ConcurrentCallError{RunID: s.run.id, Running: running, Second: name}
}

// record commits an event of call c and advances the scope's clock.
func (s *scope) record(c *call, ev store.Event) (store.Time, error) {
	w := &commit.Write{}
	return s.recordWith(c, ev, w)
}

// recordWith is record with more in the same write.
func (s *scope) recordWith(c *call, ev store.Event, w *commit.Write) (store.Time, error) {
	ev.Key, ev.Ordinal = c.key, c.ordinal
	s.preface.tag(&ev)
	w.Events = append(w.Events, ev)
	err := s.run.write(w)
	if definite(err) && !(len(w.Start) > 0 && ofContent(err)) { // the start of a child records why it is refused
		err = s.run.unrecorded(c.key, err)
	}
	if err != nil {
		return 0, err
	}
	c.placed, s.preface = false, preface{}
	s.lastAt = w.At()
	return w.At(), nil
}

// A preface is what the first event of a scope says in addition to its own data. It is kept until
// an event that says it is recorded: the store may refuse the first one.
type preface struct {
	item string // hash of the Map item
	// For the undoing: where the stop of the run has met its scopes (see stopping), what
	// each compensation undoes and, for a run with a deadline, whether that has stopped
	// it (see Past.WasLate).
	stopped, stoppedWaits map[string]int32
	undoes                []string
	late                  *bool
}

// empty reports whether there is nothing to say.
func (p *preface) empty() bool {
	return p.item == "" && p.stopped == nil && p.stoppedWaits == nil && p.undoes == nil && p.late == nil
}

// tag writes the preface into an event.
func (p *preface) tag(ev *store.Event) {
	if p.item != "" {
		addMember(ev, `{"item":`, p.item)
	}
	if p.stopped != nil {
		addMember(ev, `{"stopped":`, p.stopped)
	}
	if p.stoppedWaits != nil {
		addMember(ev, `{"stopped_waits":`, p.stoppedWaits)
	}
	if p.undoes != nil {
		addMember(ev, `{"undoes":`, p.undoes)
	}
	if p.late != nil {
		addMember(ev, `{"late":`, *p.late)
	}
}

// addMember puts a member in front of those that the Data of an event has; begin is the
// brace and the member's name.
func addMember(ev *store.Event, begin string, value any) {
	member := append([]byte(begin), mustJSON(value)...)
	if len(ev.Data) > 0 {
		member = append(append(member, ','), ev.Data[1:]...)
	} else {
		member = append(member, '}')
	}
	ev.Data = member
}

// stash keeps an event of call c for the run's next write.
func (s *scope) stash(c *call, ev store.Event) { s.stashAfter(c, ev, nil) }

// stashAfter is stash for an event before which a span must be exported; nil: none.
func (s *scope) stashAfter(c *call, ev store.Event, span *commit.Early) {
	ev.Key, ev.Ordinal = c.key, c.ordinal
	s.preface.tag(&ev)
	c.placed, s.preface = false, preface{}
	if span != nil {
		s.run.log.Before(span)
	}
	s.lastAt, _ = s.run.stash(ev)
}

// end frees the scope for its next call. If the run was unloaded while the call waited,
// there is no next call: the goroutine ends here, and the user's code after the call does
// not run.
func (s *scope) end() {
	c := s.seat.taker()
	if c != nil && c.placed {
		// A replay does not find this call: what is drawn from now on follows the call
		// before it.
		s.empty, s.draws = append(s.empty, c.key), c.draws
	}
	if c != nil && c.ordinal == 0 {
		c = nil
	}
	s.afterCall(c)
	s.seat.leave()
	if d := s.run.dead.Load(); d != nil && d.kind == deathUnloaded {
		runtime.Goexit()
	}
}

// A branch or an item that has ended is not replayed: its outcome is recorded. But the
// compensations that its function has registered are in no history, and neither is a
// branch that it has left running, as First does. So the outcome of a scope with one or
// the other says so, and a replay calls its function again: the history answers all its
// calls, what it returns is ignored, and it goes no further than before.
//
//	3  step_completed  pay/reserve
//	4  step_completed  pay          again: it has registered "release"
//	5  run_resumed                  pay is replayed, and "release" is registered

// replaysAgain says that s, and so every scope around it, must be replayed once it
// has ended.
func (s *scope) replaysAgain() {
	for ; s != nil && !s.again.Swap(true); s = s.up {
	}
}

// mustReplay reports whether a scope that is about to end must be replayed from then on.
func (s *scope) mustReplay() bool {
	if len(s.begun) > 0 && s.run.waits.anyOpen(s.begun) {
		s.replaysAgain()
	}
	return s.again.Load()
}

// replayed is called when the function of a scope that has ended was replayed.
func (s *scope) replayed() {
	s.seat.close()
	if s.run.dead.Load() == nil && s.beyond == 0 {
		_ = s.replay.finish() // an error has parked the run
	}
	s.leave()
}

// goesBeyond refuses a call that a scope makes in its replay and had not made before it
// ended: its code was changed. What the function does after that does not matter.
func (s *scope) goesBeyond(name string) error {
	if s.beyond++; s.beyond > patience {
		runtime.Goexit()
	}
	return fmt.Errorf("%w: %s has ended in run %s, and %q was not called in it", ErrOutsideRun, s.path, s.run.id, name)
}

// limits reports whether ctx, with which a call of s is about to wait, has a deadline
// that only this process knows.
func (s *scope) limits(ctx context.Context) bool {
	_, limited := ctx.Deadline()
	return limited || s.limited
}

// mayWait parks the run if this call, of which nothing is recorded, is to wait with such
// a context. Code that has ended or was stopped does not wait any more, whatever its
// contexts.
func (s *scope) mayWait(key string, limited bool) error {
	if !limited || s.ended || s.stopped() != nil {
		return nil
	}
	return s.run.misused(s.run.unrecorded(key, &misuse.ContextDeadlineError{RunID: s.run.id, Call: key}))
}

// callerOutside returns file:line of the nearest caller that is not of this package; empty: the
// engine made the call, which is one of a compensation.
func callerOutside() string { return goroutine.CallerOutside(packagePath) }

var packagePath = reflect.TypeFor[Engine]().PkgPath()
