package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// Abandon lets a child run outlive its parent; without it, a child that has not
// ended is cancelled when its parent ends.
func Abandon() StartOption { return func(o *startOptions) { o.abandon = true } }

// child is a child run, as its parent sees it.
type child struct {
	id      string
	call    call
	abandon bool
	// finished is the recorded outcome; Seq 0: none yet.
	finished store.Event
	began    store.Time // when it was started
}

// childData is the Data of the message by which a child tells its outcome.
type childData struct {
	Status      store.Status `json:"status"`
	Workflow    string       `json:"workflow"`
	Reason      string       `json:"reason,omitempty"`
	Recoverable bool         `json:"recoverable,omitempty"`
	Error       *errorRecord `json:"error,omitempty"`
	Trace       string       `json:"trace,omitempty"` // context of its last segment
}

// startChild begins a child run, or finds the one the history has.
func (s *scope) startChild(def *definition, id string, input []byte, o *startOptions) (*child, error) {
	r := s.run
	ch := &child{abandon: o.abandon}
	if err := s.begin(&ch.call, def.name, callChild); err != nil {
		return nil, err
	}
	defer s.end()
	if rec := ch.call.rec; rec != nil {
		ch.id, ch.finished, ch.began = rec.child, rec.outcome, rec.openedAt
		s.lastAt = max(s.lastAt, rec.openedAt)
		if rec.outcome.Type == store.StepFailed {
			return nil, s.refusedChild(rec)
		}
		if id != AutoID && id != ch.id {
			return nil, s.changed(EditChild, int(ch.call.ordinal), ch.call.key, fmt.Sprintf("The child run was started as %s and is %s now.", ch.id, id))
		}
		if !rec.opened {
			return nil, r.damaged(0, fmt.Errorf("child %s has an end and no beginning", ch.call.key))
		}
		r.adoptChild(ch)
		return ch, nil
	}
	if err := s.stopped(); err != nil {
		return nil, err
	}
	ch.id = id
	if id == AutoID {
		ch.id = r.childID(ch.call.key)
	}
	if err := store.CheckRunID(ch.id); err != nil {
		return nil, err
	}
	o.parent, o.parentKey = r.id, r.parentKey(ch.call.key)
	if err := s.bear(ch, def, input, o); err != nil {
		return nil, err
	}
	r.adoptChild(ch)
	return ch, nil
}

// childID derives the id of a child: the parent's id and the call's key, with
// the branch once there is more than one.
func (r *run) childID(key string) string {
	id := r.id + "/" + key
	if r.row.Branch != 0 {
		id += fmt.Sprintf("~b%d", r.row.Branch)
	}
	return id
}

// parentKey is what a child keeps of the call that started it. A later generation
// is named: a child of an earlier one with the same explicit id is another run,
// whose outcome was told to that generation.
func (r *run) parentKey(key string) string {
	if r.row.Generation != 0 {
		key += fmt.Sprintf("~g%d", r.row.Generation)
	}
	return key
}

// bear creates the child in the change that records it.
func (s *scope) bear(ch *child, def *definition, input []byte, o *startOptions) error {
	e := s.run.eng
	r, events := e.birth(s.traceContext(), def, ch.id, input, o)
	change := r.conceive(events)
	change.Hold = o.exclusive
	w := &write{start: []store.Change{change}, send: e.mailTo(ch.id, o.mail)}
	for i := range w.send {
		w.send[i].IfLive = true // a child that is there already may have ended
	}
	here := r.def != nil
	if here {
		if err := e.addNew(r); err != nil {
			// It is under way here already: an explicit id that somebody else
			// has used. The store decides whether it is the same run.
			here = false
			r.cancel(nil)
		}
	}
	ev := store.Event{Type: store.ChildStarted, Data: (&eventData{Child: ch.id, Abandon: ch.abandon}).encode()}
	var err error
	if ch.began, err = s.recordWith(&ch.call, ev, w); err == nil {
		r.start.End() // before anything that hangs below it
	}
	r.start = nil
	if here {
		if err == nil && !e.isOurs(r) {
			err = errElsewhere
		}
		r.settled(err)
		if errors.Is(err, errElsewhere) {
			err = nil
		}
	}
	var exists *store.ExistsError
	switch {
	case errors.As(err, &exists):
		err = &ConflictError{RunID: ch.id, Have: "another workflow, input or parent", Want: def.name}
	case errors.Is(err, store.ErrOccupied):
		err = occupied("was not started; start it again once that run has ended", err)
	default:
		return err
	}
	return s.refuseChild(ch, err)
}

// refuseChild records that a child could not be started: whoever stood in the way may
// be gone when the call is replayed. It returns the error as a replay will.
func (s *scope) refuseChild(ch *child, err error) error {
	d := &eventData{Kind: callChild, Error: s.run.eng.errors.record(err)}
	if _, err := s.record(&ch.call, store.Event{Type: store.StepFailed, Data: d.encode()}); err != nil {
		return err
	}
	return s.run.eng.errors.restore(d.Error)
}

// refusedChild returns the recorded refusal of a child.
func (s *scope) refusedChild(rec *record) error {
	s.lastAt = max(s.lastAt, rec.lastAt)
	d, err := dataOf(&rec.outcome)
	if err != nil || d.Error == nil {
		return s.run.damaged(rec.outcome.Seq, errors.New("its error is not readable"))
	}
	return s.run.eng.errors.restore(d.Error)
}

// errElsewhere: a child that was to be executed here existed already.
var errElsewhere = errors.New("durable: the run existed already")

// isOurs reports whether a run that was created with an owner is the one that
// was created here, and not one that existed with the same id.
func (e *Engine) isOurs(r *run) bool {
	if strings.HasPrefix(r.id, r.row.Parent+"/") {
		return true // derived: nobody else starts runs with this id
	}
	h, err := e.store.Load(e.base, r.id, store.Cursor{NoEvents: true})
	return err == nil && h.Run.Epoch == r.row.Epoch && h.Run.Owner == e.id
}

// conceive makes the change that creates r, sealed and complete.
func (r *run) conceive(events []store.Event) store.Change {
	r.stamp(events, time.Time{})
	for i := range events {
		r.head.seq++
		events[i].Seq = r.head.seq
		events[i].Sum = store.Seal(r.id, r.head.sum, &events[i])
		r.head.sum = events[i].Sum
	}
	r.bornAt = events[0].At
	return store.Change{RunID: r.id, Expect: store.Expect{Absent: true}, Create: &r.row, Events: events}
}

// adoptChild keeps a child in mind, for the end of its parent.
func (r *run) adoptChild(ch *child) {
	c := r.eng.committer
	c.mu.Lock()
	defer c.mu.Unlock()
	r.children = append(r.children, ch)
}

// waitChild returns the output of a child and where it stands, waiting for it if
// need be.
func (s *scope) waitChild(ch *child, id string) (output []byte, at place, err error) {
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
	if ch.finished.Seq == 0 {
		if err := s.hearChild(ch); err != nil {
			return nil, at, err
		}
	}
	s.lastAt = max(s.lastAt, ch.finished.At)
	d, err := dataOf(&ch.finished)
	if err != nil {
		return nil, at, r.damaged(ch.finished.Seq, err)
	}
	if d.Status == store.Completed {
		return ch.finished.Payload, placeOf(r.id, &ch.finished), nil
	}
	failed := &RunError{RunID: ch.id, Workflow: d.Name, Status: d.Status, Reason: d.Reason, Err: r.eng.errors.restore(d.Error)}
	if d.Recoverable != nil {
		failed.Recoverable = *d.Recoverable
	}
	return nil, at, failed
}

// hearChild waits for the message of a child and records the outcome.
func (s *scope) hearChild(ch *child) error {
	r := s.run
	if err := s.stopped(); err != nil {
		return err
	}
	mail := &mailWait{key: ch.call.key, kind: store.KindChild, child: ch.id}
	r.inbox.ask(mail)
	consumed := false
	defer func() { r.inbox.leave(mail, consumed) }()
	select {
	case <-mail.ready:
	default:
		p := &parking{open: true, own: onGoroutineOfOurs()}
		r.park(p)
		err := r.syncRow()
		if err == nil {
			_, err = s.waitFor(p, mail.ready)
		}
		r.unpark(p)
		if err != nil {
			return err
		}
	}
	var told childData
	if err := json.Unmarshal(mail.got.Data, &told); err != nil {
		return r.damaged(0, fmt.Errorf("the message of child %s is not readable: %w", ch.id, err))
	}
	output, err := r.eng.unseal(r.placeOfMail(mail.got), mail.got.Payload)
	if err != nil {
		// The message stays in the inbox.
		return r.undecodable("the output of child "+ch.id, "", nil, err)
	}
	d := &eventData{Message: mail.got.Seq, Status: told.Status, Name: told.Workflow, Reason: told.Reason, Recoverable: &told.Recoverable, Error: told.Error}
	ev := store.Event{Type: store.ChildFinished, Payload: output, Data: d.encode()}
	w := &write{}
	if _, err := s.recordWith(&ch.call, ev, w); err != nil {
		return err
	}
	consumed = true
	ch.finished = w.events[0]
	s.traceChild(ch, &told)
	return nil
}

// tellParent is the message by which an ending run tells its parent.
func (r *run) tellParent(status store.Status, reason string, recoverable bool, rec *errorRecord, output []byte) []store.Message {
	if r.row.Parent == "" {
		return nil
	}
	data, err := json.Marshal(childData{Status: status, Workflow: r.def.name, Reason: reason, Recoverable: recoverable, Error: rec, Trace: r.segmentTrace()})
	if err != nil {
		panic(fmt.Sprintf("durable: the outcome of a child cannot be encoded: %v", err)) // strings and checked JSON
	}
	return []store.Message{{
		To: r.row.Parent, Kind: store.KindChild, Name: r.row.ParentKey, ID: r.id, At: r.eng.now(), Data: data, Payload: output, IfLive: true,
	}}
}

// cancelChildren are the messages that end what a run leaves behind.
func (r *run) cancelChildren() []store.Message {
	c := r.eng.committer
	c.mu.Lock()
	defer c.mu.Unlock()
	var ms []store.Message
	for _, ch := range r.children {
		if ch.abandon || ch.finished.Seq != 0 {
			continue
		}
		data, _ := json.Marshal(messageData{Reason: fmt.Sprintf("its parent %s has ended", r.id)}) // a string
		ms = append(ms, store.Message{To: ch.id, Kind: store.KindCancel, ID: firstCancel, At: r.eng.now(), Data: data, IfLive: true})
	}
	return ms
}
