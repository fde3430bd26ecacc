package durable

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// Bulk is what StartAll has done.
type Bulk struct {
	// Started runs were recorded; Existing ones already existed with the same
	// workflow and input.
	Started, Existing int
	// Refused are the items that could not be started, in the order in which
	// that was noticed.
	Refused []BulkError
}

// BulkError is an item that StartAll could not start. It does not stop the
// others.
type BulkError struct {
	ID  string
	Err error // as Start would have returned it
}

func (e BulkError) Error() string { return fmt.Sprintf("run %q was not started: %v", e.ID, e.Err) }

// Unwrap returns Err.
func (e BulkError) Unwrap() error { return e.Err }

// StartAll starts a run for every pair of id and input, many of them in one
// durable write, which makes it much cheaper than as many calls of Start. The
// options apply to each of the runs. The runs wait in the store; executors that
// serve the workflow, including this one, take them as they have room
// (Options.MaxRuns), so that a hundred thousand runs are not as many
// goroutines. As with Start, they need no Recover to be executed here.
//
// What Bulk counts is durable when StartAll returns, also with an error.
// StartAll is idempotent by id: called again with the same sequence, it
// continues where it stopped; items with AutoID are always new. An item that
// cannot be started is in Bulk.Refused, and the others are started
// nevertheless.
//
// The error says why not all items were tried: the cause of ctx's end, which
// stops it between two batches, ErrClosed, ErrUnavailable, or what the store says if it is damaged
// (store.ErrCorrupt) or belongs to a newer program (store.ErrSchema). Within a workflow
// function StartAll is refused with ErrInvalid, since nothing would record what
// it did: start children there, or call it in a step.
func (w *Workflow[I, O]) StartAll(ctx context.Context, in iter.Seq2[string, I], o ...StartOption) (Bulk, error) {
	e, err := engineOf(ctx)
	if err != nil {
		return Bulk{}, err
	}
	if w.def.err != nil {
		return Bulk{}, w.def.err
	}
	if in == nil {
		return Bulk{}, fmt.Errorf("durable: StartAll of workflow %s: the sequence is nil: %w", w.def.name, ErrInvalid)
	}
	if _, inRun := inScope(ctx); inRun {
		return Bulk{}, fmt.Errorf("durable: StartAll of workflow %s was called in a workflow function, where nothing would record what it did: start children, or call it in a step: %w", w.def.name, ErrInvalid)
	}
	b := &bulkStart{eng: e, def: w.def, ctx: ctx, ids: map[string]bool{}}
	b.options.input = reflect.TypeFor[I]()
	if err := b.options.apply(ctx, e, "", o); err != nil {
		return Bulk{}, fmt.Errorf("durable: starting runs of workflow %s: %w", w.def.name, err)
	}
	if b.options.tx != nil {
		return Bulk{}, fmt.Errorf("durable: StartAll of workflow %s: many runs would hold the transaction open for long: use Start with InTx for each, or StartAll without it: %w", w.def.name, ErrInvalid)
	}
	for id, v := range in {
		input, _, encodeErr := payload.Encode(e.sealer, e.sealer.Limit(), v)
		if encodeErr != nil {
			b.refuse(id, &EncodeError{RunID: id, Type: reflect.TypeFor[I]().String(), Err: encodeErr})
			continue
		}
		if err = b.add(bulkItem{id: id, auto: id == AutoID, input: input}); err != nil {
			break
		}
	}
	if err == nil {
		err = b.finish()
	}
	if err != nil {
		err = fmt.Errorf("durable: StartAll of workflow %s stopped with %s started and %d found (call it again to go on): %w", w.def.name, count.Of(b.told.Started, "run"), b.told.Existing, err)
	}
	return b.told, err
}

// bulkItem is a run to be started.
type bulkItem struct {
	id    string
	auto  bool // the id is generated, and another one is taken if it is in use
	tries int
	input []byte
	span  trace.Span // of its start
	// scheduled: a schedule starts it; nil: none does.
	scheduled *history.Scheduled
}

// staleAfter is for how long the change of an item is good that has not been committed.
const staleAfter = 100 * time.Millisecond

// maxBulkTries limits how often an item is tried whose id is in use when it is
// created and free when it is looked up, or whose generated id is in use.
const maxBulkTries = 8

// bulkStart is one StartAll in progress.
type bulkStart struct {
	eng     *Engine
	def     *definition
	ctx     context.Context
	options startOptions
	told    Bulk
	started func(id string) // is told of each run that was recorded; nil: nobody is

	items []bulkItem
	batch []store.Change  // of the items, in their order
	ids   map[string]bool // of the batch: it holds one change per run
	size  int
}

func (b *bulkStart) refuse(id string, err error) {
	if id == AutoID {
		id = ""
	}
	b.told.Refused = append(b.told.Refused, BulkError{ID: id, Err: err})
}

// add puts an item into the batch, which is committed when it is full.
func (b *bulkStart) add(it bulkItem) error {
	if it.auto {
		it.id = generateID(b.def.name, b.eng.now().Time(), it.tries)
	}
	if err := checkRunID(it.id); err != nil {
		b.refuse(it.id, err)
		return nil
	}
	for b.ids[it.id] {
		// The same id again: the first one must be stored before the two are
		// compared.
		if err := b.flush(); err != nil {
			return err
		}
	}
	change := b.change(&it)
	n := change.Size()
	if len(b.batch) > 0 && (len(b.batch) >= b.eng.committer.Limits().Changes || b.size+n > b.eng.committer.Limits().Batch) {
		if err := b.flush(); err != nil {
			return err
		}
		change = b.change(&it) // it is no older than those that were committed before it
	}
	b.ids[it.id] = true
	b.items, b.batch, b.size = append(b.items, it), append(b.batch, change), b.size+n
	return nil
}

// change makes the change that creates the run of an item: pending, without an
// owner.
func (b *bulkStart) change(it *bulkItem) store.Change {
	options := b.options
	options.scheduled = it.scheduled
	row, created, _, span, _ := b.eng.newborn(b.ctx, b.def, it.id, it.input, &options)
	it.span = span
	created.At = row.CreatedAt
	new(commit.Head).Append(it.id, &created)
	return store.Change{
		RunID: it.id, Expect: store.Expect{Absent: true}, Create: &row, Events: []store.Event{created},
		Hold: b.options.exclusive, Send: b.eng.mailroom.mailTo(it.id, b.options.mail),
	}
}

// finish commits what is left, including items that must be tried again.
func (b *bulkStart) finish() error {
	for len(b.batch) > 0 {
		if err := b.flush(); err != nil {
			return err
		}
	}
	return nil
}

// flush commits the batch and acts on the answers.
func (b *bulkStart) flush() error {
	items, batch := b.items, b.batch
	b.items, b.batch, b.size = nil, nil, 0
	clear(b.ids)
	if err := context.Cause(b.ctx); err != nil {
		return err
	}
	if b.eng.roster.isClosing() {
		return ErrClosed
	}
	if err := b.options.awaitClock(b.ctx, b.eng); err != nil {
		return err
	}
	if b.eng.now().Sub(batch[0].Create.CreatedAt) > staleAfter {
		// What is counted from the start of a run is counted from now: the sequence may take its time.
		for i := range items {
			batch[i] = b.change(&items[i])
		}
	}
	// Not under ctx: the outcome of a batch must be known, so ctx ends the call
	// between two batches.
	ctx := context.WithoutCancel(b.ctx)
	errs := b.eng.commitKnown(b.ctx, ctx, batch)
	var exist []bulkItem
	var failed error
	var own []string
	for i, err := range errs {
		switch {
		case err == nil:
			b.told.Started++
			if b.started != nil {
				b.started(items[i].id)
			}
			items[i].span.End()
			b.eng.metrics.RunStarted(batch[i].Create)
			own = append(own, items[i].id)
		case errors.Is(err, store.ErrExists):
			if held := b.options.heldBy(err, items[i].id, b.def.name); held != err {
				b.refuse(items[i].id, held)
				continue
			}
			exist = append(exist, items[i])
		case ofContent(err):
			b.refuse(items[i].id, commit.Occupied("was not started; start it again once that run has ended", err))
		default:
			own = append(own, items[i].id) // it may be stored nevertheless
			failed = errors.Join(context.Cause(b.ctx), err)
		}
	}
	if len(own) > 0 {
		b.eng.claims.Expect(batch[0].Create, own...)
	}
	again, err := b.compare(ctx, exist)
	if err == nil {
		err = failed
	}
	if errors.Is(err, store.ErrClosed) {
		err = errors.Join(ErrClosed, err)
	} else if err != nil {
		err = storeError(err)
	}
	if err != nil {
		return err
	}
	for _, it := range again {
		if err := b.add(it); err != nil {
			return err
		}
	}
	return nil
}

// compare looks at the runs whose ids were in use: each is the one that was to
// be started, or another one, or is gone by now, so that its item is tried
// again.
func (b *bulkStart) compare(ctx context.Context, items []bulkItem) (again []bulkItem, err error) {
	var look []string
	for _, it := range items {
		if !it.auto {
			look = append(look, it.id)
		}
	}
	rows := map[string]store.Run{}
	if len(look) > 0 {
		for row, err := range b.eng.runsOf(ctx, store.Filter{IDs: look, Limit: len(look)}) {
			if err != nil {
				return nil, err
			}
			rows[row.ID] = *row
		}
	}
	for _, it := range items {
		row, there := rows[it.id]
		switch {
		case !there && it.tries+1 == maxBulkTries:
			b.refuse(it.id, &store.ExistsError{RunID: it.id})
		case !there:
			it.tries++
			again = append(again, it)
		case row.Workflow != b.def.name:
			b.refuse(it.id, &ConflictError{RunID: it.id, Have: row.Workflow, Want: b.def.name})
		case row.InputHash != payload.InputHash(it.input) && !b.eng.sameInput(ctx, it.id, b.options.input, it.input):
			b.refuse(it.id, &ConflictError{RunID: it.id, Have: row.Workflow, Want: b.def.name, SameFlow: true})
		default:
			if err := b.eng.mailroom.sendFirst(ctx, it.id, b.options.mail); err != nil {
				b.refuse(it.id, err)
				continue
			}
			b.told.Existing++
		}
	}
	return again, nil
}
