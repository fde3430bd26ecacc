package durable_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/store"
)

// dieAtEachWrite tries a death just before and just after each write, counted from 1, until there
// are no more: die reports whether its process got as far as that. It returns how many deaths
// there were.
func dieAtEachWrite(die func(at int, after bool) (died bool)) (deaths int) {
	for at, before := 1, -1; before < deaths; at++ {
		before = deaths
		for _, after := range []bool{false, true} {
			if die(at, after) {
				deaths++
			}
		}
	}
	return deaths
}

// start begins a run on the process opened last.
func start[I, O any](t *testing.T, w *world, wf *durable.Workflow[I, O], id string, in I) *durable.Run[O] {
	t.Helper()
	h, err := wf.Start(w.ctx(), id, in)
	require.NoError(t, err)
	return h
}

// run begins a run and waits for its end.
func run[I, O any](t *testing.T, w *world, wf *durable.Workflow[I, O], id string, in I) (O, error) {
	t.Helper()
	return start(t, w, wf, id, in).Wait(w.ctx())
}

// wait waits for a run, from the process opened last.
func wait[I, O any](t *testing.T, w *world, wf *durable.Workflow[I, O], id string) (O, error) {
	t.Helper()
	h, err := wf.Handle(w.ctx(), id)
	require.NoError(t, err)
	return h.Wait(w.ctx())
}

// with is Options for these workflows.
func with(defs ...durable.Definition) durable.Options { return durable.Options{Workflows: defs} }

// hold is a step body that does not finish when a run comes to it for the first
// time, and later does at once: a crash while it runs is the moment between
// "before" and "after".
type hold struct {
	mu      sync.Mutex
	open    bool // it holds nobody
	reached int
	runs    map[string]bool
}

func (h *hold) body(ctx context.Context) error {
	id := durable.Attempt(ctx).RunID
	h.mu.Lock()
	if h.runs == nil {
		h.runs = map[string]bool{}
	}
	held := !h.open && !h.runs[id]
	h.reached++
	h.runs[id] = true
	h.mu.Unlock()
	if !held {
		return nil
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// count returns how often the body ran.
func (h *hold) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reached
}

// seen is what a workflow saw of a durable call.
type seen[T any] struct {
	value T
	err   error
}

// liveAndReplayed performs a call in a run, kills the process behind it, and
// returns what the workflow function saw at first and what it saw on replay.
func liveAndReplayed[T any](t *testing.T, o durable.Options, call func(ctx context.Context) (T, error)) (live, replay seen[T]) {
	t.Helper()
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		var all []seen[T]
		count := func() int {
			mu.Lock()
			defer mu.Unlock()
			return len(all)
		}
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			v, err := call(ctx)
			mu.Lock()
			all = append(all, seen[T]{v, err})
			mu.Unlock()
			return count(), durable.Do(ctx, "hold", h.body)
		})
		o.Workflows = append(o.Workflows, wf)
		w.open(t, o)
		start(t, w, wf, "r", 0)
		for range 60 {
			if synctest.Wait(); count() > 0 {
				break
			}
			time.Sleep(10 * time.Second)
		}
		require.Len(t, all, 1, "the call did not return: %s", w.log)
		w.reboot(t, o)
		n, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 2, n)
		live, replay = all[0], all[1]
	})
	return live, replay
}

// rebuild puts a tampered history in the place of a recorded one: the run is
// made again from its events, changed by f, as one that is interrupted and can
// be claimed. With seal, the sums are made anew, so that only what f did is
// wrong with it.
func rebuild(t *testing.T, w *world, id string, seal bool, f func(e *store.Event)) {
	t.Helper()
	row, events := w.row(id), w.events(id)
	row.Status, row.Owner, row.Code, row.Reason, row.Epoch = store.Interrupted, "", "", "", row.Epoch+100
	row.EndedAt = 0
	var kept []store.Event
	var before uint32
	for _, e := range events {
		switch e.Type {
		case store.WorkflowCompleted, store.WorkflowFailed, store.WorkflowInterrupted:
			continue
		}
		e.Seq = int64(len(kept) + 1)
		sound := store.Seal(id, before, &e)
		f(&e)
		e.Sum = sound
		if seal {
			e.Sum = store.Seal(id, before, &e)
		}
		before = e.Sum
		kept = append(kept, e)
	}
	_, err := w.data.Delete(context.Background(), store.Deletion{RunIDs: []string{id}, Force: true})
	require.NoError(t, err)
	row.Last = nil
	errs := w.data.Commit(context.Background(), []store.Change{{
		RunID: id, Expect: store.Expect{Absent: true}, Create: &row, Events: kept,
	}})
	require.NoError(t, errs[0])
}

// reheader changes the header of an envelope and makes its checksum anew.
func reheader(env []byte, from, to string) []byte {
	head, payload, _ := bytes.Cut(env, []byte("\n"))
	line := strings.Replace(string(head[:len(head)-8]), from, to, 1)
	return envelope.Seal(line, payload)
}
