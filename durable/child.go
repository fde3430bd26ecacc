package durable

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// Abandon lets a child run outlive its parent; without it, a child that has not
// ended is cancelled when its parent ends.
func Abandon() StartOption { return func(o *startOptions) { o.abandon = true } }

// offspring are the children of a run.
type offspring struct {
	run     *run
	bearing sync.WaitGroup // children that are being started

	mu     sync.Mutex
	list   []*child
	closed bool // the run is ending, and starts no more

	looked    chan struct{} // closed when firstBorn is known; nil: nobody has asked
	firstBorn bool          // the store had no child of a run with this id; see noneBefore
}

// child is a child run, as its parent sees it.
type child struct {
	id      string
	call    call
	abandon bool
	derived bool       // its id was derived from the call, and not chosen by the workflow
	evaded  bool       // the derived id is another run's, so that the child has a different one
	found   bool       // it may have existed before this call started it
	began   store.Time // when it was started

	// The mutex of the run's waits guards what follows.
	finished store.Event // the recorded outcome; Seq 0: none yet
	foreign  bool        // it will not report its end to this run
	// elsewhere: another executor has it, and this one would not take it over.
	elsewhere bool
	hearing   chan struct{}         // closed when the goroutine that records the outcome leaves; nil: none does
	parked    map[*parking]struct{} // of the goroutines that wait for that
}

// startChild begins a child run, or finds the one that the history has.
func startChild(s *scope, def *definition, id string, input []byte, o *startOptions) (*child, error) {
	r := s.run
	ch := &child{abandon: o.abandon}
	// Before the call gets its place: it would leave that empty, and the run may go on after
	// its end was refused.
	if err := r.offspring.expect(); err != nil {
		return nil, err
	}
	defer r.offspring.bearing.Done()
	ch.call.codeless = o.checkCode(r.eng, def)
	if err := s.begin(&ch.call, def.name, history.CallChild); err != nil {
		return nil, err
	}
	defer s.end()
	if rec := ch.call.rec; rec != nil {
		ch.id, ch.finished, ch.began, ch.derived = rec.Child, rec.Outcome, rec.OpenedAt, rec.Derived
		s.lastAt = max(s.lastAt, rec.OpenedAt)
		if rec.Outcome.Type == store.StepFailed {
			return nil, ch.refused()
		}
		if id != AutoID && id != ch.id {
			return nil, s.replay.changed(ChangeChild, &ch.call, fmt.Sprintf("The child run was started as %s and is %s now.", ch.id, id))
		}
		if !rec.Opened {
			return nil, r.damaged(0, fmt.Errorf("child %s has an end and no beginning", ch.call.key))
		}
		r.offspring.adopt(ch)
		return ch, nil
	}
	if o.counts() {
		s.awaitClock()
	}
	if err := s.stopped(); err != nil {
		return nil, err
	}
	ch.id = id
	if id == AutoID {
		ch.id, ch.derived = history.DerivedChildID(r.id, ch.call.key, r.row.Branch), true
	}
	if err := checkRunID(ch.id); err != nil {
		return nil, ch.refuse(err)
	}
	o.parent, o.parentKey = r.id, parentKey(ch.call.key, r.row.Generation)
	if err := ch.bear(def, input, o); err != nil {
		return nil, err
	}
	r.offspring.adopt(ch)
	return ch, nil
}

// parentKey is what a child keeps of the call that started it. It names a later
// generation: a child that an earlier generation started under the same chosen id is
// another run, which reported its outcome to that generation.
func parentKey(key string, generation int32) string {
	if generation != 0 {
		key += fmt.Sprintf("~g%d", generation)
	}
	return key
}

// bear creates the child in the change that records it. If its id was derived and belongs
// to another run, which this call did not start, the child gets a different id: whoever
// chose that run's id must not decide what becomes of this child.
func (ch *child) bear(def *definition, input []byte, o *startOptions) error {
	r := ch.call.scope.run
	for tries := 1; ; tries++ {
		err := ch.bearAs(def, input, o)
		switch {
		case err == nil || !ofContent(err):
			return err // the run is lost or parked, or the engine is closed
		case o.heldBy(err, ch.id, def.name) != err:
			return ch.refuse(o.heldBy(err, ch.id, def.name))
		case errors.Is(err, store.ErrOccupied):
			return ch.refuse(commit.Occupied("was not started; start it again once that run has ended", err))
		case !errors.Is(err, store.ErrExists):
			return ch.refuse(err)
		}
		want := store.Run{ID: ch.id, Workflow: def.name, InputHash: payload.InputHash(input), Parent: o.parent, ParentKey: o.parentKey}
		have, err := r.eng.families.holderOf(r, ch.id)
		if err != nil {
			return r.unrecorded(ch.call.key, err)
		}
		if !ch.derived || tries > maxEvasions || startedBy(have, &want) {
			return ch.refuse(conflictOfChild(&want, have))
		}
		next := evadedChildID(history.DerivedChildID(r.id, ch.call.key, r.row.Branch), r.origin.seed, tries)
		if store.CheckRunID(next) != nil {
			return ch.refuse(conflictOfChild(&want, have))
		}
		r.logLine(slog.LevelWarn, "durable: the id of a child is that of another run; the child gets another one", slog.String("child", ch.id), slog.String("instead", next))
		ch.id, ch.evaded = next, true
	}
}

// maxEvasions limits how many other ids are tried. Nobody can foresee even the first of
// them.
const maxEvasions = 3

// evadedChildID returns the id for a child whose derived id another run has. It depends on
// the parent's seed, so that nobody can have taken it beforehand.
func evadedChildID(derived string, seed uint64, try int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%016x %d %s", seed, try, derived))
	return derived + history.EvadedMark + hex.EncodeToString(sum[:6])
}

// startedBy reports whether an existing run was started by the very call that wants one
// now, in an earlier life of its parent.
func startedBy(have, want *store.Run) bool {
	return have != nil && have.Parent == want.Parent && have.ParentKey == want.ParentKey
}

// holderOf reads, for r, the row of the run that has an id. It returns nil if the run was deleted
// meanwhile, and an error if the store is damaged there.
func (fam *families) holderOf(r *run, id string) (*store.Run, error) {
	defer r.bodies.asks()()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		h, err := fam.eng.store.Load(fam.eng.life.loops, id, store.Cursor{NoEvents: true, AfterMessage: math.MaxInt64})
		switch {
		case err == nil:
			return &h.Run, nil
		case definite(err) && !ofContent(err):
			return nil, err
		case definite(err), errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrClosed), fam.eng.life.loops.Err() != nil:
			return nil, nil
		}
		sleep(fam.eng.life.loops, pause) // a read that fails says nothing
	}
}

// bearAs is one try of bear, under the id that the child has now.
func (ch *child) bearAs(def *definition, input []byte, o *startOptions) error {
	s := ch.call.scope
	e := s.run.eng
	defer func(enqueue bool) { o.line.enqueue = enqueue }(o.line.enqueue) // for another try
	r, events := e.birth(s.trace.Settled(s.run.ctx), def, ch.id, input, o)
	if r.def != nil && e.roster.addNew(r) != nil {
		// A run with this id is executed here: the workflow chose an id that is in use, or an
		// execution of this run that was lost waits for the store's answer to its own start of
		// the child. The store decides whether it is the same run. If it is not there, it must
		// not be created as one that this engine executes; whoever claims it executes it.
		r.cancel(nil) // this execution does not begin
		o.line.enqueue = true
		r, events = e.birth(s.trace.Settled(s.run.ctx), def, ch.id, input, o)
	}
	here := r.def != nil
	if !here {
		r.cancel(nil)
	}
	change := r.log.Conceive(&r.row, events)
	r.bornAt = events[0].At
	change.Hold = o.exclusive
	w := &commit.Write{Start: []store.Change{change}, Send: e.mailroom.mailTo(ch.id, o.mail)}
	for i := range w.Send {
		w.Send[i].IfLive = true // a child that exists already may have ended
	}
	unique := ch.evaded || ch.derived && s.run.row.Branch == 0 && s.run.offspring.noneBefore()
	ev := store.Event{Type: store.ChildStarted, Data: history.Encode(&history.ChildBegun{Child: ch.id, Abandon: ch.abandon, Chosen: !ch.derived, Evaded: ch.evaded})}
	var err error
	if ch.began, err = s.recordWith(&ch.call, ev, w); err == nil {
		r.spans.Start.End() // before the spans below it
	}
	r.spans.Start = nil
	if here && err == nil && !unique && !e.families.isOurs(s.run, r) {
		err = errElsewhere
	}
	if err == nil {
		r.reportStart(slog.String("parent", s.run.id))
		if o.line.waits() {
			e.claims.Expect(&r.row, r.id)
		}
	}
	if here {
		r.settled(err)
		if errors.Is(err, errElsewhere) {
			err, here = nil, false
		}
	}
	ch.found = !here && !unique
	return err
}

// noneBefore reports whether the store had no child of a run with this id when this
// execution started its first one. Children may outlive their parent: if a run was deleted
// and its id used again, a child of the deleted run may still be there, with its outcome.
func (os *offspring) noneBefore() bool {
	os.mu.Lock()
	first := os.looked == nil
	if first {
		os.looked = make(chan struct{})
	}
	looked := os.looked
	os.mu.Unlock()
	defer os.run.bodies.asks()()
	if !first { // not by a mutex, for which no virtual time passes
		<-looked
		return os.firstBorn
	}
	defer close(looked)
	page, err := os.run.eng.store.List(os.run.eng.life.loops, store.Filter{Parents: []string{os.run.id}, Limit: 1})
	os.firstBorn = err == nil && len(page.Runs) == 0
	return os.firstBorn
}

// conflictOfChild returns an error that says how the existing run, nil if it cannot be
// read, differs from the child that was to be started.
func conflictOfChild(want, have *store.Run) error {
	conflict := &ConflictError{RunID: want.ID, Want: want.Workflow}
	if have == nil {
		return conflict
	}
	conflict.Have = have.Workflow
	switch {
	case have.Workflow != want.Workflow:
	case have.InputHash != want.InputHash:
		conflict.SameFlow = true
	default:
		conflict.OtherParent, conflict.Parent = true, have.Parent
	}
	return conflict
}

// refuse records that the child could not be started, because the reason may be gone when
// the call is replayed. It returns the error as a replay will.
func (ch *child) refuse(err error) error {
	s := ch.call.scope
	d := &history.StepEnd{Kind: history.CallChild, Error: s.run.eng.program.errors.Record(err)}
	if _, err := s.record(&ch.call, store.Event{Type: store.StepFailed, Data: history.Encode(d)}); err != nil {
		return err
	}
	return s.run.eng.program.errors.Restore(d.Error)
}

// refused returns the recorded refusal of the child.
func (ch *child) refused() error {
	s, rec := ch.call.scope, ch.call.rec
	s.lastAt = max(s.lastAt, rec.LastAt)
	d, err := history.Of[history.StepEnd](&rec.Outcome)
	if err != nil || d.Error == nil {
		return s.run.damaged(rec.Outcome.Seq, errors.New("its error is not readable"))
	}
	return s.run.eng.program.errors.Restore(d.Error)
}

// errElsewhere: a child that was to be executed here already existed.
var errElsewhere = errors.New("durable: the run existed already")

// isOurs reports whether a child of r that was created with an owner is the one that was
// created here, and not an earlier one with the same id.
func (fam *families) isOurs(r, child *run) bool {
	defer r.bodies.asks()()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		h, err := fam.eng.store.Load(fam.eng.life.loops, child.id, store.Cursor{NoEvents: true})
		switch {
		case err == nil:
			return h.Run.Epoch == child.row.Epoch && h.Run.Owner == fam.eng.id
		case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrClosed), errors.Is(err, store.ErrCorrupt), fam.eng.life.loops.Err() != nil:
			return false
		}
		sleep(fam.eng.life.loops, pause) // a read that fails says nothing
	}
}

// expect announces that a child is about to be started: the end of the run
// waits until it was adopted, so that no child is left out when the children of an ended
// run are cancelled. It must be followed by bearing.Done. It returns an error once the run
// is ending: only a branch that was left over can start a child then.
func (os *offspring) expect() error {
	os.mu.Lock()
	defer os.mu.Unlock()
	if os.closed {
		return fmt.Errorf("durable: run %s has ended while one of its branches was about to start a child: %w", os.run.id, ErrLost)
	}
	os.bearing.Add(1)
	return nil
}

// adopt adds a child to those that the end of its parent concerns.
func (os *offspring) adopt(ch *child) {
	os.mu.Lock()
	defer os.mu.Unlock()
	os.list = append(os.list, ch)
}

// cancelMessages returns the messages that cancel the children which an ending run leaves
// behind. No child is started after this call.
func (os *offspring) cancelMessages() []store.Message {
	os.mu.Lock()
	os.closed = true
	os.mu.Unlock()
	os.bearing.Wait()
	os.mu.Lock()
	defer os.mu.Unlock()
	var ids []string
	known := map[string]bool{}
	for _, ch := range os.list {
		known[ch.id] = true
		if !ch.abandon && !os.run.waits.heard(ch) {
			ids = append(ids, ch.id)
		}
	}
	if os.run.past != nil {
		// A branch that is left over may not have come to the call that adopts its child.
		ids = append(ids, slices.DeleteFunc(os.run.past.OpenChildren(), func(id string) bool { return known[id] })...)
	}
	var ms []store.Message
	for _, id := range ids {
		ms = append(ms, history.EndChild(id, fmt.Sprintf("its parent %s has ended", os.run.id), os.run.eng.now()))
	}
	return ms
}

// heard reports whether the outcome of a child is recorded.
func (wt *runWaits) heard(ch *child) bool {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	return ch.finished.Seq != 0
}
