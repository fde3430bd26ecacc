package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// A hand makes the commits of a run in the store itself, without an engine: what a start, or a
// signal, costs with the same tables, indexes and fences if nothing is done but its writes.
type hand struct {
	s    store.Store
	name string // in the ids of its runs
	runs int
}

// byHand measures blocks of what a hand does, against single inserts. Its store has no engine, which would
// take over the runs of an executor that it does not know.
func byHand(t *target, rounds int, floor block, of func(*hand) block) ([]pair, error) {
	s, err := t.open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return pairs(rounds, floor, of(&hand{s: s}))
}

// log is where a run's log ends.
type log struct {
	id  string
	seq int64
	sum uint32
}

// event returns the next event of the log, sealed.
func (l *log) event(typ store.Type, key string, data, payload []byte) store.Event {
	l.seq++
	e := store.Event{Seq: l.seq, Type: typ, Key: key, At: store.TimeOf(time.Now()), Data: data, Payload: payload}
	e.Sum = store.Seal(l.id, l.sum, &e)
	l.sum = e.Sum
	return e
}

// expect is the fence of the run's owner.
var expect = store.Expect{Epoch: 1}

func (h *hand) commit(c store.Change) error {
	return h.s.Commit(context.Background(), []store.Change{c})[0]
}

// create creates a run, with the first two events that an engine writes.
func (h *hand) create() (*log, error) {
	l, c := h.creation()
	return l, h.commit(c)
}

// creation returns the change that creates a run.
func (h *hand) creation() (*log, store.Change) {
	h.runs++
	l := &log{id: fmt.Sprintf("by-hand-%s%d", h.name, h.runs)}
	now := store.TimeOf(time.Now())
	row := &store.Run{ID: l.id, Workflow: "start", InitialVersion: "1", Version: "1", Status: store.Running, Owner: "hand", Epoch: 1, CreatedAt: now, StartedAt: now}
	data := []byte(`{"workflow":"start","version":"1"}`)
	events := []store.Event{l.event(store.WorkflowCreated, "", data, byHandPayload), l.event(store.WorkflowStarted, "", data, nil)}
	return l, store.Change{RunID: l.id, Expect: store.Expect{Absent: true}, Create: row, Events: events}
}

// step appends the outcome of a step.
func (h *hand) step(l *log) error {
	return h.commit(l.step())
}

// step returns the change that records the outcome of a step.
func (l *log) step() store.Change {
	return store.Change{RunID: l.id, Expect: expect, Events: []store.Event{l.event(store.StepCompleted, "step", nil, byHandPayload)}}
}

// end returns the change that records that the run has completed.
func (l *log) end() store.Change {
	status, ended := store.Completed, store.TimeOf(time.Now())
	return store.Change{
		RunID: l.id, Expect: expect, Yield: true, Release: true, Events: []store.Event{l.event(store.WorkflowCompleted, "", nil, byHandPayload)},
		Row: &store.RowPatch{Status: &status, EndedAt: &ended, WakeAt: new(store.Time)},
	}
}

var byHandPayload = []byte("hf1 json int - - dbea4e35\n1")

// run makes the three commits of a run of one step.
func (h *hand) run() error {
	l, err := h.create()
	if err != nil {
		return err
	}
	if err := h.step(l); err != nil {
		return err
	}
	return h.commit(l.end())
}

// steps returns a block of n steps of a lone run, in microseconds a step.
func (h *hand) steps(n int) block {
	var l *log
	return func() (_ float64, err error) {
		if l == nil || l.seq > blocksPerRun*int64(n) {
			if l, err = h.create(); err != nil {
				return 0, err
			}
		}
		began := time.Now()
		for range n {
			if err := h.step(l); err != nil {
				return 0, err
			}
		}
		return micros(time.Since(began)) / float64(n), nil
	}
}

// promised is steps with all that an engine promises of a step; see bare.
func (h *hand) promised(n int) block {
	var ctx context.Context
	blocks := 0
	return func() (_ float64, err error) {
		if blocks++; blocks%blocksPerRun == 1 {
			if ctx, err = newBare(h); err != nil {
				return 0, err
			}
		}
		began := time.Now()
		err = bareInts(ctx, n)
		return micros(time.Since(began)) / float64(n), err
	}
}

// crowd returns a block of the runs of FAN, in durable changes a second: fanAtOnce of them are
// there at a time, and each commit has the next change of so many, chosen at random, as it is
// when runs share commits and none waits for all others.
func (h *hand) crowd(share int) block {
	return func() (float64, error) {
		began := time.Now()
		var live []*next
		for started := 0; ; {
			for ; len(live) < fanAtOnce && started < fanRuns; started++ {
				log, create := h.creation()
				live = append(live, &next{log: log, change: create})
			}
			if len(live) == 0 {
				return float64(fanRuns*fanChanges) / time.Since(began).Seconds(), nil
			}
			rand.Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
			var batch []store.Change
			for _, n := range live[:min(share, len(live))] {
				batch = append(batch, n.change)
			}
			if err := errors.Join(h.s.Commit(context.Background(), batch)...); err != nil {
				return 0, err
			}
			for _, n := range live[:len(batch)] {
				n.made()
			}
			live = slices.DeleteFunc(live, func(n *next) bool { return n.log == nil })
		}
	}
}

// next is the next change of a run of FAN.
type next struct {
	log     *log // nil when the run has ended
	change  store.Change
	changes int // made
}

// isStep reports whether the next change records a step.
func (n *next) isStep() bool { return n.changes >= 1 && n.changes <= fanSteps }

func (n *next) made() {
	switch n.changes++; {
	case n.changes <= fanSteps:
		n.change = n.log.step()
	case n.changes == fanSteps+1:
		n.change = n.log.end()
	default:
		n.log = nil
	}
}

// wait is the change by which a run begins to wait for a message.
func (l *log) wait() store.Change {
	status := store.Waiting
	event := l.event(store.WaitRequested, signalName, []byte(`{"name":"ping"}`), nil)
	return store.Change{RunID: l.id, Expect: expect, Events: []store.Event{event}, Row: &store.RowPatch{Status: &status}}
}

// receipt is the change that records that a run has the message of this number.
func (l *log) receipt(seq int64, payload []byte) store.Change {
	status := store.Running
	event := l.event(store.SignalReceived, signalName, fmt.Appendf(nil, `{"message":%d}`, seq), payload)
	return store.Change{RunID: l.id, Expect: store.Expect{Epoch: expect.Epoch, Inbox: &seq}, Events: []store.Event{event}, Row: &store.RowPatch{Status: &status}}
}

// starts makes n runs, and returns the median of how long one took, in microseconds.
func (h *hand) starts(n int) (float64, error) {
	took := make([]float64, n)
	for i := range took {
		began := time.Now()
		if err := h.run(); err != nil {
			return 0, err
		}
		took[i] = micros(time.Since(began))
	}
	return median(took), nil
}

// signals sends n messages to a run, each recorded with its receipt, and returns the median of how long one
// took. Before each the run begins to wait, as one that an engine executes, and its row is looked at once, as
// by the sender of SIGNAL: a commit that follows another without a break is faster than one that does not.
// Whoever executes runs also hears of what others do to them, and of what it has done itself.
func (h *hand) signals(ctx context.Context, n int) (float64, error) {
	ctx, stop := context.WithCancel(ctx)
	var listening sync.WaitGroup
	defer func() { stop(); listening.Wait() }()
	listening.Go(func() { _ = store.CapabilitiesOf(h.s).Notifier.Notify(ctx, func(store.Notice) {}) }) // until it is stopped
	l, err := h.create()
	if err != nil {
		return 0, err
	}
	took := make([]float64, n)
	for i := range took {
		if err := h.commit(l.wait()); err != nil {
			return 0, err
		}
		if err := pause(ctx, signalLook); err != nil {
			return 0, err
		}
		if _, err := h.s.Load(ctx, l.id, store.Cursor{}); err != nil {
			return 0, err
		}
		m := store.Message{To: l.id, Kind: store.KindSignal, Name: signalName, ID: fmt.Sprint(i), At: store.TimeOf(time.Now()), Payload: byHandPayload}
		received := l.receipt(int64(i)+1, byHandPayload)
		inbox := int64(i) // the message comes with its receipt
		received.Expect.Inbox, received.Send = &inbox, []store.Message{m}
		began := time.Now()
		if err := h.commit(received); err != nil {
			return 0, err
		}
		took[i] = micros(time.Since(began))
		if err := h.step(l); err != nil {
			return 0, err
		}
	}
	return median(took), nil
}
