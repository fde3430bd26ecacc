package durable

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// stepWrite is a write of one event, with the memory for that event. A step keeps it for later
// ones: nothing holds a write once it is durable.
type stepWrite struct {
	commit.Write
	event [1]store.Event
}

// writing returns the memory for a write of the step. What the log does not fill in of its event
// is to be filled in.
func (st *step) writing() *stepWrite {
	if st.write == nil {
		st.write = new(stepWrite)
		st.write.Events = st.write.event[:]
	}
	return st.write
}

// record commits the event of writing, advances the scope's clock and returns the event's
// time. The memory of the event, and that of its payload, may be used again if renewed.
func (st *step) record() (at store.Time, renewed bool, err error) {
	w := st.write
	w.Clock, st.ended = st.ended, time.Time{}
	err = st.call.scope.run.write(&w.Write)
	at = w.At()
	if err != nil {
		st.write = nil // a store that has not answered may still be reading the event
		return at, false, err
	}
	if renewed = w.Renew(); renewed {
		w.event[0].Data, w.event[0].Payload = nil, nil // they may be large; the rest is written anew
	} else {
		st.write = nil
	}
	st.recorded(at)
	return at, renewed, nil
}

// recordBegin records that a body is about to run, once the lease lets it: what is stopped, or killed, before that has not begun.
func (st *step) recordBegin(n int, probation bool) error {
	r := st.call.scope.run
	if err := st.awaitLease(); err != nil {
		return err
	}
	if err := st.mayKeep(); err != nil {
		return err
	}
	ev := st.newEvent(store.StepStarted, n, history.Encode(&history.Begun{Input: st.inputHash(), Once: st.once, Probation: probation && !st.once}))
	w := &commit.Write{Events: []store.Event{ev}}
	// Not by run.write, which is for outcomes: it would end the trial of a suspect, and its probation, before the body has run.
	if err := r.eng.committer.Commit(context.Background(), &r.log, w); err != nil {
		return err
	}
	st.recorded(w.At())
	return nil
}

// mayKeep parks the run if the outcome of a body could not be encrypted. It is called before the body
// runs, and before it is recorded that it begins: that of Once would count as one that has run.
func (st *step) mayKeep() error {
	r := st.call.scope.run
	if err := r.eng.sealer.Ready(); err != nil {
		return r.unrecorded(st.call.key, err)
	}
	return nil
}

// mustRecord parks the run if err is a refusal of the store: nothing after the step
// could be recorded.
func (st *step) mustRecord(err error) error {
	if definite(err) {
		return st.call.scope.run.unrecorded(st.call.key, err)
	}
	return err
}

// steps has the memory of steps that have ended.
var steps = sync.Pool{New: func() any { return new(step) }}

// end ends the call.
func (st *step) end() {
	reusable := st.reusable
	st.call.scope.end()
	if reusable {
		st.renew()
		steps.Put(st)
	}
}

// renew makes st a new step. To clear all of it would cost the collector more than all the rest
// of a step: so what only some steps have is cleared only if this one has it.
func (st *step) renew() {
	if st.tried {
		st.code.renew()
	}
	if st.call.rec != nil || st.call.codeless != nil || st.given != nil || st.input != nil || st.failures != nil ||
		st.tx != nil || st.saved.Load() != nil || st.spans != nil {
		*st = step{write: st.write, code: st.code}
		return
	}
	c := &st.call
	c.scope, c.ordinal, c.draws, c.placed, c.limited, c.undoable = nil, 0, 0, false, false, false // key and name are set by every call
	st.relaxed, st.long, st.once, st.cutOff, st.unseen, st.reusable = false, false, false, false, false, false
	st.tried, st.said, st.start = false, false, 0
}
