package durable

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/desk"
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
	bearing sync.WaitGroup // of the children that are being started

	mu     sync.Mutex
	list   []*child
	closed bool // the run is ending, and starts none any more

	look      sync.Once
	firstBorn bool // there was no child of a run with this id before; see noneBefore
}

// child is a child run, as its parent sees it.
type child struct {
	id      string
	call    call
	abandon bool
	derived bool       // its id was derived from the call, and not chosen by the workflow
	evaded  bool       // what was derived is the id of another run
	found   bool       // it may have been there before it was started
	began   store.Time // when it was started

	// The mutex of the run's waits guards what follows.
	finished store.Event // the recorded outcome; Seq 0: none yet
	foreign  bool        // it tells its end to another run than this one
	// elsewhere: another executor has it, and nobody here takes it over.
	elsewhere bool
	hearing   chan struct{}         // closed when the goroutine that records the outcome leaves; nil: none does
	parked    map[*parking]struct{} // of those that wait for that
}

// startChild begins a child run, or finds the one the history has.
func (s *scope) startChild(def *definition, id string, input []byte, o *startOptions) (*child, error) {
	r := s.run
	ch := &child{abandon: o.abandon}
	if err := s.begin(&ch.call, def.name, history.CallChild); err != nil {
		return nil, err
	}
	defer s.end()
	if rec := ch.call.rec; rec != nil {
		ch.id, ch.finished, ch.began, ch.derived = rec.Child, rec.Outcome, rec.OpenedAt, rec.Derived
		s.lastAt = max(s.lastAt, rec.OpenedAt)
		if rec.Outcome.Type == store.StepFailed {
			return nil, s.refusedChild(rec)
		}
		if id != AutoID && id != ch.id {
			return nil, s.changed(EditChild, int(ch.call.ordinal), ch.call.key, fmt.Sprintf("The child run was started as %s and is %s now.", ch.id, id))
		}
		if !rec.Opened {
			return nil, r.damaged(0, fmt.Errorf("child %s has an end and no beginning", ch.call.key))
		}
		r.offspring.adopt(ch)
		return ch, nil
	}
	if err := s.stopped(); err != nil {
		return nil, err
	}
	ch.id = id
	if id == AutoID {
		ch.id, ch.derived = history.DerivedChildID(r.id, ch.call.key, r.row.Branch), true
	}
	if err := checkRunID(ch.id); err != nil {
		return nil, s.refuseChild(ch, err)
	}
	o.parent, o.parentKey = r.id, parentKey(ch.call.key, r.row.Generation)
	if err := r.offspring.expect(); err != nil {
		return nil, err
	}
	defer r.offspring.bearing.Done()
	if err := s.bear(ch, def, input, o); err != nil {
		return nil, err
	}
	r.offspring.adopt(ch)
	return ch, nil
}

// parentKey is what a child keeps of the call that started it. A later generation
// is named: a child of an earlier one with the same explicit id is another run,
// whose outcome was told to that generation.
func parentKey(key string, generation int32) string {
	if generation != 0 {
		key += fmt.Sprintf("~g%d", generation)
	}
	return key
}

// bear creates the child in the change that records it. Where its id was derived and
// another run has it, one that this call did not start, the child gets another id: whoever
// chose that run's id must not decide what becomes of this one.
func (s *scope) bear(ch *child, def *definition, input []byte, o *startOptions) error {
	for tries := 1; ; tries++ {
		err := s.bearAs(ch, def, input, o)
		switch {
		case err == nil || !definite(err):
			return err // the run is lost, or closed
		case errors.Is(err, store.ErrOccupied):
			return s.refuseChild(ch, desk.Occupied("was not started; start it again once that run has ended", err))
		case !errors.Is(err, store.ErrExists):
			return s.refuseChild(ch, err)
		}
		want := store.Run{ID: ch.id, Workflow: def.name, InputHash: payload.InputHash(input), Parent: o.parent, ParentKey: o.parentKey}
		have := s.run.eng.families.holderOf(ch.id)
		if !ch.derived || tries > maxEvasions || startedBy(have, &want) {
			return s.refuseChild(ch, conflictOfChild(&want, have))
		}
		next := evadedChildID(history.DerivedChildID(s.run.id, ch.call.key, s.run.row.Branch), s.run.origin.seed, tries)
		if store.CheckRunID(next) != nil {
			return s.refuseChild(ch, conflictOfChild(&want, have))
		}
		s.run.logLine(slog.LevelWarn, "durable: the id of a child is that of another run; the child gets another one", slog.String("child", ch.id), slog.String("instead", next))
		ch.id, ch.evaded = next, true
	}
}

// maxEvasions bounds how many ids are tried: the first one that is evaded to can be known
// to nobody.
const maxEvasions = 3

// evadedChildID is the id of a child whose derived id another run has. It follows from the
// parent's seed, so that nobody can have taken it beforehand.
func evadedChildID(derived string, seed uint64, try int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%016x %d %s", seed, try, derived))
	return derived + history.EvadedMark + hex.EncodeToString(sum[:6])
}

// startedBy reports whether a run that exists was started by the call that wants one: in
// an earlier life of its parent.
func startedBy(have, want *store.Run) bool {
	return have != nil && have.Parent == want.Parent && have.ParentKey == want.ParentKey
}

// holderOf reads the row of the run that has an id; nil: it was deleted meanwhile, or
// cannot be read.
func (fam *families) holderOf(id string) *store.Run {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		h, err := fam.eng.store.Load(fam.eng.life.loops, id, store.Cursor{NoEvents: true, AfterMessage: math.MaxInt64})
		switch {
		case err == nil:
			return &h.Run
		case definite(err), errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrClosed), fam.eng.life.loops.Err() != nil:
			return nil
		}
		sleep(fam.eng.life.loops, pause) // a read that fails says nothing
	}
}

// bearAs is bear under the id that the child has now.
func (s *scope) bearAs(ch *child, def *definition, input []byte, o *startOptions) error {
	e := s.run.eng
	r, events := e.birth(s.traceContext(), def, ch.id, input, o)
	change := r.log.conceive(&r.row, events)
	r.bornAt = events[0].At
	change.Hold = o.exclusive
	w := &write{start: []store.Change{change}, send: e.mailroom.mailTo(ch.id, o.mail)}
	for i := range w.send {
		w.send[i].IfLive = true // a child that is there already may have ended
	}
	unique := ch.evaded || ch.derived && s.run.row.Branch == 0 && s.run.offspring.noneBefore()
	here := r.def != nil
	if here {
		if err := e.roster.addNew(r); err != nil {
			// It is under way here already: an explicit id that somebody else
			// has used. The store decides whether it is the same run.
			here = false
			r.cancel(nil)
		}
	}
	ev := store.Event{Type: store.ChildStarted, Data: (&history.Data{Child: ch.id, Abandon: ch.abandon, Chosen: !ch.derived, Evaded: ch.evaded}).Encode()}
	var err error
	if ch.began, err = s.recordWith(&ch.call, ev, w); err == nil {
		r.spans.start.End() // before anything that hangs below it
	}
	r.spans.start = nil
	if here && err == nil && !unique && !e.families.isOurs(r) {
		err = errElsewhere
	}
	if err == nil {
		r.reportStart(slog.String("parent", s.run.id))
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
// execution came to start its first one. Children may outlive their parent: of a run that
// was deleted, and started again under its id, a child may be there with what it came to.
func (os *offspring) noneBefore() bool {
	os.look.Do(func() {
		page, err := os.run.eng.store.List(os.run.eng.life.loops, store.Filter{Parents: []string{os.run.id}, Limit: 1})
		os.firstBorn = err == nil && len(page.Runs) == 0
	})
	return os.firstBorn
}

// conflictOfChild says in what the run that exists, nil if it cannot be read, differs from
// the child that was to be started.
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

// refuseChild records that a child could not be started: what stood in the way may
// be gone when the call is replayed. It returns the error as a replay will.
func (s *scope) refuseChild(ch *child, err error) error {
	d := &history.Data{Kind: history.CallChild, Error: s.run.eng.program.errors.record(err)}
	if _, err := s.record(&ch.call, store.Event{Type: store.StepFailed, Data: d.Encode()}); err != nil {
		return err
	}
	return s.run.eng.program.errors.restore(d.Error)
}

// refusedChild returns the recorded refusal of a child.
func (s *scope) refusedChild(rec *history.Call) error {
	s.lastAt = max(s.lastAt, rec.LastAt)
	d, err := history.DataOf(&rec.Outcome)
	if err != nil || d.Error == nil {
		return s.run.damaged(rec.Outcome.Seq, errors.New("its error is not readable"))
	}
	return s.run.eng.program.errors.restore(d.Error)
}

// errElsewhere: a child that was to be executed here existed already.
var errElsewhere = errors.New("durable: the run existed already")

// isOurs reports whether a run that was created with an owner is the one that
// was created here, and not one that existed with the same id.
func (fam *families) isOurs(r *run) bool {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		h, err := fam.eng.store.Load(fam.eng.life.loops, r.id, store.Cursor{NoEvents: true})
		switch {
		case err == nil:
			return h.Run.Epoch == r.row.Epoch && h.Run.Owner == fam.eng.id
		case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrClosed), errors.Is(err, store.ErrCorrupt), fam.eng.life.loops.Err() != nil:
			return false
		}
		sleep(fam.eng.life.loops, pause) // a read that fails says nothing
	}
}

// expect announces that a child is about to be started: the end of the run
// waits for its adopt, so that no child is left out when the children of an
// ended run are cancelled. It must be followed by bearing.Done. Once the run is
// ending it is too late: whoever starts a child then is a branch that was left over.
func (os *offspring) expect() error {
	os.mu.Lock()
	defer os.mu.Unlock()
	if os.closed {
		return fmt.Errorf("durable: run %s has ended while one of its branches was about to start a child: %w", os.run.id, ErrLost)
	}
	os.bearing.Add(1)
	return nil
}

// adopt keeps a child in mind, for the end of its parent.
func (os *offspring) adopt(ch *child) {
	os.mu.Lock()
	defer os.mu.Unlock()
	os.list = append(os.list, ch)
}

// waitChild returns the output of a child and where it stands, waiting for it if
// need be.
func (s *scope) waitChild(ctx context.Context, ch *child, id string) (output []byte, at payload.Place, err error) {
	if ch == nil || ch.call.scope.run != s.run {
		return nil, at, fmt.Errorf("%w: run %s is waited for in a workflow function and is no child of it. Wait for it in a step", ErrNested, id)
	}
	r := s.run
	if err := r.alive(); err != nil {
		return nil, at, err
	}
	if err := s.enter(new(call), "waiting for "+ch.call.key); err != nil {
		return nil, at, err
	}
	defer s.end()
	if !r.waits.heard(ch) {
		if err := s.mayWait(ch.call.key, s.limits(ctx)); err != nil {
			return nil, at, err
		}
		s.before()
	}
	if err := s.awaitChild(ch); err != nil {
		return nil, at, err
	}
	s.lastAt = max(s.lastAt, ch.finished.At)
	d, err := history.DataOf(&ch.finished)
	if err != nil {
		return nil, at, r.damaged(ch.finished.Seq, err)
	}
	if d.Status == store.Completed {
		return ch.finished.Payload, payload.PlaceOf(r.id, &ch.finished), nil
	}
	failed := &RunError{RunID: ch.id, Workflow: d.Name, Status: d.Status, Reason: d.Reason, Err: r.eng.program.errors.restore(d.Error)}
	if d.Recoverable != nil {
		failed.Recoverable = *d.Recoverable
	}
	return nil, at, failed
}

// awaitChild returns once the outcome of a child is recorded. Of several
// goroutines that wait for one child, one records it, and the others wait for that.
func (s *scope) awaitChild(ch *child) error {
	r := s.run
	for {
		recorded, heard, first := r.waits.hear(ch, s.ended)
		switch {
		case recorded:
			return nil
		case s.ended:
			return s.goesBeyond("waiting for " + ch.call.key)
		case first:
			ev, err := s.hearChild(ch)
			r.waits.childHeard(ch, ev)
			return err
		}
		if err := s.stopped(); err != nil {
			return err
		}
		p := &parking{open: true, own: onGoroutineOfOurs()}
		if !r.waits.parkFor(ch, heard, p) {
			continue
		}
		err := r.waits.sync()
		if err == nil {
			_, err = s.waitFor(p, heard)
		}
		r.waits.unparkFor(ch, p)
		if err != nil {
			return err
		}
	}
}

// hearChild waits for the message of a child and records the outcome.
func (s *scope) hearChild(ch *child) (recorded store.Event, err error) {
	r := s.run
	if err := s.stopped(); err != nil {
		return recorded, err
	}
	if err := r.rehearsal.frontier(); err != nil {
		return recorded, err
	}
	mail := &mailWait{key: ch.call.key, kind: store.KindChild, child: ch.id}
	r.inbox.ask(mail)
	consumed := false
	defer func() { r.inbox.leave(mail, consumed) }()
	var found *childEnd
	if ch.call.rec != nil || ch.found {
		if found, err = s.lookAtChild(ch, mail); err != nil {
			return recorded, err
		}
	}
	for found == nil {
		p := &parking{open: true, own: onGoroutineOfOurs()}
		if ch.foreign || ch.elsewhere {
			p.until = r.eng.now().Add(foreignLook)
		}
		late, err := s.waitForMail(p, mail)
		switch {
		case err != nil:
			return recorded, err
		case late:
			if found, err = s.lookAtChild(ch, mail); err != nil {
				return recorded, err
			}
			continue
		}
		earlier, err := s.tellsEarlier(ch, mail.got)
		if err != nil {
			return recorded, err
		}
		if earlier {
			r.inbox.passOver(mail)
			// What an earlier version has told of this one was dropped as a second
			// message with the same id.
			if found, err = s.lookAtChild(ch, mail); err != nil {
				return recorded, err
			}
			continue
		}
		if found, err = ch.open(mail.got); err != nil {
			return recorded, err
		}
	}
	told := &found.ChildData
	d := &history.Data{Message: found.message, Status: told.Status, Name: told.Workflow, Reason: told.Reason, Recoverable: &told.Recoverable, Error: told.Error}
	w := &write{}
	if _, err := s.recordWith(&ch.call, store.Event{Type: store.ChildFinished, Payload: found.output, Data: d.Encode()}, w); err != nil {
		return recorded, err
	}
	consumed = found.message != 0
	s.traceChild(ch, told)
	return w.events[0], nil
}

// waitForMail parks the calling goroutine until mail has what it waits for; late
// reports that the time of p has come first.
func (s *scope) waitForMail(p *parking, mail *mailWait) (late bool, err error) {
	select {
	case <-mail.ready:
		return false, nil
	default:
	}
	r := s.run
	r.waits.park(p)
	defer r.waits.unpark(p)
	if err := r.waits.sync(); err != nil {
		return false, err
	}
	return s.waitFor(p, mail.ready)
}

// tellsEarlier reports whether a message that came before the child was started, as
// the history has it, is that of an earlier run with its id. The child itself may be
// older than its start: a cut has left that behind, and it was started again.
func (s *scope) tellsEarlier(ch *child, m *store.Message) (bool, error) {
	if m.At > ch.began || ch.derived {
		return false, nil
	}
	row, err := s.readChild(ch.id)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil // nothing else is left of it
	}
	return err == nil && !history.IsOutcomeOf(m, row), err
}

// childEnd is the outcome of a child, as its message or its log tells it.
type childEnd struct {
	history.ChildData
	message int64 // 0: it was read from the log
	output  []byte
}

// open reads the message of the child.
func (ch *child) open(m *store.Message) (*childEnd, error) {
	r := ch.call.scope.run
	end := &childEnd{message: m.Seq}
	if err := json.Unmarshal(m.Data, &end.ChildData); err != nil {
		return nil, r.damaged(0, fmt.Errorf("the message of child %s is not readable: %w", ch.id, err))
	}
	var err error
	if end.output, err = r.eng.sealer.Unseal(payload.PlaceOfMessage(r.id, m), m.Payload); err != nil {
		// The message stays in the inbox.
		return nil, r.undecodable("the output of child "+ch.id, "", nil, err)
	}
	return end, nil
}

// foreignLook is how often a run looks at a child that is not told to tell it its
// outcome.
const foreignLook = time.Minute

// lookAtChild looks at a child that the history knows. Its message may be lost:
// it was sent to a parent that was deleted and is restored, or is a copy of it.
// It returns nil for a child that goes on, or whose message is there.
func (s *scope) lookAtChild(ch *child, mail *mailWait) (*childEnd, error) {
	r := s.run
	select {
	case <-mail.ready:
		return nil, nil
	default:
	}
	row, err := s.readChild(ch.id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, r.die(&death{kind: deathParked, code: CodeChildMissing, err: &ChildMissingError{RunID: r.id, Key: ch.call.key, Child: ch.id}})
	}
	if err != nil {
		return nil, err
	}
	// One that has told its failure and was resumed since is not heard a second time:
	// the store takes its message for the one that is there.
	ch.foreign = row.Parent != r.id || r.past != nil && r.past.ResetAt[ch.call.key] != 0
	end, ended, err := r.eng.families.endOf(row)
	if err != nil {
		return nil, r.undecodable("the output of child "+ch.id, "", nil, err)
	}
	if !ended {
		r.eng.claims.takeUpChild(row)
		// Without Recover nobody here takes it over when that executor dies.
		ch.elsewhere = !r.eng.claims.recovered.Load() && row.Owner != "" && row.Owner != r.eng.id
		return nil, nil
	}
	// The message was committed with the end: if there is one, it can be read now.
	r.inbox.fetch()
	select {
	case <-mail.ready:
		return nil, nil
	default:
		return end, nil
	}
}

// readChild reads the row of a child, with its last event, again and again while
// the store cannot be read.
func (s *scope) readChild(id string) (*store.Run, error) {
	r := s.run
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		h, err := r.eng.store.Load(r.ctx, id, store.Cursor{NoEvents: true, AfterMessage: math.MaxInt64})
		if err == nil {
			return &h.Run, nil
		}
		if errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		if err := s.stopped(); err != nil {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-r.gone:
			return nil, r.deathOf()
		}
	}
}

// endOf returns what the last event of a run says of its end. One that
// recovery has marked failed has not come to an end of its own: it tells its
// parent when it has been resumed.
func (fam *families) endOf(row *store.Run) (end *childEnd, ended bool, err error) {
	if !row.Status.Terminal() || row.Last == nil {
		return nil, false, nil
	}
	d, err := history.DataOf(row.Last)
	if err != nil {
		return nil, false, err
	}
	end = &childEnd{ChildData: history.ChildData{Status: row.Status, Workflow: row.Workflow, Reason: d.Reason, Error: d.Error}}
	switch row.Last.Type {
	case store.WorkflowCompleted:
		end.output, err = fam.eng.sealer.Unseal(payload.PlaceOf(row.ID, row.Last), row.Last.Payload)
	case store.WorkflowCancelled:
	case store.WorkflowFailed:
		if d.Error == nil {
			return nil, false, nil
		}
		end.Recoverable = d.Recoverable != nil && *d.Recoverable
	default:
		return nil, false, nil
	}
	return end, true, err
}

// ChildMissingError says that a run waits for a child that is not in the store: it
// was deleted, or not restored together with its parent.
type ChildMissingError struct {
	RunID string
	Key   string // of the call that started it
	Child string // run id
}

func (e *ChildMissingError) Error() string {
	return fmt.Sprintf("run %s: %s waits for child run %s, which is not in the store. Import or restore that run and resume this one, or go back to before that call with operate.On(engine).Jump, so that another one is started",
		e.RunID, e.Key, e.Child)
}

// families is what an engine does between runs of which one has started the other, and of
// which only one may be executed here.
type families struct{ eng *Engine }

// unheard is a child of which a run that waits for it will not hear.
type unheard struct {
	child string
	row   *store.Run // nil: it is not in the store
	end   *childEnd
}

func (u *unheard) text() string {
	if u.row == nil {
		return fmt.Sprintf("it has started child run %s, which is not in the store", u.child)
	}
	return fmt.Sprintf("child run %s has ended (%s), and no message tells it", u.child, u.row.Status)
}

// advice says what lets the parent with this row go on.
func (u *unheard) advice(parent *store.Run) string {
	if u.row == nil {
		return adviceMissing(parent)
	}
	return fmt.Sprintf("operate.On(engine).Resume(ctx, %q), which tells it", parent.ID)
}

// stuck says of the parent with this row what Verify says of it.
func (u *unheard) stuck(parent *store.Run) Stuck {
	code := CodeStranded
	if u.row == nil {
		code = CodeChildMissing
	}
	s := stuckOf(parent, code, u.text())
	s.Next = u.advice(parent)
	return s
}

// adviceMissing says what lets a run go on that waits for a child which is not in the
// store. An outcome that is imported is told to a run that waits for it.
func adviceMissing(parent *store.Run) string {
	s := "import or restore the child"
	if parent.Status == store.Waiting {
		s += ", and resume that one if it has not ended"
	} else {
		s += fmt.Sprintf(", then operate.On(engine).Resume(ctx, %q)", parent.ID)
	}
	return s + fmt.Sprintf("; or go back to before the call that started it with operate.On(engine).Jump(ctx, %q, ...), so that another one is started", parent.ID)
}

// unheardOf returns what a run will not hear of a child that it waits for; nil: it will
// hear, or has heard.
func (fam *families) unheardOf(ctx context.Context, row *store.Run, child string) (*unheard, error) {
	lost := &unheard{child: child}
	c, err := fam.eng.store.Load(ctx, child, store.Cursor{NoEvents: true, AfterMessage: math.MaxInt64})
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return nil, err
	case row.Status != store.Waiting:
		return nil, nil // it looks when it is loaded
	default:
		end, ended, err := fam.endOf(&c.Run)
		if err != nil || !ended || c.Run.Parent != row.ID {
			return nil, nil // one that another run has started is looked at every minute
		}
		lost.row, lost.end = &c.Run, end
	}
	// Read after the end of the child, which was committed with its message.
	h, err := fam.eng.store.Load(ctx, row.ID, store.Cursor{NoEvents: true})
	if err != nil {
		return nil, err
	}
	told := slices.ContainsFunc(h.Inbox, func(m store.Message) bool {
		id, _ := history.ChildOf(&m)
		return lost.row == nil && m.Kind == store.KindChild && id == child || lost.row != nil && history.IsOutcomeOf(&m, lost.row)
	})
	if told || h.Run.Status != row.Status || h.Run.Last == nil || row.Last != nil && h.Run.Last.Seq != row.Last.Seq {
		return nil, nil
	}
	return lost, nil
}

// tellEnd tells the parent of a child that has ended, which takes it once.
func (fam *families) tellEnd(ctx context.Context, u *unheard) error {
	for _, m := range fam.tellParentOf(u.row, u.end.ChildData, u.end.output) {
		if err := fam.eng.mailroom.send(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// tellParentOf is the message that tells the parent of a run what became of it.
func (fam *families) tellParentOf(row *store.Run, told history.ChildData, output []byte) []store.Message {
	if row.Parent == "" {
		return nil
	}
	id := told.NameLife(row)
	data, err := json.Marshal(told)
	if err != nil {
		panic(fmt.Sprintf("durable: the outcome of a child cannot be encoded: %v", err)) // strings and checked JSON
	}
	return []store.Message{{
		To: row.Parent, Kind: store.KindChild, Name: row.ParentKey, ID: id, At: fam.eng.now(), Data: data, Payload: output, IfLive: true,
	}}
}

// A store drops a second message with the same id, and the id of a child may be used
// again by the same parent: one that the workflow has chosen, by a later generation
// or behind a cut, once the earlier run is deleted. So the message of such a child is
// named after its life, "import@1767225600000000", the time of its creation. A derived
// id is used once, and is its message's, as every child's was in earlier versions.

// cancelMessages are the messages that end what a run leaves behind. No child is
// started after it.
func (os *offspring) cancelMessages() []store.Message {
	os.mu.Lock()
	os.closed = true
	os.mu.Unlock()
	os.bearing.Wait()
	os.mu.Lock()
	defer os.mu.Unlock()
	var ms []store.Message
	for _, ch := range os.list {
		if ch.abandon || os.run.waits.heard(ch) {
			continue
		}
		data, _ := json.Marshal(history.MessageData{Reason: fmt.Sprintf("its parent %s has ended", os.run.id)}) // a string
		ms = append(ms, store.Message{To: ch.id, Kind: store.KindCancel, ID: history.FirstCancel, At: os.run.eng.now(), Data: data, IfLive: true})
	}
	return ms
}
