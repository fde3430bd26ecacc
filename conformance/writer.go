package conformance

import (
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// The workflow of most runs of the suite, and what executors serve.
const (
	workflow = "order"
	version  = "v1"
)

var serves = []store.Served{{Workflow: workflow, Versions: []string{version}}}

// writer knows where a run's log ends and builds the Changes that follow. It is a
// value: building a Change does not move it, done does.
type writer struct {
	t     *T
	id    string
	epoch int64
	seq   int64
	sum   uint32
	at    store.Time // of the last event
}

// create returns the Change that creates a run, and the writer after it.
func (t *T) create(id string, edits ...func(*store.Run)) (store.Change, *writer) {
	now := t.now()
	run := &store.Run{
		ID: id, Workflow: workflow, InitialVersion: version, Version: version,
		Status: store.Pending, Epoch: int64(now), CreatedAt: now,
	}
	for _, edit := range edits {
		edit(run)
	}
	w := &writer{t: t, id: id, epoch: run.Epoch}
	c := store.Change{RunID: id, Expect: store.Expect{Absent: true}, Create: run}
	c.Events = w.seal(store.Event{Type: store.WorkflowCreated, At: run.CreatedAt, Payload: []byte(`{"input":1}`)})
	w.done(c)
	return c, w
}

// run creates a run and returns its writer.
func (t *T) run(s store.Store, id string, edits ...func(*store.Run)) *writer {
	t.Helper()
	c, w := t.create(id, edits...)
	t.must(s, c)
	return w
}

// seal numbers and seals events after the end of the log.
func (w *writer) seal(events ...store.Event) []store.Event {
	events = slices.Clone(events)
	seq, sum, at := w.seq, w.sum, w.at
	for i := range events {
		e := &events[i]
		seq++
		e.Seq = seq
		if e.At == 0 {
			e.At = max(w.t.now(), at)
		}
		at = e.At
		e.Sum = store.Seal(w.id, sum, e)
		sum = e.Sum
	}
	return events
}

// append returns the plain Change that appends events.
func (w *writer) append(events ...store.Event) store.Change {
	return store.Change{RunID: w.id, Expect: store.Expect{Epoch: w.epoch}, Events: w.seal(events...)}
}

// patch returns the Change that patches the row alone.
func (w *writer) patch(p store.RowPatch) store.Change {
	return store.Change{RunID: w.id, Expect: store.Expect{Epoch: w.epoch}, Row: &p}
}

// end returns the Change that ends the run in a terminal status, or interrupts it.
func (w *writer) end(status store.Status) store.Change {
	types := map[store.Status]store.Type{
		store.Completed: store.WorkflowCompleted, store.Failed: store.WorkflowFailed,
		store.Cancelled: store.WorkflowCancelled, store.Interrupted: store.WorkflowInterrupted,
	}
	c := w.append(store.Event{Type: types[status]})
	c.Row = &store.RowPatch{Status: &status}
	if status.Terminal() {
		c.Row.EndedAt = ptr(c.Events[0].At)
	}
	c.Yield, c.Release = true, true
	return c
}

// done moves the writer past a Change that was carried out.
func (w *writer) done(c store.Change) {
	if n := len(c.Events); n > 0 {
		last := &c.Events[n-1]
		w.seq, w.sum, w.at = last.Seq, last.Sum, last.At
	}
	w.epoch = c.RowEpoch()
}

// must commits a Change that has to succeed, and moves past it.
func (w *writer) must(s store.Store, c store.Change) {
	w.t.Helper()
	w.t.must(s, c)
	w.done(c)
}

// steps appends n steps, one Change each.
func (w *writer) steps(s store.Store, n int) {
	w.t.Helper()
	for range n {
		w.must(s, w.append(step(fmt.Sprintf("step-%d", w.seq))))
	}
}

// at returns a writer for a run as a claim returned it.
func (t *T) at(r store.Run) *writer {
	t.Helper()
	require.NotNil(t, r.Last, "S27: a claimed run comes with its last event")
	return &writer{t: t, id: r.ID, epoch: r.Epoch, seq: r.Last.Seq, sum: r.Last.Sum, at: r.Last.At}
}

// step is the outcome of a step.
func step(key string) store.Event {
	return store.Event{Type: store.StepCompleted, Key: key, Attempt: 1, Ordinal: 1, Payload: []byte(`{"done":"` + key + `"}`)}
}

// signal is a message to a run.
func signal(to, id string) store.Message {
	return store.Message{To: to, Kind: store.KindSignal, Name: "go", ID: id, At: 1, Payload: []byte(id)}
}

func send(ms ...store.Message) store.Change { return store.Change{Send: ms} }

// beat makes an executor alive.
func (t *T) beat(s store.Store, id string, edits ...func(*store.Executor)) store.Pulse {
	t.Helper()
	e := store.Executor{ID: id, Name: id, Host: "host", PID: 1, Lease: longLease, Serves: serves}
	for _, edit := range edits {
		edit(&e)
	}
	p, err := s.Beat(t.Context(), e)
	require.NoError(t, err, "beat of %s", id)
	return p
}

func leased(e *store.Executor) { e.Lease = shortLease }

func leaving(e *store.Executor) { e.Leaving = true }

// claim claims runs for a live executor: those given, or without ids those that are
// due.
func (t *T) claim(s store.Store, executor string, ids ...string) []store.Run {
	t.Helper()
	runs, err := s.Claim(t.Context(), claimOf(executor, ids...))
	require.NoError(t, err, "claim by %s", executor)
	return runs
}

func claimOf(executor string, ids ...string) store.Claim {
	return store.Claim{Executor: executor, Serves: serves, Max: 1000, IDs: ids}
}

// claimed creates a run and has it claimed by a live executor.
func (t *T) claimed(s store.Store, executor, id string, edits ...func(*store.Run)) *writer {
	t.Helper()
	t.run(s, id, edits...)
	t.beat(s, executor)
	runs := t.claim(s, executor, id)
	require.Len(t, runs, 1, "S19: a free run is claimed")
	return t.at(runs[0])
}

// kill waits for the lease of an executor to run out that beat with shortLease.
func (t *T) kill(d *Data, s store.Store, executor string) {
	t.Helper()
	if d.Advance != nil {
		d.Advance(shortLease + 1)
	}
	t.eventually("S20: the lease of "+executor+" has run out", func() bool { return !t.live(s, executor) })
}

func (t *T) live(s store.Store, executor string) bool {
	t.Helper()
	all, err := s.Executors(t.Context())
	require.NoError(t, err)
	for _, e := range all {
		if e.ID == executor {
			return e.Live
		}
	}
	return false
}
