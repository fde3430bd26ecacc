package durable

import (
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

// The row of a run is a cache of its events. Engine and stores write both in one
// change; a run whose row says something else comes from a store that cannot, or
// from a hand that has reached into it. Reconcile is the catalogue of what may
// then be wrong. It is a pure function: from the row, what a survey of the
// lineage found, and which code is at hand, to a finding.
//
//	code  the row says                 the events say           what is done
//	A1    waiting                      nothing is waited for    branch behind the last stable event
//	A2    running                      a wait is pending        branch before the wait, which is asked again
//	A3    running                      every declared step done branch behind the last of them; the run is driven to its end
//	A4    running                      a step has failed        nothing: replay hands the error to the function
//	B1/2  waiting                      a wait is pending        nothing, however old it is
//	C1/2  running                      a step has begun         nothing: replay runs it again
//	D1    the branch it is on          a branch nobody is on    nothing: it is in no lineage
//	D2    the branch it is on          a jump to another one    branch before the request
//	E2    a version nobody serves      -                        the version the run began with
//	F1/2  -                            nobody looks on          nothing
//
// For example, a row that says waiting over
//
//	1 workflow_created  2 workflow_started  3 step_completed a  4 published p
//
// is A1: the last stable event is 3, so a branch is cut from 0 at 3, and the
// function, which replays "a" from there, publishes p again and goes on. With
//
//	4 wait_requested approve
//
// instead, and a row that says running, it is A2: the cut is at 3, and the
// person is asked again, under the new branch.
//
// What must not run twice is never left behind by A1: where the start of an
// effect (step_started) or a compensation stands after the last stable event, the
// cut is behind that; and D2, whose cut has one place only, is not carried out.

const (
	codeA1 = "A1" // waiting, and nothing is waited for
	codeA2 = "A2" // running, and a wait is pending
	codeA3 = "A3" // running, and every declared step is completed
	codeD2 = "D2" // a jump was requested and its branch is not the current one
	codeE2 = "E2" // pinned to a version that is not there
)

var reasons = map[string]string{
	codeA1: "A1: Status awaiting_input but no pending interaction",
	codeA2: "A2: Status processing but has pending interaction",
	codeA3: "A3: Status processing but all steps completed",
	codeD2: "D2: Jump requested but its branch is not the current one",
	codeE2: "E2: Pinned version is not registered",
}

// noStableEvent is what recovery says when there is nothing to cut behind.
const noStableEvent = "No stable event found - workflow may need manual intervention"

// A finding is what is wrong with a run, and what to do about it. The zero value
// is a run that is consistent.
type finding struct {
	code    string
	cut     bool
	after   int64  // the last event that the new branch keeps
	key     string // where it is cut: what stands beside that scope may be kept
	steps   int32  // done up to there
	version string // E2: what it is pinned to from now on
	// promised is the number of the branch that a lost jump was to go on with.
	promised int32
	refused  string // why it cannot be repaired; empty: it can
}

func (f *finding) reason() string { return reasons[f.code] }

// codeAtHand says who has the code of a run.
type codeAtHand struct {
	workflow bool // some version is registered here
	pinned   bool // the version it is pinned to: here, or with a live executor
	initial  bool // the version it began with, likewise
}

// reconcile returns the first thing of the catalogue that is wrong with a run:
// A1, A2, A3, then D2, then E2.
func reconcile(row *store.Run, s *survey, code codeAtHand) finding {
	busy := row.Status == store.Running || row.Status == store.Resuming
	switch {
	case row.Status == store.Completed, row.Status == store.Cancelled, row.Status == store.Pending:
		return finding{}
	case row.Status == store.Waiting && len(s.open) == 0:
		return s.cutBehindStable(codeA1)
	case busy && !s.answered && s.waitsAlone() != nil:
		return s.cutBeforeWait(s.waitsAlone())
	case busy && s.allDone():
		return finding{code: codeA3, cut: true, after: s.stable.seq, key: s.stable.key, steps: s.stable.steps}
	}
	if j := s.openJump(row.Branch); j != nil {
		return s.cutBeforeJump(j)
	}
	if code.workflow && !code.pinned {
		f := finding{code: codeE2, version: row.InitialVersion}
		switch {
		case row.InitialVersion == "":
			f.refused = fmt.Sprintf("run %s is unrecoverable: its version %s of workflow %s is not registered, and it was started without one; run a program that serves it",
				row.ID, row.Version, row.Workflow)
		case !code.initial || row.InitialVersion == row.Version:
			f.refused = fmt.Sprintf("run %s is unrecoverable: neither its version %s nor its initial version %s of workflow %s is registered; run a program that serves one of them",
				row.ID, row.Version, row.InitialVersion, row.Workflow)
		}
		return f
	}
	return finding{}
}

// cutPlace is an event, as far as a cut behind it goes; seq 0: there is none.
type cutPlace struct {
	seq   int64
	steps int32
	key   string
}

// opening is something that was begun and has no outcome: a wait, a timer, a
// child, a step.
type opening struct {
	at     cutPlace
	before cutPlace // the event before it in the lineage
	typ    store.Type
	beside bool // of a wait: others of the run went on when it was asked for
	wait   pendingWait
}

// A pendingWait is a wait that was asked for.
type pendingWait struct {
	Key    string // of the call that waits
	Name   string // of the signal
	Prompt string // empty: no person is asked
	Until  store.Time
	Seq    int64 // of wait_requested
}

// jump is a request to go on with another branch.
type jump struct {
	at, before cutPlace
	branch, to int32
}

// survey is a lineage in summary: what the catalogue asks of it. It is filled by
// take, event by event, and holds no payload.
type survey struct {
	runID      string
	last       cutPlace
	lastType   store.Type
	status     store.Status // as the events have it
	stable     cutPlace     // the last stable event,
	stableType store.Type   // its type,
	beforeIt   cutPlace     // and the event before it
	binding    cutPlace     // the last event that no repair leaves behind
	call       int64        // seq of the last event of a durable call
	key        string       // of that call
	recovered  int64        // seq of the last workflow_recovered
	declared   []string
	done       []string            // keys of what was completed, in order
	doneAt     map[string]struct{} // those of the workflow function itself
	open       map[string]*opening // waits, timers and children without an outcome, by key
	begun      map[string]*opening // steps without an outcome
	effects    map[string]bool     // keys whose start was recorded
	pending    int                 // of open, those that are waits
	taken      map[int64]bool      // messages that answered a wait
	answered   bool                // waitsAlone has its answer in the inbox: it goes on by itself
	jumps      []jump
	paused     int64 // requests to pause up to this number are answered
}

func newSurvey(runID string) *survey {
	return &survey{
		runID: runID, status: store.Pending, doneAt: map[string]struct{}{}, open: map[string]*opening{},
		begun: map[string]*opening{}, effects: map[string]bool{}, taken: map[int64]bool{},
	}
}

// take files one event of the lineage; they come in order.
func (s *survey) take(e *store.Event) error {
	at := cutPlace{e.Seq, e.Steps, e.Key}
	switch _, role := roleOf(e.Type); role {
	case roleOther:
		return &futureEventError{e.Type}
	case roleRun:
		if err := s.takeRun(e, at); err != nil {
			return err
		}
	default:
		if err := s.takeCall(e, at); err != nil {
			return err
		}
	}
	if e.Type.Stable() {
		// One asked before and answered later would be pending again on a
		// branch that is cut here.
		if s.pending == 0 {
			s.stable, s.stableType, s.beforeIt = at, e.Type, s.last
		}
	}
	s.last, s.lastType = at, e.Type
	return nil
}

// takeRun files an event of the run itself.
func (s *survey) takeRun(e *store.Event, at cutPlace) error {
	switch e.Type {
	case store.WorkflowStarted, store.RunResumed, store.WorkflowRecovered:
		s.status = store.Running
	case store.WorkflowCompleted:
		s.status = store.Completed
	case store.WorkflowFailed:
		s.status = store.Failed
	case store.WorkflowCancelled:
		s.status = store.Cancelled
	case store.WorkflowInterrupted:
		s.status = store.Interrupted
	case store.WorkflowCreated, store.WorkflowPaused, store.WorkflowUnpaused, store.JumpRequested:
	default:
		return nil
	}
	d, err := dataOf(e)
	if err != nil {
		return fmt.Errorf("its data is not readable: %w", err)
	}
	switch e.Type {
	case store.WorkflowCreated:
		s.declared = d.Declared
	case store.WorkflowStarted:
		if d.Generation != 0 {
			s.declared = d.Declared
		}
	case store.WorkflowPaused, store.WorkflowUnpaused, store.WorkflowInterrupted:
		s.paused = max(s.paused, d.Message)
	case store.WorkflowRecovered:
		s.recovered = e.Seq
		s.paused = max(s.paused, d.Message)
	case store.JumpRequested:
		s.jumps = append(s.jumps, jump{at: at, before: s.last, branch: e.Branch, to: d.ToBranch})
	}
	return nil
}

// takeCall files an event of a durable call.
func (s *survey) takeCall(e *store.Event, at cutPlace) error {
	if e.Key != "" {
		s.call, s.key = e.Seq, e.Key
	}
	if e.Type == store.StepStarted && !saysNoMore(e) {
		s.effects[e.Key] = true
	}
	if s.effects[e.Key] || store.InScope(e.Key, undoScope) && e.Key != "" {
		s.binding = at
	}
	switch e.Type {
	case store.WaitRequested, store.TimerSet, store.ChildStarted:
		return s.openCall(e, at)
	case store.StepStarted, store.AttemptFailed, store.ProgressSaved:
		if s.begun[e.Key] == nil {
			s.begun[e.Key] = &opening{at: at, before: s.last, typ: e.Type}
		}
		return nil
	case store.AttributesSet:
		return nil
	case store.SignalReceived:
		d, err := dataOf(e)
		if err != nil {
			return fmt.Errorf("its data is not readable: %w", err)
		}
		s.taken[d.Message] = true
		s.isDone(e.Key)
	case store.TimerFired:
		s.isDone(e.Key)
	case store.StepCompleted, store.ChildFinished, store.ItemCompleted:
		s.done = append(s.done, e.Key)
		s.isDone(e.Key)
	}
	if o := s.open[e.Key]; o != nil {
		delete(s.open, e.Key)
		if o.typ == store.WaitRequested {
			s.pending--
		}
	}
	delete(s.begun, e.Key)
	return nil
}

// isDone keeps in mind that a call was completed, if it is one of the workflow
// function itself: only of those it is declared that they are made.
func (s *survey) isDone(key string) {
	if scopeOfKey(key) == "" {
		s.doneAt[key] = struct{}{}
	}
}

// openCall files the beginning of a wait, a timer or a child.
func (s *survey) openCall(e *store.Event, at cutPlace) error {
	d, err := dataOf(e)
	if err != nil {
		return fmt.Errorf("its data is not readable: %w", err)
	}
	o := &opening{at: at, before: s.last, typ: e.Type, beside: d.Beside}
	if e.Type == store.WaitRequested {
		o.wait = pendingWait{Key: e.Key, Name: d.Name, Prompt: d.Prompt, Until: d.Until, Seq: e.Seq}
		if s.open[e.Key] == nil {
			s.pending++
		}
	}
	s.open[e.Key] = o
	return nil
}

// waitsAlone returns the wait that is all the run is about, nil if there is none
// such. A run that executes branches or items may well wait in one of them while
// another goes on, and a row that says running is right then: so the wait must be
// the last event there is, asked for by a run that had nothing else to do, with
// nothing else open.
func (s *survey) waitsAlone() *opening {
	if s.lastType != store.WaitRequested || len(s.open) != 1 {
		return nil
	}
	for key, o := range s.open {
		if o.typ != store.WaitRequested || o.at != s.last || o.beside {
			return nil
		}
		for begun := range s.begun {
			if !store.InScope(key, begun) {
				return nil
			}
		}
		return o
	}
	return nil
}

// isAnswer reports whether m is for the wait w of a run on this branch, and was
// not taken.
func (s *survey) isAnswer(m *store.Message, w *opening, branch int32) bool {
	return (m.Kind == store.KindSignal || m.Kind == store.KindRequest) && !s.taken[m.Seq] &&
		(m.Name == w.wait.Name || m.Name == WaitKey(w.wait.Key, branch))
}

// allDone reports whether every declared step was completed, nothing has
// happened since, and nothing is open. A run that was repaired for it since is on
// its way to its end.
func (s *survey) allDone() bool {
	if len(s.declared) == 0 || s.stable.seq == 0 || s.call != s.stable.seq || s.recovered > s.stable.seq ||
		len(s.open) > 0 || len(s.begun) > 0 || s.status.Terminal() {
		return false
	}
	times := map[string]int32{}
	for _, name := range s.declared {
		escaped := escapeName(name)
		times[escaped]++
		if _, ok := s.doneAt[joinKey("", escaped, times[escaped])]; !ok {
			return false
		}
	}
	return true
}

// rerun makes of an A3 one that cuts before the outcome of the last step, whose
// body then runs once more. What must not run twice is not run again.
func (s *survey) rerun(f finding) finding {
	if f.code != codeA3 || s.stableType != store.StepCompleted || s.binding.seq >= s.stable.seq || s.beforeIt.seq == 0 {
		return f
	}
	f.after, f.steps = s.beforeIt.seq, s.beforeIt.steps
	return f
}

// openJump returns the first jump that was requested on this branch and leads to
// another one.
func (s *survey) openJump(branch int32) *jump {
	for i := range s.jumps {
		if j := &s.jumps[i]; j.branch == branch && j.to != branch {
			return j // a cut before the first of several mends all
		}
	}
	return nil
}

func (s *survey) cutBehindStable(code string) finding {
	f := finding{code: code, cut: true}
	if s.stable.seq == 0 {
		f.refused = noStableEvent
		return f
	}
	at := s.stable
	if s.binding.seq > at.seq {
		at = s.binding
	}
	f.after, f.key, f.steps = at.seq, at.key, at.steps
	return f
}

// cutBeforeWait cuts at the start of the step that asks, if that is on record,
// else just before the wait.
func (s *survey) cutBeforeWait(w *opening) finding {
	at := w.before
	for key, o := range s.begun {
		// Nothing that must not run twice may stand between the two.
		if o.typ == store.StepStarted && store.InScope(w.wait.Key, key) && s.binding.seq <= o.at.seq {
			at = o.at
		}
	}
	f := finding{code: codeA2, cut: true, after: at.seq, key: w.wait.Key, steps: at.steps}
	if at.seq == 0 {
		f.refused = noStableEvent // a lineage without a beginning
	}
	return f
}

func (s *survey) cutBeforeJump(j *jump) finding {
	f := finding{code: codeD2, cut: true, after: j.before.seq, steps: j.before.steps, promised: j.to}
	switch {
	case j.before.seq == 0:
		f.refused = noStableEvent
	case s.binding.seq > j.at.seq:
		f.refused = fmt.Sprintf("run %s cannot be taken back to before the jump that was requested by event %d: event %d records an effect which would happen again; resume it from a checkpoint of your choice, with Force", s.runID, j.at.seq, s.binding.seq)
	}
	return f
}

// read takes the events of a lineage, and checks that they can be believed.
func (s *survey) read(h *store.History) error {
	var before store.Event
	for ev, err := range h.Events {
		if err != nil {
			return err
		}
		switch {
		case ev.Seq <= before.Seq:
			return &damage{RunID: s.runID, Seq: ev.Seq, Err: fmt.Errorf("it comes after event %d", before.Seq)}
		case ev.Seq == before.Seq+1 && store.Seal(s.runID, before.Sum, &ev) != ev.Sum && (before.Seq != 0 || ev.Seq == 1):
			return &damage{RunID: s.runID, Seq: ev.Seq, Err: errors.New("its checksum does not fit: it, or the event before it, was changed")}
		}
		if err := s.take(&ev); err != nil {
			if future := (*futureEventError)(nil); errors.As(err, &future) {
				return fmt.Errorf("event %d: %w", ev.Seq, err)
			}
			return &damage{RunID: s.runID, Seq: ev.Seq, Err: err}
		}
		before = ev
	}
	if before.Seq == 0 {
		return &damage{RunID: s.runID, Err: errNoHistory}
	}
	return nil
}
