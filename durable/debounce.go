package durable

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// Each start with Debounce is one durable write, so a process that ends between two writes loses
// nothing. The run that waits to begin holds an exclusive key. A start that finds the key free
// creates a run that holds it. One that finds it held by a run that has not begun appends
// input_replaced to that run, fenced by its epoch: if a claim, or another start, was faster, it looks
// again. And one that finds it held by a run that has begun takes the key from that run and
// creates another one, in one change. docs/adr/0041-queues.md says why.

// debounce is what Debounce was given.
type debounce struct {
	key        string
	wait, most time.Duration
}

// Debounce makes one run of starts that come close together: the run begins once there was no start
// with the key for as long as wait, and at the latest most after the first of them. It has the input
// of the last, and otherwise what the first start gave it (its attributes, headers and so on). A
// start that comes after the run has begun makes another run, which may be executed at the same time. So does one that
// comes once its cancel was requested, or that would hold the run back until its Deadline has passed.
// The handle is on the run that the start has become part of.
//
// A start that has returned is never lost, whatever process ends when. The key is one of the
// workflow, its version and the queue: starts of two versions, as while processes are being
// replaced, become a run each. Where starts give different times, those of the last count. wait is at
// least a millisecond, most is no less than wait, and both are at most MaxSleep. The id must be
// AutoID; Debounce does not go together with Delay, StartAt, Dedup, Exclusive, WithSignal, InTx and
// StartAll, and not with a start within a workflow function: call it in a step there.
func Debounce(key string, wait, most time.Duration) StartOption {
	return func(o *startOptions) {
		err := store.CheckName("debounce key", key)
		if err == nil && (wait < time.Millisecond || most < wait || most > MaxSleep) {
			err = fmt.Errorf("Debounce: wait is %s and most is %s; wait must be at least a millisecond and most between that and %s: %w", wait, most, MaxSleep, ErrInvalid)
		}
		if err != nil {
			o.refuse(err)
			return
		}
		o.line.debounce = &debounce{key: key, wait: wait, most: most}
	}
}

// checkDebounce returns why a start cannot be one of several that become one run.
func (o *startOptions) checkDebounce(ctx context.Context, id string) error {
	if o.line.debounce == nil {
		return nil
	}
	_, inRun := inScope(ctx)
	with := ""
	switch l := &o.line; {
	case l.delay > 0 || l.at != 0:
		with = "Delay or StartAt"
	case l.dedup != "":
		with = "Dedup"
	case len(o.exclusive) > 0:
		with = "Exclusive"
	case len(o.signals) > 0:
		with = "WithSignal"
	case o.tx != nil:
		with = "InTx"
	case o.begin != nil:
		with = "FromExport"
	case inRun:
		return fmt.Errorf("Debounce was used in a workflow function, whose replay must find the same child: start the run in a step: %w", ErrInvalid)
	case id != AutoID:
		return fmt.Errorf("Debounce needs durable.AutoID, because several starts become one run: %w", ErrInvalid)
	default:
		l.delay = l.debounce.wait
		return nil
	}
	return fmt.Errorf("Debounce and %s were both given: %w", with, ErrInvalid)
}

// hold returns the exclusive key of a run that waits to begin. The version is part of it, because
// the run is executed by that version, which may take another input, or be served by nobody any more.
func (d *debounce) hold(row *store.Run) string {
	key := fmt.Sprintf("durable.debounce/%d/%d/%d/%s/%s/%s/%s", len(row.Workflow), len(row.InitialVersion), len(row.Queue), row.Workflow, row.InitialVersion, row.Queue, d.key)
	if len(key) > store.MaxHold { // all names are as long as names may be
		key = fmt.Sprintf("durable.debounce/%x", sha256.Sum256([]byte(key)))
	}
	return key
}

// debounced starts a run, or makes the start part of one that has not begun.
func (o *startOptions) debounced(ctx context.Context, e *Engine, def *definition, input []byte) (id string, err error) {
	for tries := 0; ; tries++ {
		if err := context.Cause(ctx); err != nil {
			return "", err
		}
		if e.roster.isClosing() {
			return "", ErrClosed
		}
		var held *store.OccupiedError
		id, err = o.newDebounced(ctx, e, def, input, tries, nil)
		if errors.As(err, &held) {
			id, err = o.join(ctx, e, def, input, tries, held.Holder)
		}
		switch {
		case err == nil:
			return id, nil
		case errors.Is(err, store.ErrExists), errors.Is(err, store.ErrOccupied), errors.Is(err, store.ErrCancelAsked), commit.Overtaken(err):
			// Another start, a claim or a cancel was faster: look again, and let the others go on.
			sleep(ctx, rand.N(time.Millisecond<<min(tries, 5)))
		default:
			return "", fmt.Errorf("durable: starting a run of workflow %s with Debounce: %w", def.name, storeError(err))
		}
	}
}

// newDebounced creates a run that holds the key. It takes the key from the run that has it, if from is
// not nil.
func (o *startOptions) newDebounced(ctx context.Context, e *Engine, def *definition, input []byte, tries int, from *store.Run) (id string, err error) {
	id = generateID(def.name, e.now().Time(), min(tries, 8))
	row, created, _, span, _ := e.newborn(ctx, def, id, input, o)
	created.At = row.CreatedAt
	new(commit.Head).Append(id, &created)
	change := store.Change{
		RunID: id, Expect: store.Expect{Absent: true}, Create: &row, Events: []store.Event{created},
		Hold: []string{o.line.debounce.hold(&row)},
	}
	if from != nil {
		change = store.Change{RunID: from.ID, Expect: store.Expect{Epoch: from.Epoch}, Release: true, Start: []store.Change{change}}
	}
	err = e.commitOne(ctx, change)
	if from != nil && commit.Overtaken(err) {
		// It has no event of from by which it would be recognised when it is sent again for want of an answer.
		switch h, unread := e.store.Load(ctx, id, store.Cursor{NoEvents: true, AfterMessage: math.MaxInt64}); {
		case unread == nil && h.Run.CreatedAt == row.CreatedAt:
			err = nil
		case unread != nil && !errors.Is(unread, store.ErrNotFound):
			err = unread
		}
	}
	if err != nil {
		return "", err // and there is no run that the span would be of
	}
	span.End()
	e.metrics.RunStarted(&row)
	e.log.AboutRun(slog.LevelInfo, &row, "durable: run started")
	e.claims.Expect(&row, id)
	return id, nil
}

// join makes the start part of the run that holds the key, or starts another one if that has begun, is to be
// cancelled, or would have passed its deadline by the time to which this start holds it back.
func (o *startOptions) join(ctx context.Context, e *Engine, def *definition, input []byte, tries int, holder string) (id string, err error) {
	h, err := e.store.Load(ctx, holder, store.Cursor{NoEvents: true, AfterMessage: math.MaxInt64})
	if err != nil {
		return "", err
	}
	row, d := &h.Run, o.line.debounce
	wake := min(e.now().Add(d.wait), row.CreatedAt.Add(d.most))
	switch {
	case row.Status.Terminal():
		return "", store.ErrFenced // the key is free
	case row.Status != store.Pending, row.CancelAsked, row.DeadlineAt != 0 && wake >= row.DeadlineAt:
		return o.newDebounced(ctx, e, def, input, tries, row)
	}
	_, err = e.act(ctx, row, nil, commit.Act{
		From: []store.Status{store.Pending}, NoCancel: true,
		Event: store.Event{Type: store.InputReplaced, Payload: input, Data: history.Encode(&history.Replacement{StartAt: wake, Executor: e.id})},
		Row:   &store.RowPatch{WakeAt: &wake},
	})
	if err != nil {
		return "", err
	}
	e.log.AboutRun(slog.LevelDebug, row, "durable: a start has become part of a run that has not begun")
	row.WakeAt = wake
	e.claims.Expect(row, row.ID)
	return row.ID, nil
}
