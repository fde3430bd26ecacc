package durabletest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// A tape is a recorded history without its end: a store in which the run is as it
// would be had its process died just before the last write. A replay of it
// executes no body, since what is recorded is not executed again, and ends where the
// recorded run did.
type tape struct {
	data *memory.Store
	run  store.Run
	end  store.Type // of the event that was cut off; empty: the run had not ended
	from int64      // first event that is not from the recording
}

// ends are the outcomes that the code alone decides: those that a replay must come
// to as well.
var ends = map[store.Type]bool{store.WorkflowCompleted: true, store.WorkflowFailed: true}

// newTape copies a run out of a store.
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
	t := &tape{data: memory.Open(), run: h.Run}
	if last := events[len(events)-1]; h.Run.Status.Terminal() {
		if ends[last.Type] {
			t.end = last.Type
		}
		events = events[:len(events)-1]
	}
	if len(events) == 0 {
		return nil, errors.New("the run has no history")
	}
	t.from = int64(len(events)) + 1
	row := h.Run
	row.Status, row.Code, row.Reason, row.Owner, row.Queue, row.Last = store.Interrupted, "", "", "", "", nil
	row.EndedAt, row.DeadlineAt, row.WakeAt, row.Paused, row.CancelAsked = 0, 0, 0, false, false
	row.Strikes, row.Dedup, row.ArchivedSeq = 0, "", 0
	return t, t.write(ctx, row, h, events)
}

// write creates the run as it is to be found. No engine is there yet.
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

// A barrier keeps every body from running, and tells that one was to run.
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
// or nothing. The error is one of the helper's own.
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
	eng, err := durable.Open(ctx, t.data.Handle(), o)
	if err != nil {
		return "", err
	}
	defer func() { _ = eng.Close() }()
	if _, err := eng.Recover(ctx); err != nil {
		return "", err
	}
	if err := c.settle(ctx, t, wall); err != nil {
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
	return t.judge(want, got, wall.first()), nil
}

// settle waits until the replay goes no further: the run has ended or was parked;
// or it waits, or a body was to run, and nothing else has happened for a while, since
// other branches may still be replayed.
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

// judge compares the end of a replay with the end that was recorded.
func (t *tape) judge(want, got *record, body string) string {
	switch {
	case got.row.Status == store.Interrupted && got.row.Code != "":
		return got.row.Reason
	case t.end == "" && !got.row.Status.Terminal():
		return "" // the code came to where the history ends, and goes on from there
	case t.end == "":
		return fmt.Sprintf("the recorded run had not ended, and the code ends it there: it is %s", got.outcome())
	case body != "":
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
