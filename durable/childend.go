package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/goroutine"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/mail"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// wait returns the output of the child and its place, and waits for it in s if
// necessary. It refuses a run that is not a child of this one; ch may be nil for such
// a run.
func (ch *child) wait(ctx context.Context, s *scope, id string) (output []byte, at payload.Place, err error) {
	if ch == nil || ch.call.scope.run != s.run {
		return nil, at, outsideFunction(ctx, "Wait for run "+id+", which this execution of the function has not started,")
	}
	r := s.run
	if err := r.alive(); err != nil {
		return nil, at, err
	}
	if err := s.enterAs("waiting for " + ch.call.key); err != nil {
		return nil, at, err
	}
	defer s.end()
	if !r.waits.heard(ch) {
		if err := s.mayWait(ch.call.key, s.limits(ctx)); err != nil {
			return nil, at, err
		}
		s.beforeCall()
	}
	if err := ch.await(s); err != nil {
		return nil, at, err
	}
	s.lastAt = max(s.lastAt, ch.finished.At)
	d, err := history.Of[history.ChildEnd](&ch.finished)
	if err != nil {
		return nil, at, r.damaged(ch.finished.Seq, err)
	}
	if d.Status == store.Completed {
		return ch.finished.Payload, payload.PlaceOf(r.id, &ch.finished), nil
	}
	failed := &RunError{RunID: ch.id, Workflow: d.Name, Status: d.Status, Reason: d.Reason, Err: r.eng.program.errors.Restore(d.Error)}
	if d.Recoverable != nil {
		failed.Recoverable = *d.Recoverable
	}
	return nil, at, failed
}

// await returns once the outcome of the child is recorded. Of several
// goroutines that wait for one child, one records it, and the others wait for that.
func (ch *child) await(s *scope) error {
	r := s.run
	for {
		recorded, heard, first := r.waits.hear(ch, s.ended)
		switch {
		case recorded:
			return nil
		case s.ended:
			return s.goesBeyond("waiting for " + ch.call.key)
		case first:
			ev, err := ch.hear(s)
			r.waits.childHeard(ch, ev)
			return err
		}
		if err := s.stopped(); err != nil {
			return err
		}
		p := &parking{open: true, own: goroutine.Ours()}
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

// hear waits in s for the message of the child and records the outcome.
func (ch *child) hear(s *scope) (recorded store.Event, err error) {
	r := s.run
	if err := s.stopped(); err != nil {
		return recorded, err
	}
	wait := &mail.Wait{Key: ch.call.key, Kind: store.KindChild, Child: ch.id}
	r.inbox.Ask(wait)
	consumed := false
	defer func() { r.inbox.Leave(wait, consumed) }()
	if r.rehearsal != nil {
		return recorded, ch.rehearse(s, wait)
	}
	var found *childEnd
	if ch.call.rec != nil || ch.found {
		if found, err = ch.look(s, wait); err != nil {
			return recorded, err
		}
	}
	for found == nil {
		p := &parking{open: true, own: goroutine.Ours()}
		if ch.foreign || ch.elsewhere {
			p.until = r.eng.now().Add(foreignLook)
		}
		late, err := s.waitForMail(p, wait)
		switch {
		case err != nil:
			return recorded, err
		case late:
			if found, err = ch.look(s, wait); err != nil {
				return recorded, err
			}
			continue
		}
		earlier, err := ch.toldEarlier(s, wait.Got())
		if err != nil {
			return recorded, err
		}
		if earlier {
			r.inbox.PassOver(wait)
			// An earlier version of this package gave the messages of both the same
			// id, so the store has dropped this child's as a duplicate.
			if found, err = ch.look(s, wait); err != nil {
				return recorded, err
			}
			continue
		}
		if found, err = ch.open(wait.Got()); err != nil {
			return recorded, err
		}
	}
	told := &found.ChildData
	d := &history.ChildEnd{Message: found.message, Status: told.Status, Name: told.Workflow, Reason: told.Reason, Recoverable: &told.Recoverable, Error: told.Error}
	w := &commit.Write{}
	if _, err := s.recordWith(&ch.call, store.Event{Type: store.ChildFinished, Payload: found.output, Data: history.Encode(d)}, w); err != nil {
		return recorded, err
	}
	consumed = found.message != 0
	ch.trace(s, told)
	return w.Events[0], nil
}

// rehearse looks whether the message that tells the outcome can be read here, and goes no further.
func (ch *child) rehearse(s *scope, wait *mail.Wait) error {
	select {
	case <-wait.Ready():
		if earlier, err := ch.toldEarlier(s, wait.Got()); err != nil || earlier {
			break
		}
		if _, err := ch.open(wait.Got()); err != nil {
			return err
		}
	default:
	}
	return s.run.rehearsal.frontier()
}

// toldEarlier reports whether a message that is older than the start of the child in
// this history is that of an earlier run with the child's id. The child itself may be
// older than that start, if a cut has left its first start behind and it was started
// again.
func (ch *child) toldEarlier(s *scope, m *store.Message) (bool, error) {
	if m.At > ch.began || ch.derived {
		return false, nil
	}
	row, err := ch.read(s)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil // nothing else is left of it
	}
	return err == nil && !history.IsOutcomeOf(m, row), err
}

// childEnd is the outcome of a child, as its message or its log reports it.
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

// foreignLook is how often a run looks at a child that will not report its outcome to
// it.
const foreignLook = time.Minute

// look looks at a child that the history knows, because its message may be lost: it
// went to a parent that was deleted and then restored, or of which this run is a copy.
// It returns nil if the child has not ended, or if its message is here.
func (ch *child) look(s *scope, wait *mail.Wait) (*childEnd, error) {
	r := s.run
	select {
	case <-wait.Ready():
		return nil, nil
	default:
	}
	row, err := ch.read(s)
	if errors.Is(err, store.ErrNotFound) {
		return nil, r.die(&death{kind: deathParked, code: CodeChildMissing, err: &childMissingError{RunID: r.id, Key: ch.call.key, Child: ch.id}})
	}
	if err != nil {
		return nil, err
	}
	// A child that has reported its failure and was resumed since cannot report again:
	// the store takes its message for a duplicate of the first.
	ch.foreign = row.Parent != r.id || r.past != nil && r.past.ResetAt[ch.call.key] != 0
	end, ended, err := r.eng.families.endOf(row)
	if err != nil {
		return nil, r.undecodable("the output of child "+ch.id, "", nil, err)
	}
	if !ended {
		r.eng.recovery.TakeUpChild(row)
		// Without Recover, this engine does not take the child over when that executor
		// dies.
		ch.elsewhere = !r.eng.claims.Recovered() && row.Owner != "" && row.Owner != r.eng.id
		return nil, nil
	}
	// The message was committed with the end: if there is one, it can be read now.
	r.inbox.fetchNow()
	select {
	case <-wait.Ready():
		return nil, nil
	default:
		return end, nil
	}
}

// read reads the row of the child, with its last event. It tries again while the store
// cannot be read.
func (ch *child) read(s *scope) (*store.Run, error) {
	r := s.run
	defer r.bodies.asks()()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		h, err := r.eng.store.Load(r.ctx, ch.id, store.Cursor{NoEvents: true, AfterMessage: math.MaxInt64})
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

// families is what an engine does between a run and its children, of which not all
// need be executed here.
type families struct{ eng *Engine }

// endOf returns what the last event of a run says of its end. A run that recovery has
// marked failed has not ended by itself: it reports to its parent once it has been
// resumed and has ended.
func (fam *families) endOf(row *store.Run) (end *childEnd, ended bool, err error) {
	if !row.Status.Terminal() || row.Last == nil {
		return nil, false, nil
	}
	switch row.Last.Type {
	case store.WorkflowCompleted, store.WorkflowCancelled, store.WorkflowFailed:
	default:
		return nil, false, nil
	}
	d, err := history.Of[history.End](row.Last)
	if err != nil {
		return nil, false, err
	}
	end = &childEnd{ChildData: history.ChildData{Status: row.Status, Workflow: row.Workflow, Reason: d.Reason, Error: d.Error}}
	switch row.Last.Type {
	case store.WorkflowCompleted:
		end.output, err = fam.eng.sealer.Unseal(payload.PlaceOf(row.ID, row.Last), row.Last.Payload)
	case store.WorkflowFailed:
		if d.Error == nil {
			return nil, false, nil
		}
		end.Recoverable = d.Recoverable != nil && *d.Recoverable
	}
	return end, true, err
}

// childMissingError says that a run waits for a child that is not in the store: it
// was deleted, or not restored together with its parent.
type childMissingError struct {
	RunID string
	Key   string // of the call that started it
	Child string // run id
}

func (e *childMissingError) Error() string {
	return fmt.Sprintf("run %s: %s waits for child run %s, which is not in the store. Import or restore that run and resume this one, or go back to before that call with operate.On(engine).Jump, so that another one is started",
		e.RunID, e.Key, e.Child)
}

// tellParentOf returns the message that reports the outcome of a run to its parent;
// none if it has no parent.
//
// A store drops a second message with the same id, and the same parent may use the id
// of a child again: one that the workflow chose, in a later generation or after a cut,
// once the earlier run is deleted. So the id of such a child's message also has the
// time of the child's creation, as in "import@1767225600000000". A derived id is used
// once, and is the id of the message too, as every child's was in earlier versions.
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

// hear reports whether the outcome of a child is recorded. If it is not, heard is
// closed when the goroutine that is to record it leaves; first: the caller is that
// goroutine. A scope that has ended gets neither.
func (wt *runWaits) hear(ch *child, ended bool) (recorded bool, heard chan struct{}, first bool) {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	switch {
	case ch.finished.Seq != 0:
		return true, nil, false
	case ended:
		return false, nil, false
	case ch.hearing != nil:
		return false, ch.hearing, false
	}
	ch.hearing = make(chan struct{})
	return false, ch.hearing, true
}

// parkFor parks a goroutine that waits for another one to record a child's
// outcome, unless the other one has left already.
func (wt *runWaits) parkFor(ch *child, heard chan struct{}, p *parking) bool {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	if ch.hearing != heard {
		return false
	}
	p.since = time.Now()
	wt.parked[p] = struct{}{}
	if ch.parked == nil {
		ch.parked = map[*parking]struct{}{}
	}
	ch.parked[p] = struct{}{}
	return true
}

func (wt *runWaits) unparkFor(ch *child, p *parking) {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	delete(wt.parked, p)
	delete(ch.parked, p)
}

// childHeard wakes the goroutines that wait for the outcome of a child. ev is the
// event that records it; if it is empty, one of them takes over the listening. They
// count as active before the caller can park: otherwise the run would be unloaded
// while all seem to wait, and nothing would wake it.
func (wt *runWaits) childHeard(ch *child, ev store.Event) {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	ch.finished = ev
	for p := range ch.parked {
		delete(wt.parked, p)
	}
	clear(ch.parked)
	close(ch.hearing)
	ch.hearing = nil
}

// trace makes the span of a child run whose outcome has come, below s.
func (ch *child) trace(s *scope, told *history.ChildData) {
	if s.trace == nil {
		return
	}
	w := telemetry.Wait{
		Name: "child " + told.Workflow, Began: ch.began, Outcome: telemetry.OutcomeOK,
		Attrs: []attribute.KeyValue{telemetry.AttrWait.String("child"), telemetry.AttrChild.String(ch.id), telemetry.AttrStatus.String(string(told.Status))},
		Link:  telemetry.Link(telemetry.Parse(told.Trace), telemetry.LinkChild),
	}
	if told.Status != store.Completed {
		w.Outcome, w.Err = telemetry.OutcomeFailed, s.run.eng.program.errors.Restore(told.Error)
	}
	s.trace.Waited(s.run.ctx, ch.call.key, w)
}
