package durable

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/desk"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// AutoID, passed to Start as the id, makes it generate a readable one, such as
// "checkout-2026-11-21-k7f3". It is not a valid id itself and is not empty, so that an id
// left empty by mistake is noticed.
const AutoID = "\x00auto"

// apply applies the options of a start, checks them, and encodes what they hold.
func (o *startOptions) apply(ctx context.Context, e *Engine, id string, list []StartOption) error {
	o.refuse(guard.Options(o, list))
	s, inRun := inScope(ctx)
	if inRun {
		o.inherit(s.run)
	}
	if o.err == nil && !inRun { // a child waits once it is known to be a new one
		o.err = o.awaitClock(ctx, e)
	}
	if o.err == nil {
		o.err = o.checkDeadline(e, inRun)
	}
	if o.err == nil {
		o.err = o.checkHeaders()
	}
	if o.err == nil {
		o.err = o.checkExclusive()
	}
	if o.err == nil {
		o.err = checkAttributes(o.attributes)
	}
	if o.err == nil {
		o.err = o.line.check()
	}
	if o.err == nil {
		o.err = o.checkDebounce(ctx, id)
	}
	if o.err == nil {
		o.err = o.checkFrom(ctx, id)
	}
	if o.err == nil && inRun && o.tx != nil {
		o.err = fmt.Errorf("InTx was used in a workflow function, where a start is recorded with the run: start it in the body of Transact, or without InTx: %w", ErrInvalid)
	}
	if o.err == nil {
		o.err = o.encodeSignals(e, id)
	}
	return o.err
}

// Start records a new run and returns a handle on it once the record is
// durable. Start is idempotent by id: if the run exists with the same workflow and input,
// the handle is on that run; with another workflow or input, the error is a
// *ConflictError. This engine executes the run from now on. If the workflow is not in its
// Options.Workflows, the error matches ErrNotRegistered, and nothing was started; a Ref starts
// what an engine elsewhere executes. A run that an option puts in line
// (OnQueue, Delay, StartAt, Debounce) is only recorded; see Enqueue.
//
// The end of ctx, or its deadline, ends the wait and never touches the run.
//
// Within a workflow function, with its context, Start begins a child run, in the
// same durable write that records the call: however the process ends, there is one child
// or none. With AutoID the child's id is the parent's id and the call's key, such as
// "order-42/ship", with a suffix if another run has that id. When the parent ends, its
// children are cancelled, unless Abandon says otherwise. If the child's code is missing here, the
// parent is parked (CodeChildNotRegistered) until it is executed by an engine that has it.
//
// Errors: *ConflictError; ErrNotRegistered; ErrInvalid for an id, input or option that cannot be
// used, and *EncodeError for an input that cannot be kept; ErrOccupied when another run holds an
// exclusive or deduplication key; *NotRunningError for WithSignal to a run that has ended; ErrNoEngine,
// ErrClosed; ErrUnavailable when the store could not be reached; the cause of ctx's end. Within a
// workflow function also those of every durable call (package documentation, Errors).
func (w *Workflow[I, O]) Start(ctx context.Context, id string, in I, o ...StartOption) (*Run[O], error) {
	e, err := engineOf(ctx)
	if err != nil {
		return nil, err
	}
	if w.def.err != nil {
		return nil, w.def.err
	}
	s, inRun := inScope(ctx)
	limit := e.sealer.Limit()
	if inRun {
		limit = s.run.origin.maxPayload
	}
	input, _, err := payload.Encode(e.sealer, limit, in)
	if err != nil {
		bad := &EncodeError{RunID: id, Type: reflect.TypeFor[I]().String(), Err: err}
		if inRun {
			return nil, s.run.refuses(bad)
		}
		return nil, bad
	}
	var opts startOptions
	if err := opts.apply(ctx, e, id, o); err != nil {
		return nil, fmt.Errorf("durable: starting run %q of workflow %s: %w", id, w.def.name, err)
	}
	opts.input = reflect.TypeFor[I]()
	if !inRun {
		if err := opts.checkCode(e, w.def); err != nil {
			return nil, err
		}
	}
	if opts.tx != nil {
		id, err := opts.startIn(ctx, e, w.def, id, input)
		if err != nil {
			return nil, err
		}
		return &Run[O]{eng: e, id: id}, nil
	}
	if inRun {
		c, err := startChild(s, w.def, id, input, &opts)
		if err != nil {
			return nil, err
		}
		return &Run[O]{eng: e, id: c.id, child: c}, nil
	}
	if id != AutoID {
		return handleOf[O](e.start(ctx, w.def, id, input, &opts))
	}
	r, id, err := opts.startAuto(ctx, e, w.def, input)
	return handleOf[O](r, e, id, err)
}

// startAuto starts a run with a generated id.
func (o *startOptions) startAuto(ctx context.Context, e *Engine, def *definition, input []byte) (r *run, id string, err error) {
	if o.line.debounce != nil {
		id, err = o.debounced(ctx, e, def, input)
		return nil, id, err
	}
	for tries := 0; ; tries++ {
		r, id, err = e.create(ctx, def, generateID(def.name, e.now().Time(), tries), input, o)
		if !errors.Is(err, store.ErrExists) || tries == 8 {
			return r, id, err
		}
		// The suffix is in use: try a longer one.
	}
}

// Run starts a run and waits for its result: Start and then Wait.
//
// Errors are those of Start and of Run.Wait.
func (w *Workflow[I, O]) Run(ctx context.Context, id string, in I, o ...StartOption) (O, error) {
	h, err := w.Start(ctx, id, in, o...)
	if err != nil {
		var zero O
		return zero, err
	}
	return h.Wait(ctx)
}

func handleOf[O any](r *run, e *Engine, id string, err error) (*Run[O], error) {
	if err != nil {
		return nil, err
	}
	return &Run[O]{eng: e, id: id, run: r}, nil
}

// start creates the run, or finds the existing one that is the same.
func (e *Engine) start(ctx context.Context, def *definition, id string, input []byte, o *startOptions) (*run, *Engine, string, error) {
	if o.begin != nil {
		if err := o.begin(ctx, desk.Start{Engine: e, RunID: id, Workflow: def.name, Type: def.input, Input: input}); err != nil {
			return nil, e, id, fmt.Errorf("durable: starting run %s from a file: %w", id, err)
		}
	}
	var h *store.History
	for tries := 0; ; tries++ {
		r, _, err := e.create(ctx, def, id, input, o)
		if !errors.Is(err, store.ErrExists) {
			return r, e, id, err
		}
		if other := e.roster.active(id); other != nil && other.born != nil {
			// Another goroutine is about to start it: what is not written yet
			// cannot be read.
			select {
			case <-other.born:
			case <-ctx.Done():
				return nil, e, id, context.Cause(ctx)
			}
		}
		h, err = e.store.Load(ctx, id, store.Cursor{NoEvents: true})
		if err == nil {
			break
		}
		// That start failed: this one may succeed.
		if !errors.Is(err, store.ErrNotFound) || tries == 8 {
			return nil, e, id, fmt.Errorf("durable: reading run %s, which exists already: %w", id, storeError(err))
		}
		if other := e.roster.active(id); other != nil && other.ending.Load() {
			// It has ended and was deleted since, and its execution has yet to make way.
			select {
			case <-other.ended:
			case <-ctx.Done():
				return nil, e, id, context.Cause(ctx)
			}
		}
	}
	switch {
	case h.Run.Workflow != def.name:
		return nil, e, id, &ConflictError{RunID: id, Have: h.Run.Workflow, Want: def.name}
	case h.Run.InputHash != payload.InputHash(input) && !e.sameInput(ctx, id, o.input, input):
		return nil, e, id, &ConflictError{RunID: id, Have: h.Run.Workflow, Want: def.name, SameFlow: true}
	}
	if err := e.mailroom.sendFirst(ctx, id, o.mail); err != nil {
		return nil, e, id, err
	}
	return e.roster.active(id), e, id, nil
}

// clockPatience is how long a start waits for the store's clock.
const clockPatience = time.Second

// counts reports whether the row of the run has a moment that is counted from now.
func (o *startOptions) counts() bool {
	return o.deadline != 0 || o.line.delay != 0 || o.line.debounce != nil
}

// awaitClock waits until a moment that is counted from now can be computed; see scope.awaitClock. A start in the
// program's own transaction does not wait: with one writer it keeps the store from being asked.
func (o *startOptions) awaitClock(ctx context.Context, e *Engine) error {
	if o.tx != nil || !o.counts() {
		return nil
	}
	return awaitClock(ctx, e)
}

// awaitClock waits until the estimate of the store's clock knows of the last suspend of this machine. A store that is
// silent may take a start later, so the start is refused.
func awaitClock(ctx context.Context, e *Engine) error {
	if !e.heart.Clock.Outdated(time.Now()) {
		return nil
	}
	patience, end := context.WithTimeout(ctx, clockPatience)
	defer end()
	if e.heart.AwaitClock(patience.Done(), nil) || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("%w: this machine was suspended, or its clock was set, and the store has not said the time since", ErrUnavailable)
}

// checkDeadline refuses a run that could begin only once its time is up. In a workflow function a
// replay must come to the same, so StartAt is not compared with the clock there.
func (o *startOptions) checkDeadline(e *Engine, inRun bool) error {
	held := o.line.delay
	if b := o.line.debounce; b != nil {
		held = b.most // under a stream of starts
	}
	if o.line.at != 0 && !inRun {
		held = o.line.at.Sub(e.now())
	}
	if o.deadline == 0 || held < o.deadline {
		return nil
	}
	return fmt.Errorf("Deadline: %s is over before the run may begin: it is held back for %s: %w", o.deadline, held.Round(time.Millisecond), ErrInvalid)
}

// newborn makes the row of a new run, pending, and the event that creates it. The caller
// ends the span once the run exists.
func (e *Engine) newborn(ctx context.Context, def *definition, id string, input []byte, o *startOptions) (row store.Run, created store.Event, seed uint64, span trace.Span, s telemetry.Start) {
	now := e.now()
	if o.scheduled != nil {
		now = max(now, o.scheduled.At) // which the store's clock has reached, whatever is taken for its time here
	}
	row = store.Run{
		ID: id, Workflow: def.name, Version: def.version, InitialVersion: def.version,
		Status: store.Pending, Epoch: int64(now), InputHash: payload.InputHash(input), Parent: o.parent, ParentKey: o.parentKey,
		CreatedAt: now, UpdatedAt: now, Attributes: o.attributes,
	}
	o.line.put(&row)
	if o.deadline != 0 {
		row.DeadlineAt = now.Add(o.deadline)
	}
	steps := def.steps
	if here := e.program.defs.find(def.name, def.version); here != nil {
		if row.Version == "" {
			row.Version, row.InitialVersion = here.version, here.version
		}
		if steps == nil {
			steps = here.steps // started through a Ref, which knows only the name
		}
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, according to its documentation
	born := &history.Beginning{Seed: hex.EncodeToString(b[:]), Declared: steps, Headers: o.headers, Deadline: row.DeadlineAt, MaxPayload: e.options.MaxPayload, Exclusive: o.exclusive, Attributes: o.attributes, Environment: e.program.recorded, Scheduled: o.scheduled}
	span, s = e.tracing.StartSpan(ctx, &row)
	s.KeepIn(born)
	born.Baggage = telemetry.Baggage(ctx)
	born.Run = history.IdentityOf(&row)
	created = store.Event{Type: store.WorkflowCreated, Data: history.Encode(born)}
	created.Payload = e.sealer.Seal(payload.PlaceOf(id, &created), input)
	return row, created, binary.BigEndian.Uint64(b[:]), span, s
}

// birth prepares a new run: its row, its first events and, if its code is here and it is not
// only put in line, the execution that begins with it.
func (e *Engine) birth(ctx context.Context, def *definition, id string, input []byte, o *startOptions) (*run, []store.Event) {
	here := e.program.defs.find(def.name, def.version)
	if o.line.waits() {
		here = nil
	}
	row, created, seed, span, ofStart := e.newborn(ctx, def, id, input, o)
	events := append(make([]store.Event, 0, 2), created)
	var s *telemetry.Segment
	if here != nil {
		row.Status, row.Owner, row.StartedAt = store.Running, e.id, row.CreatedAt
		started := e.sign(&history.Claim{})
		if s = e.tracing.BeginSegment(&row, false); s != nil {
			started.Segment = telemetry.Format(s.Context)
		}
		events = append(events, store.Event{Type: store.WorkflowStarted, Data: history.Encode(started)})
	}
	r := newRun(e, row, here)
	r.ctx = r.spans.Enter(r.ctx, s, row.Trace)
	r.spans.Start = span
	r.log.Create(&row)
	r.origin.headers, r.origin.exclusive, r.origin.trace = o.headers, o.exclusive, ofStart
	r.ctx = telemetry.WithBaggage(r.ctx, telemetry.Baggage(ctx))
	r.origin.input, r.origin.seed, r.origin.maxPayload = input, seed, e.sealer.Limit()
	r.inbox.deliver(e.mailroom.firstMail(id, o.mail))
	if r.origin.input == nil {
		r.origin.input = []byte{}
	}
	return r, events
}

// settled launches or abandons a new run's execution once its creation is settled. It is
// called under the committer's mutex.
func (r *run) settled(err error) {
	if r.born != nil {
		close(r.born)
	}
	if err == nil {
		r.launch()
	} else {
		r.abandon()
	}
}

// checkRunID is store.CheckRunID; of a missing id it also says where to get one.
func checkRunID(id string) error {
	err := store.CheckRunID(id)
	if id == "" {
		return fmt.Errorf("%w: name the run, or have it named with durable.AutoID", err)
	}
	return err
}

// create commits a new run and, when its code is here, begins to execute it.
func (e *Engine) create(ctx context.Context, def *definition, id string, input []byte, o *startOptions) (*run, string, error) {
	if err := checkRunID(id); err != nil {
		return nil, "", err
	}
	if err := ctx.Err(); err != nil {
		return nil, "", context.Cause(ctx)
	}
	if err := errInTransaction(ctx); err != nil {
		return nil, "", err
	}
	r, events := e.birth(ctx, def, id, input, o)
	w := &commit.Write{Events: events, Create: &r.row, Hold: o.exclusive, Send: e.mailroom.mailTo(id, o.mail), Expect: store.Expect{Absent: true}, FailFast: true}
	if r.def != nil {
		r.born = make(chan struct{})
		if err := e.roster.addNew(r); err != nil {
			r.cancel(nil)
			if errors.Is(err, store.ErrOwned) {
				err = &store.ExistsError{RunID: id}
			}
			return nil, "", err
		}
		// Called with the outcome, not after the caller's wait: a run that was created
		// must be executed even if the caller has gone.
		w.Then = func(err error) {
			r.bornAt = w.Events[0].At
			r.settled(err)
		}
	} else {
		e.roster.wrote(id) // Expect knows whether this engine takes it
	}
	if err := e.committer.Commit(ctx, &r.log, w); err != nil {
		if r.def != nil && !w.Admitted() {
			close(r.born)
			r.abandon()
		}
		if r.def == nil {
			r.cancel(nil)
			e.roster.isOwn(id) // takes back wrote: no notice will tell of this
		}
		if errors.Is(err, ErrLost) {
			// A claim of this engine has taken the run between add and the
			// write: it exists already.
			err = &store.ExistsError{RunID: id}
		}
		switch {
		case errors.Is(err, store.ErrUnknown):
			err = fmt.Errorf("durable: whether run %s was started is not known, because the engine was closed before the store answered; start it again with the same id: %w", id, err)
		case errors.Is(err, ErrUnavailable):
			err = fmt.Errorf("durable: run %s was not started: %w", id, err)
		}
		err = commit.Occupied("was not started; start it again once that run has ended", err)
		return nil, "", o.heldBy(err, id, def.name)
	}
	if r.def == nil {
		r.spans.Start.End()
		r.cancel(nil)
		e.claims.Expect(&r.row, id)
	}
	r.reportStart()
	if r.def == nil {
		return nil, id, nil
	}
	return r, id, nil
}

// reportStart counts and logs that a run was started here, by a caller or by its parent.
func (r *run) reportStart(more ...slog.Attr) {
	r.eng.metrics.RunStarted(&r.row)
	r.logLine(slog.LevelInfo, "durable: run started", more...)
}

// abandon takes back a run that was added and never launched. Callers that found it and
// wait for it look again.
func (r *run) abandon() {
	// A caller that waits for it to be loaded must not wait for ever.
	_ = r.die(&death{kind: deathLost, err: ErrLost})
	r.outcome = outcome{err: ErrLost}
	if r.eng.roster.forget(r) { // mail has come for it: a claim looks for the run
		r.eng.claims.Wake()
	}
	close(r.recorded)
	close(r.ended)
	r.eng.roster.runners.Done()
}

// sameInput reports whether an existing run was started with this input, of type t,
// though it was encoded by an earlier version, with another codec, or in another time
// zone.
func (e *Engine) sameInput(ctx context.Context, id string, t reflect.Type, input []byte) bool {
	if t == nil || e.sealer.EncodesAlike(t) {
		return false
	}
	h, err := e.store.Load(ctx, id, store.Cursor{Branch: new(int32)}) // of the first generation
	if err != nil {
		return false
	}
	for ev, err := range h.Events {
		return err == nil && e.sealer.CreatedWith(id, &ev, t, input)
	}
	return false
}

// generateID returns a readable run id: workflow, day, and a suffix of letters and digits
// that are hard to confuse. The suffix grows with the number of collisions.
func generateID(workflow string, day time.Time, collisions int) string {
	const alphabet = "23456789abcdefghjkmnpqrstuvwxyz"
	suffix := make([]byte, 4+2*collisions)
	_, _ = rand.Read(suffix) // never fails, according to its documentation
	for i, b := range suffix {
		suffix[i] = alphabet[int(b)%len(alphabet)]
	}
	return strings.Join([]string{workflow, day.Format(time.DateOnly), string(suffix)}, "-")
}

// checkFrom returns why the start cannot begin with a file.
func (o *startOptions) checkFrom(ctx context.Context, id string) error {
	if o.begin == nil {
		return nil
	}
	if _, inRun := inScope(ctx); inRun || id == "" || id == AutoID {
		return fmt.Errorf("FromExport needs the id of the run that is in the file, and is for Start outside of a workflow function only: %w", ErrInvalid)
	}
	return nil
}

// ConflictError says what a run id, or a deduplication key (Dedup), is already used for.
type ConflictError struct {
	RunID    string
	Have     string // workflow of the existing run
	Want     string // workflow that was to be started
	SameFlow bool   // the workflow is the same and the input differs
	// Dedup: the id is free, and another run of Queue, Holder, has this key.
	Dedup  string
	Queue  string
	Holder string
	// OtherParent: workflow and input are the same, but the existing run is not a child
	// of the run that was to start it. It is a child of Parent; empty: of none.
	OtherParent bool
	Parent      string
}

func (e *ConflictError) Error() string {
	switch {
	case e.Dedup != "":
		return fmt.Sprintf("durable: run %q of workflow %s was not started: run %q has the deduplication key %q until it ends: wait for that run, or start this one then", e.RunID, e.Want, e.Holder, e.Dedup)
	case e.OtherParent && e.Parent == "":
		return fmt.Sprintf("durable: run %q of workflow %s exists already and is no child: use another id, or wait for it with Handle(%q) in a step", e.RunID, e.Have, e.RunID)
	case e.OtherParent:
		return fmt.Sprintf("durable: run %q of workflow %s exists already as a child of another call or run, %s: use another id", e.RunID, e.Have, e.Parent)
	case e.Have == "":
		return fmt.Sprintf("durable: run %q exists already and is another one than the run of workflow %s that was to be started: use another id", e.RunID, e.Want)
	case e.SameFlow:
		return fmt.Sprintf("durable: run %q of workflow %s exists already with another input: use another id, or read it with Handle(%q)", e.RunID, e.Have, e.RunID)
	}
	return fmt.Sprintf("durable: run %q exists already as a run of workflow %s, not %s: use another id", e.RunID, e.Have, e.Want)
}

// Is reports ErrConflict, and ErrOccupied where another run has the key.
func (e *ConflictError) Is(target error) bool {
	return target == ErrConflict || e.Dedup != "" && target == ErrOccupied
}
