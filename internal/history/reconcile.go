package history

import (
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

// The row of a run is a cache of its events. Engine and stores write both in one change; a
// run whose row says something else comes from a store that cannot do so, or was changed by
// hand. Reconcile is the catalogue of what may then be wrong. It is a pure function: from the
// row, what a Survey of the lineage found, and which code is at hand, it makes a finding.
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
// A1 never leaves behind what must not run twice: if the start of an effect
// (step_started) or a compensation comes after the last stable event, the cut is after
// that. D2, whose cut has only one possible place, is then not carried out.

const (
	CodeA1 = "A1" // waiting, and nothing is waited for
	CodeA2 = "A2" // running, and a wait is pending
	CodeA3 = "A3" // running, and every declared step is completed
	CodeD2 = "D2" // a jump was requested and its branch is not the current one
	CodeE2 = "E2" // pinned to a version that is not there
)

// Reasons are the sentences that stand for the codes.
var Reasons = map[string]string{
	CodeA1: "A1: Status awaiting_input but no pending interaction",
	CodeA2: "A2: Status processing but has pending interaction",
	CodeA3: "A3: Status processing but all steps completed",
	CodeD2: "D2: Jump requested but its branch is not the current one",
	CodeE2: "E2: Pinned version is not registered",
}

// NoStableEvent is what recovery says when there is no event to cut after.
const NoStableEvent = "No stable event found - workflow may need manual intervention"

// A Finding is what is wrong with a run, and what to do about it. The zero value
// is a run that is consistent.
type Finding struct {
	Code    string
	Cut     bool
	After   int64  // the last event that the new branch keeps
	Key     string // where it is cut: what is beside that scope may be kept
	Steps   int32  // steps done up to there
	Version string // E2: the version that it is pinned to from now on
	// Promised is the number of the branch on which a lost jump was to go on.
	Promised int32
	Refused  string // why it cannot be repaired; empty: it can
}

// Reason returns the sentence that stands for the code of f.
func (f *Finding) Reason() string { return Reasons[f.Code] }

// CodeAtHand says where the code of a run is.
type CodeAtHand struct {
	Workflow bool // some version is registered here
	Pinned   bool // the version it is pinned to is here, or a live executor has it
	Initial  bool // the same for the version it began with
}

// Reconcile returns the first thing of the catalogue that is wrong with a run:
// A1, A2, A3, then D2, then E2.
func Reconcile(row *store.Run, s *Survey, code CodeAtHand) Finding {
	busy := row.Status == store.Running || row.Status == store.Resuming
	switch {
	case row.Status == store.Completed, row.Status == store.Cancelled, row.Status == store.Pending:
		return Finding{}
	case row.Status == store.Waiting && len(s.Open) == 0:
		return s.cutBehindStable(CodeA1)
	case busy && !s.Answered && s.WaitsAlone() != nil:
		return s.cutBeforeWait(s.WaitsAlone())
	case busy && s.allDone():
		return Finding{Code: CodeA3, Cut: true, After: s.Stable.Seq, Key: s.Stable.key, Steps: s.Stable.Steps}
	}
	if j := s.openJump(row.Branch); j != nil {
		return s.cutBeforeJump(j)
	}
	if code.Workflow && !code.Pinned {
		f := Finding{Code: CodeE2, Version: row.InitialVersion}
		switch {
		case row.InitialVersion == "":
			f.Refused = fmt.Sprintf("run %s is unrecoverable: its version %s of workflow %s is not registered, and it was started without one; run a program that serves it",
				row.ID, row.Version, row.Workflow)
		case !code.Initial || row.InitialVersion == row.Version:
			f.Refused = fmt.Sprintf("run %s is unrecoverable: neither its version %s nor its initial version %s of workflow %s is registered; run a program that serves one of them",
				row.ID, row.Version, row.InitialVersion, row.Workflow)
		}
		return f
	}
	return Finding{}
}

// Place is an event, as far as a cut after it needs; Seq 0: there is none.
type Place struct {
	Seq   int64
	Steps int32
	key   string
}

// opening is a call that was begun and has no outcome: a wait, a timer, a child, a step.
type opening struct {
	At     Place
	before Place // the event before it in the lineage
	Typ    store.Type
	beside bool // of a wait: other goroutines of the run went on when it was asked for
	Wait   pendingWait
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
	at, before Place
	branch, to int32
}

// Survey is the summary of a lineage that the catalogue needs. Add fills it, event by
// event; it holds no payload.
type Survey struct {
	runID      string
	Last       Place
	lastType   store.Type
	Status     store.Status // according to the events
	Stable     Place        // the last stable event,
	stableType store.Type   // its type,
	beforeIt   Place        // and the event before it
	binding    Place        // the last event that no repair leaves behind
	Call       int64        // seq of the last event of a durable call
	Key        string       // of that call
	recovered  int64        // seq of the last workflow_recovered
	declared   []string
	Done       []string            // keys of the completed calls, in order
	doneAt     map[string]struct{} // those of the workflow function itself
	Open       map[string]*opening // waits, timers and children without an outcome, by key
	begun      map[string]*opening // steps without an outcome
	effects    map[string]bool     // keys whose start was recorded
	pending    int                 // of Open, those that are waits
	taken      map[int64]bool      // messages that answered a wait
	Answered   bool                // WaitsAlone has its answer in the inbox: it goes on by itself
	jumps      []jump
	Paused     int64 // requests to pause up to this number are answered
}

// NewSurvey returns a survey of a run to which no event was added yet.
func NewSurvey(runID string) *Survey {
	return &Survey{
		runID: runID, Status: store.Pending, doneAt: map[string]struct{}{}, Open: map[string]*opening{},
		begun: map[string]*opening{}, effects: map[string]bool{}, taken: map[int64]bool{},
	}
}

// Add files one event of the lineage; they come in order.
func (s *Survey) Add(e *store.Event) error {
	at := Place{e.Seq, e.Steps, e.Key}
	switch _, role := RoleOf(e.Type); role {
	case RoleOther:
		return &FutureEventError{Type: e.Type}
	case RoleRun:
		if err := s.takeRun(e, at); err != nil {
			return err
		}
	default:
		if err := s.takeCall(e, at); err != nil {
			return err
		}
	}
	if e.Type.Stable() {
		// A wait asked for before this and answered later would be pending again on a
		// branch that is cut here.
		if s.pending == 0 {
			s.Stable, s.stableType, s.beforeIt = at, e.Type, s.Last
		}
	}
	s.Last, s.lastType = at, e.Type
	return nil
}

// takeRun files an event of the run itself.
func (s *Survey) takeRun(e *store.Event, at Place) error {
	switch e.Type {
	case store.WorkflowStarted, store.RunResumed, store.WorkflowRecovered:
		s.Status = store.Running
	case store.WorkflowCompleted:
		s.Status = store.Completed
	case store.WorkflowFailed:
		s.Status = store.Failed
	case store.WorkflowCancelled:
		s.Status = store.Cancelled
	case store.WorkflowInterrupted:
		s.Status = store.Interrupted
	case store.WorkflowCreated, store.WorkflowPaused, store.WorkflowUnpaused, store.JumpRequested:
	default:
		return nil
	}
	said, err := Decode(e)
	if err != nil {
		return fmt.Errorf("its data is not readable: %w", err)
	}
	switch d := said.(type) {
	case *Beginning:
		s.declared = d.Declared
	case *Stop:
		s.Paused = max(s.Paused, d.Message)
	case *Recovery:
		s.recovered = e.Seq
		s.Paused = max(s.Paused, d.Message)
	case *Act: // jump_requested
		s.jumps = append(s.jumps, jump{at: at, before: s.Last, branch: e.Branch, to: d.ToBranch})
	}
	return nil
}

// takeCall files an event of a durable call.
func (s *Survey) takeCall(e *store.Event, at Place) error {
	if e.Key != "" {
		s.Call, s.Key = e.Seq, e.Key
	}
	if e.Type == store.StepStarted && !onlyBegins(e) {
		s.effects[e.Key] = true
	}
	if s.effects[e.Key] || store.InScope(e.Key, UndoScope) && e.Key != "" {
		s.binding = at
	}
	switch e.Type {
	case store.WaitRequested, store.TimerSet, store.ChildStarted:
		return s.openCall(e, at)
	case store.StepStarted, store.AttemptFailed, store.ProgressSaved:
		if s.begun[e.Key] == nil {
			s.begun[e.Key] = &opening{At: at, before: s.Last, Typ: e.Type}
		}
		return nil
	case store.AttributesSet:
		return nil
	case store.SignalReceived:
		d, err := Of[WaitEnd](e)
		if err != nil {
			return fmt.Errorf("its data is not readable: %w", err)
		}
		s.taken[d.Message] = true
		s.isDone(e.Key)
	case store.TimerFired:
		s.isDone(e.Key)
	case store.StepCompleted, store.ChildFinished, store.ItemCompleted:
		s.Done = append(s.Done, e.Key)
		s.isDone(e.Key)
	}
	if o := s.Open[e.Key]; o != nil {
		delete(s.Open, e.Key)
		if o.Typ == store.WaitRequested {
			s.pending--
		}
	}
	delete(s.begun, e.Key)
	return nil
}

// isDone notes that a call was completed, if the workflow function itself made it: only
// such calls can be declared.
func (s *Survey) isDone(key string) {
	if ScopeOfKey(key) == "" {
		s.doneAt[key] = struct{}{}
	}
}

// openCall files the beginning of a wait, a timer or a child.
func (s *Survey) openCall(e *store.Event, at Place) error {
	said, err := Decode(e)
	if err != nil {
		return fmt.Errorf("its data is not readable: %w", err)
	}
	o := &opening{At: at, before: s.Last, Typ: e.Type}
	if d, ok := said.(*WaitBegun); ok {
		o.beside = d.Beside
		o.Wait = pendingWait{Key: e.Key, Name: d.Name, Prompt: d.Prompt, Until: d.Until, Seq: e.Seq}
		if s.Open[e.Key] == nil {
			s.pending++
		}
	}
	s.Open[e.Key] = o
	return nil
}

// WaitsAlone returns the only thing that the run can be waiting for, nil if there is no
// such wait. A run that executes branches or items may well wait in one of them while
// another goes on, and then a row that says running is right. So the wait must be the
// last event, asked for by a run that had nothing else to do, with nothing else open.
func (s *Survey) WaitsAlone() *opening {
	if s.lastType != store.WaitRequested || len(s.Open) != 1 {
		return nil
	}
	for key, o := range s.Open {
		if o.Typ != store.WaitRequested || o.At != s.Last || o.beside {
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

// IsAnswer reports whether m is for the wait w of a run on this branch, and has not been
// taken.
func (s *Survey) IsAnswer(m *store.Message, w *opening, branch int32) bool {
	return (m.Kind == store.KindSignal || m.Kind == store.KindRequest) && !s.taken[m.Seq] &&
		(m.Name == w.Wait.Name || m.Name == WaitKey(w.Wait.Key, branch))
}

// allDone reports whether every declared step was completed, nothing has happened since, and
// nothing is open. A run that was repaired for this since is on its way to its end.
func (s *Survey) allDone() bool {
	if len(s.declared) == 0 || s.Stable.Seq == 0 || s.Call != s.Stable.Seq || s.recovered > s.Stable.Seq ||
		len(s.Open) > 0 || len(s.begun) > 0 || s.Status.Terminal() {
		return false
	}
	times := map[string]int32{}
	for _, name := range s.declared {
		escaped := EscapeName(name)
		times[escaped]++
		if _, ok := s.doneAt[JoinKey("", escaped, times[escaped])]; !ok {
			return false
		}
	}
	return true
}

// Rerun changes an A3 to cut before the outcome of the last step, whose body then runs
// once more. A body that must not run twice is not run again.
func (s *Survey) Rerun(f Finding) Finding {
	if f.Code != CodeA3 || s.stableType != store.StepCompleted || s.binding.Seq >= s.Stable.Seq || s.beforeIt.Seq == 0 {
		return f
	}
	f.After, f.Steps = s.beforeIt.Seq, s.beforeIt.Steps
	return f
}

// openJump returns the first jump that was requested on this branch and leads to
// another one.
func (s *Survey) openJump(branch int32) *jump {
	for i := range s.jumps {
		if j := &s.jumps[i]; j.branch == branch && j.to != branch {
			return j // a cut before the first of several mends all of them
		}
	}
	return nil
}

func (s *Survey) cutBehindStable(code string) Finding {
	f := Finding{Code: code, Cut: true}
	if s.Stable.Seq == 0 {
		f.Refused = NoStableEvent
		return f
	}
	at := s.Stable
	if s.binding.Seq > at.Seq {
		at = s.binding
	}
	f.After, f.Key, f.Steps = at.Seq, at.key, at.Steps
	return f
}

// cutBeforeWait cuts at the start of the step that asks, if that is on record, otherwise
// just before the wait.
func (s *Survey) cutBeforeWait(w *opening) Finding {
	at := w.before
	for key, o := range s.begun {
		// Nothing that must not run twice may be between the two.
		if o.Typ == store.StepStarted && store.InScope(w.Wait.Key, key) && s.binding.Seq <= o.At.Seq {
			at = o.At
		}
	}
	f := Finding{Code: CodeA2, Cut: true, After: at.Seq, Key: w.Wait.Key, Steps: at.Steps}
	if at.Seq == 0 {
		f.Refused = NoStableEvent // a lineage without a beginning
	}
	return f
}

func (s *Survey) cutBeforeJump(j *jump) Finding {
	f := Finding{Code: CodeD2, Cut: true, After: j.before.Seq, Steps: j.before.Steps, Promised: j.to}
	switch {
	case j.before.Seq == 0:
		f.Refused = NoStableEvent
	case s.binding.Seq > j.at.Seq:
		f.Refused = fmt.Sprintf("run %s cannot be taken back to before the jump that was requested by event %d: event %d records an effect which would happen again; resume it from a checkpoint of your choice, with Force", s.runID, j.at.Seq, s.binding.Seq)
	}
	return f
}

// Read takes the events of a lineage, and checks that they can be believed.
func (s *Survey) Read(h *store.History) error {
	var before store.Event
	for ev, err := range h.Events {
		if err != nil {
			return err
		}
		switch {
		case ev.Seq <= before.Seq:
			return &Damage{RunID: s.runID, Seq: ev.Seq, Err: fmt.Errorf("it comes after event %d", before.Seq)}
		case ev.Seq == before.Seq+1 && store.Seal(s.runID, before.Sum, &ev) != ev.Sum && (before.Seq != 0 || ev.Seq == 1):
			return &Damage{RunID: s.runID, Seq: ev.Seq, Err: errors.New("its checksum does not fit: it, or the event before it, was changed")}
		}
		if err := s.Add(&ev); err != nil {
			if future := (*FutureEventError)(nil); errors.As(err, &future) {
				return fmt.Errorf("event %d: %w", ev.Seq, err)
			}
			return &Damage{RunID: s.runID, Seq: ev.Seq, Err: err}
		}
		before = ev
	}
	if before.Seq == 0 {
		return &Damage{RunID: s.runID, Err: ErrNoHistory}
	}
	return nil
}
