package durabletest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// A tape is a recorded history without its end: a store in which the run is as if its
// process had died just before the last write. A replay of it executes no body,
// because what is recorded is not executed again, and ends where the recorded run
// did.
type tape struct {
	data *memory.Store
	run  store.Run
	end  store.Type // of the event that was cut off; empty: the run had not ended
	from int64      // first event that is not from the recording
	idle bool       // it was never executed
}

// byCode reports whether the code alone decided how the run ended, so that a replay
// must end the same. A cancel, or a failure set by recovery, was decided elsewhere.
func (t *tape) byCode() bool {
	return t.end == store.WorkflowCompleted || t.end == store.WorkflowFailed && !notByCode[t.run.Code]
}

var notByCode = map[string]bool{durable.CodeRestarted: true, durable.CodeQuarantined: true}

// newTape copies a run from a store.
func newTape(ctx context.Context, from store.Store, id string) (*tape, error) {
	h, err := from.Load(ctx, id, store.Cursor{All: true})
	if err != nil {
		return nil, err
	}
	var events []store.Event
	for ev, err := range h.Events {
		if err != nil {
			return nil, err
		}
		events = append(events, ev)
	}
	if len(events) == 0 {
		return nil, errors.New("the run has no history")
	}
	t := &tape{run: h.Run}
	if last := events[len(events)-1]; h.Run.Status.Terminal() {
		t.end = last.Type
		events = events[:len(events)-1]
	}
	if len(events) == 0 {
		return nil, errors.New("the run has no history")
	}
	// The replay continues the recorded run at the time when its last event was
	// written: a deadline that had passed by then has passed, and a later one is
	// still ahead.
	last, now := events[len(events)-1].At.Time(), time.Now()
	if t.end != "" {
		last = maxTime(last, h.Run.EndedAt.Time())
	}
	t.data = memory.OpenAt(func() time.Time { return last.Add(time.Since(now)) })
	t.from = int64(len(events)) + 1
	t.idle = !slices.ContainsFunc(events, func(e store.Event) bool {
		return e.Type == store.WorkflowStarted || e.Type == store.WorkflowContinued
	})
	row := h.Run
	row.Status, row.Code, row.Reason, row.Owner, row.Queue, row.Last = store.Interrupted, "", "", "", "", nil
	row.EndedAt, row.WakeAt = 0, 0
	row.CancelAsked = row.CancelAsked || t.end == store.WorkflowCancelled
	row.Strikes, row.Dedup, row.ArchivedSeq = 0, "", 0
	return t, t.write(ctx, row, h, events)
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// write creates the run for the replay to find. There is no engine yet.
func (t *tape) write(ctx context.Context, row store.Run, h *store.History, events []store.Event) error {
	commit := func(c store.Change) error { return t.data.Commit(ctx, []store.Change{c})[0] }
	first := store.Change{RunID: row.ID, Expect: store.Expect{Absent: true}, Create: &row, Events: events[:1]}
	for _, m := range h.Inbox {
		m.To = row.ID
		first.Send = append(first.Send, m)
	}
	if err := commit(first); err != nil {
		return err
	}
	now := store.Expect{Epoch: first.RowEpoch()}
	same := row.Status
	for i := range h.Branches {
		if h.Branches[i].N == 0 {
			continue
		}
		if err := commit(store.Change{RunID: row.ID, Expect: now, Row: &store.RowPatch{Status: &same}, Branch: &h.Branches[i]}); err != nil {
			return err
		}
	}
	const atOnce = 500
	for i := 1; i < len(events); i += atOnce {
		if err := commit(store.Change{RunID: row.ID, Expect: now, Events: events[i:min(i+atOnce, len(events))]}); err != nil {
			return err
		}
	}
	return nil
}

// A barrier keeps every body from running, and reports that one was about to run.
type barrier struct {
	mu      sync.Mutex
	reached []string
	at      chan struct{}
}

func (b *barrier) around(ctx context.Context, a durable.AttemptInfo, _ func(context.Context) error) error {
	b.mu.Lock()
	if b.reached = append(b.reached, a.Key); len(b.reached) == 1 {
		close(b.at)
	}
	b.mu.Unlock()
	<-ctx.Done()
	return ctx.Err()
}

func (b *barrier) first() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.reached) == 0 {
		return ""
	}
	return b.reached[0]
}

// play replays a run as the store has it, with this code, and returns what differs,
// or nothing. The error is the helper's own.
func (c *config) play(ctx context.Context, from store.Store, id string, defs []durable.Definition) (difference string, err error) {
	t, err := newTape(ctx, from, id)
	if err != nil {
		return "", fmt.Errorf("copying the history of run %s: %w", id, err)
	}
	defer func() { _ = t.data.Close() }()
	wall := &barrier{at: make(chan struct{})}
	o := c.options(defs)
	o.Around = append([]func(context.Context, durable.AttemptInfo, func(context.Context) error) error{wall.around}, o.Around...)
	o.ArchiveSync, o.RerunLastStep, o.NoReconcileOnBoot = false, false, true
	if t.idle {
		return "", nil // there is nothing to compare
	}
	before := c.goroutines()
	eng, err := durable.Open(ctx, t.data.Handle(), o)
	if err != nil {
		return "", err
	}
	defer func() { _ = eng.Close() }()
	if t.run.Paused {
		if err := eng.Unpause(ctx, id); err != nil {
			return "", err
		}
	}
	if _, err := eng.Recover(ctx); err != nil {
		return "", err
	}
	waits, err := c.ownWait(ctx, t, before)
	if err != nil {
		return "", err
	}
	if err := c.settle(ctx, t, wall); err != nil {
		if waits != "" {
			return waits, nil
		}
		return "", err
	}
	want, err := recordOf(ctx, eng, from, id)
	if err != nil {
		return "", err
	}
	got, err := recordOf(ctx, eng, t.data, id)
	if err != nil {
		return "", err
	}
	if wrong := t.judge(want, got, wall.first()); wrong != "" || waits == "" {
		return wrong, nil
	}
	return waits, nil
}

// goroutines lists the user's goroutines, if they can be distinguished from others.
func (c *config) goroutines() []goroutine {
	if c.realTime {
		return nil
	}
	return userGoroutines()
}

// ownWait describes how the code waits on its own during a replay to the recorded
// end. Everything that a durable call waits for has happened there, so a replay takes
// no time. Empty: it does not wait.
func (c *config) ownWait(ctx context.Context, t *tape, before []goroutine) (string, error) {
	if c.realTime || !t.byCode() {
		return "", nil
	}
	synctest.Wait()
	h, err := t.data.Load(ctx, t.run.ID, store.Cursor{NoEvents: true})
	if err != nil || h.Run.Status.Terminal() || h.Run.Status == store.Interrupted && h.Run.Code != "" {
		return "", err
	}
	g := newOf(c.goroutines(), before)
	if len(g) == 0 {
		return "", nil
	}
	return fmt.Sprintf("the workflow function waits without a durable call (%s) in %s%s. A restart waits anew, and for ever where what it waits for was lost with the process: use durable.Sleep, durable.Await, durable.Go and durable.First, or wait in a step", g[0].state, g[0].at, g[0].startedAt()), nil
}

// settle waits until the replay goes no further: the run has ended or was parked;
// or it waits, or a body was about to run, and nothing else has happened for a while,
// because other branches may still be replaying.
func (c *config) settle(ctx context.Context, t *tape, wall *barrier) error {
	const look = 2 * time.Millisecond
	limit := min(c.within(), time.Minute)
	until := time.Now().Add(limit)
	quiet, seen := 0, int64(-1)
	for {
		h, err := t.data.Load(ctx, t.run.ID, store.Cursor{NoEvents: true})
		if err != nil {
			return err
		}
		switch r := &h.Run; {
		case r.Status.Terminal(), r.Status == store.Interrupted:
			return nil
		case r.Last.Seq != seen:
			quiet, seen = 0, r.Last.Seq
		case r.Status == store.Waiting, wall.first() != "":
			quiet++
		}
		if quiet > 25 {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("the replay does not end: after %s the run is %s, and waits for something that is no durable call", limit, h.Run.Status)
		}
		time.Sleep(look)
	}
}

// judge compares the end of a replay with the recorded end.
func (t *tape) judge(want, got *record, body string) string {
	switch {
	case t.end == "" && got.row.Code == durable.CodeChildMissing:
		return "" // it waits for its child, which is a file of its own
	case got.row.Status == store.Interrupted && got.row.Code != "":
		return got.row.Reason
	case t.end == "" && !got.row.Status.Terminal():
		return "" // the code came to where the history ends, and goes on from there
	case t.end == "":
		return fmt.Sprintf("the recorded run had not ended, and the code ends it there: it is %s", got.outcome())
	case !t.byCode():
		// It reached the point where it was stopped. What is stopped again there, and
		// when, does not depend on the code.
		return ""
	case body != "" && !got.row.Status.Terminal(): // otherwise it is the body of a losing branch
		return fmt.Sprintf("the recorded run ended behind its last call (%s); the code goes on, with step %q, which is not recorded", want.outcome(), body)
	case !got.row.Status.Terminal():
		last := ""
		for i := range got.events {
			if e := &got.events[i]; e.Seq >= t.from && e.Key != "" {
				last = fmt.Sprintf(", at call %q", e.Key)
				break
			}
		}
		return fmt.Sprintf("the recorded run ended (%s); the replay does not: it is %s%s", want.outcome(), got.row.Status, last)
	case !sameOutcome(want, got):
		return fmt.Sprintf("every recorded call was made again, with the results that are recorded, and the outcome is another one:\n  recorded: %s\n  replayed: %s", want.outcome(), got.outcome())
	}
	return ""
}
