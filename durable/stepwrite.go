package durable

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// stepWrite is a write of one event, with the memory for that event.
type stepWrite struct {
	commit.Write
	event [1]store.Event
}

// stepWrites saves an allocation per step: nothing holds a write once it is durable.
var stepWrites = sync.Pool{New: func() any { return new(stepWrite) }}

// record commits the event of w, advances the scope's clock and returns the event's
// time. The caller does not use w again.
func (st *step) record(w *stepWrite) (store.Time, error) {
	w.Events = w.event[:]
	w.Clock, st.ended = st.ended, time.Time{}
	err := st.call.scope.run.write(&w.Write)
	at := w.At()
	if err != nil {
		return at, err // a store that has not answered may still be reading the event
	}
	*w = stepWrite{}
	stepWrites.Put(w)
	st.recorded(at)
	return at, nil
}

// recordBegin records that a body is about to run.
func (st *step) recordBegin(n int, probation bool) error {
	r := st.call.scope.run
	ev := st.newEvent(store.StepStarted, n, history.Encode(&history.Begun{Input: st.inputHash(), Once: st.once, Probation: probation && !st.once}))
	w := &commit.Write{Events: []store.Event{ev}}
	// Not by run.write, which is for outcomes: it would end the trial of a suspect,
	// and its probation, before the suspected body has run.
	if err := r.eng.committer.Commit(context.Background(), &r.log, w); err != nil {
		return err
	}
	st.recorded(w.At())
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
		*st = step{}
		steps.Put(st)
	}
}
