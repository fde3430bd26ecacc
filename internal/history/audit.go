package history

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// This is for those who look at a run as a whole: Verify, Repair, export and import. What an
// execution notices when it loads a run is in read.go (events) and checkclaimed.go (row).

// An Audit looks at a whole run, event by event in the order of the log, and finds what
// is damaged, and how far the events before the damage can be believed. It is a pure
// function of what it is given.
//
// For example, in the log 1 created, 2 started, 3 step_completed a, 4 step_completed b,
// with a flipped bit in 4, there is one fault, on event 4; Bad is 4, and a repair can cut
// after event 3 and go on from there.
type Audit struct {
	Verdict  Verdict
	History  *store.History // the events are not read from it
	payloads Payloads

	Branch   int32 // the current one, as far as row and log say
	Lineage  store.Lineage
	cuts     map[int32]int64 // for each branch of the lineage: the event after which it begins
	root     int64           // the last event of the generations before
	seen     map[int32]bool  // branches with a sound event
	firsts   map[int32]int64 // number of the first event of each branch, sound or not
	Branches map[int32]store.Branch

	Before store.Event // the previous one in the log, over all branches
	Past   *Past       // the current lineage, up to the damage
	Life   Life
	Facts  RowFacts
	Faults []RowFault // of the row
	stands *standstill
	Asked  string // id of the run that is audited; empty: the row's
	// Bad is the first event of the lineage that cannot be believed; 0: none.
	Bad   int64
	Start int64    // the last of the events that begin the generation
	Cut   int64    // the last stable event before Bad
	Lost  []string // keys of the lineage whose outcome or beginning is recorded after Cut
	// What a cut needs to know, for a repair. The lineage is kept in memory only if Keeps
	// is set.
	Keeps   bool
	Events  []store.Event   // the lineage, including its damaged events
	Unsound map[int64]bool  // the damaged ones
	Once    map[string]bool // calls that were, or may have been, announced before they began
	Forced  bool            // an operator has asked for matching by name
	Born    map[string]bool // runs that the sound parts of the log name as children
	// Unreadable: the store could not give all of it.
	Unreadable bool
}

// Payloads opens what the events and messages of a run carry, at their place.
type Payloads struct {
	// Event and Message return why a payload cannot be opened, nil if it can.
	Event   func(run string, e *store.Event) error
	Message func(run string, m *store.Message) error
	// Input returns the hash of the input that an event carries, if it can be read.
	Input func(run string, e *store.Event) (hash [16]byte, ok bool)
	// Kind is what an error of Event and Message is a fault of: Corrupt or Incompatible.
	Kind func(err error) string
}

// The kinds of faults.
const (
	Corrupt      = "corrupt"      // what is stored is not what was written
	Incompatible = "incompatible" // it is sound, but this engine cannot read it
	Orphan       = "orphan"       // nothing refers to it
)

// The parts of a run.
const (
	PartEvent   = "event"
	partPayload = "payload"
	PartRow     = "row"
	partBranch  = "branch"
	partMessage = "message"
)

// A Fault is one thing that an audit has found.
type Fault struct {
	Kind, Part string
	Seq        int64  // of the event or message, number of the branch; 0: of the row
	Key        string // of the event
	Behind     bool   // it is in a part of the history that was left behind
	Text       string
}

// A Verdict is what an audit has found.
type Verdict struct {
	RunID            string
	Workflow         string
	Status           store.Status // as the row says
	Events, Payloads int          // that were looked at
	Faults           []Fault
	More             int // faults beyond MaxFaults
}

// MaxFaults is how many faults of one run are kept.
const MaxFaults = 100

// Add keeps a fault, up to MaxFaults of them.
func (v *Verdict) Add(f Fault) {
	if len(v.Faults) == MaxFaults {
		v.More++
		return
	}
	v.Faults = append(v.Faults, f)
}

// Has reports whether something that a resume needs has a fault of this kind.
func (v *Verdict) Has(kind string) bool {
	return slices.ContainsFunc(v.Faults, func(f Fault) bool { return f.Kind == kind && !f.Behind })
}

// NewAudit returns an audit of the run of h, whose events it is given one by one.
func NewAudit(h *store.History, p Payloads) *Audit {
	a := &Audit{
		Verdict: Verdict{RunID: h.Run.ID, Workflow: h.Run.Workflow, Status: h.Run.Status},
		History: h, payloads: p, Branch: h.Run.Branch,
		cuts: map[int32]int64{}, seen: map[int32]bool{}, firsts: map[int32]int64{}, Branches: map[int32]store.Branch{0: {}},
		Unsound: map[int64]bool{}, Once: map[string]bool{}, Born: map[string]bool{},
		Past: &Past{RunID: h.Run.ID, Scopes: map[string][]*Call{}, Items: map[string]map[int]*store.Event{}, Taken: map[int64]bool{}},
	}
	for _, b := range h.Branches {
		a.Branches[b.N] = b
	}
	// The end of the log is always on the current branch.
	if last := h.Run.Last; last != nil && last.Branch != a.Branch {
		if _, known := a.Branches[last.Branch]; known {
			a.Branch = last.Branch
		}
	}
	a.Lineage = store.LineageOf(h.Branches, a.Branch)
	for _, n := range a.Lineage.Branches() {
		if b := a.Branches[n]; b.Parent < n && b.CutScope == "" {
			a.cuts[n] = b.Cutoff
		}
	}
	a.root = RootOf(h.Branches, a.Branch).Cutoff
	return a
}

// Add looks at the next event of the log.
func (a *Audit) Add(e *store.Event) {
	a.Verdict.Events++
	if cutoff, ok := a.cuts[e.Branch]; ok && e.Seq > cutoff {
		a.seen[e.Branch] = true // with its first event a branch begins, sound or not
	}
	before := a.Before.Sum
	sound := a.chain(e)
	if _, ok := a.firsts[e.Branch]; !ok {
		a.firsts[e.Branch] = e.Seq
	}
	if e.Type == store.ChildStarted && sound {
		if d, err := Of[ChildBegun](e); err == nil {
			a.Born[d.Child] = true
		}
	}
	a.Before = *e
	a.takeFacts(e, sound)
	a.Life.take(e)
	if a.Facts.unclaimedFork() {
		a.Life.may = []store.Status{store.Interrupted} // it is born so
	}
	if !sound {
		if a.Bad != 0 && !a.behind(e.Seq) {
			a.loseUnsound(*e, before)
		}
		return
	}
	a.seen[e.Branch] = true
	behind := a.behind(e.Seq) || !a.Lineage.Has(e)
	if _, known := a.Branches[e.Branch]; !known {
		a.Damage(e.Seq, e.Key, PartEvent, fmt.Sprintf("it stands on branch %d, of which there is no record", e.Branch))
		return
	}
	if len(e.Payload) > 0 {
		a.Verdict.Payloads++
		if err := a.payloads.Event(a.Verdict.RunID, e); err != nil {
			kind := a.payloads.Kind(err)
			a.Verdict.Add(Fault{Kind: kind, Part: partPayload, Seq: e.Seq, Key: e.Key, Behind: behind, Text: err.Error()})
			if kind == Corrupt && !behind {
				a.spoil(e.Seq)
			}
		}
	}
	if !behind {
		a.keep(e)
		a.follow(e)
	}
}

func (a *Audit) keep(e *store.Event) {
	if a.Keeps {
		a.Events = append(a.Events, *e)
	}
}

// loseUnsound is lose for an event that was changed since it was written. If only its
// type was changed, the sum shows it: the beginning of a body must be known as such.
func (a *Audit) loseUnsound(e store.Event, before uint32) {
	began := e
	began.Type = store.StepStarted
	if e.Type != store.StepStarted && store.Seal(a.Verdict.RunID, before, &began) == e.Sum {
		e = began
	}
	a.Unsound[e.Seq] = true
	a.keep(&e)
	a.lose(&e)
}

// takeFacts files what an event says of the row.
func (a *Audit) takeFacts(e *store.Event, sound bool) {
	f := &a.Facts
	if !sound {
		f.lost = true
		return
	}
	f.whole = f.whole || e.Seq == 1
	if first := e.Type == store.WorkflowCreated && e.Seq == 1; first || f.born == nil && !f.whole && e.Type == store.WorkflowStarted {
		if d, err := Of[Beginning](e); err == nil {
			f.born, f.fork = d.Run, d.Fork
			if d.Run != nil {
				f.startAt = d.Run.StartAt
			}
		}
		if first {
			f.hash, f.hashed = a.payloads.Input(a.Verdict.RunID, e)
		}
	}
	// A row that has missed the end of its run says that the run is executed.
	f.take(e, (slices.Contains(a.Life.may, store.Running) || a.Life.Ended()) && !f.unclaimedFork())
}

// chain checks number and sum of e, and reports whether e can be believed.
func (a *Audit) chain(e *store.Event) bool {
	if a.Before.Seq == 0 && e.Seq > 1 {
		// Closed generations may be gone as a whole; the event that follows carries the
		// sum.
		if sum, ok := sumBefore(e); ok {
			a.Before = store.Event{Seq: e.Seq - 1, Sum: sum}
		}
	}
	if e.Seq != a.Before.Seq+1 {
		missing := fmt.Sprintf("the event before it is %d: the events between are missing", a.Before.Seq)
		if e.Seq <= a.Before.Seq {
			missing = fmt.Sprintf("it comes after event %d", a.Before.Seq)
		}
		at := max(min(a.Before.Seq+1, e.Seq), 1)
		a.Damage(at, e.Key, PartEvent, fmt.Sprintf("event %d: %s", e.Seq, missing))
		return a.behind(at) // then e is the first event that counts
	}
	if store.Seal(a.Verdict.RunID, a.Before.Sum, e) != e.Sum {
		if sum, ok := sumBefore(e); ok && store.Seal(a.Verdict.RunID, sum, e) == e.Sum {
			return true // the sum of the event before was changed; this one carries it
		}
		a.Damage(e.Seq, e.Key, PartEvent, "its checksum does not fit: it, or the event before it, was changed")
		return false
	}
	return true
}

// sumBefore returns the sum of the event before e, which the first event of a later
// generation carries.
func sumBefore(e *store.Event) (sum uint32, ok bool) {
	if e.Type != store.WorkflowStarted {
		return 0, false
	}
	d, err := Of[Beginning](e)
	return d.Sum, err == nil && d.Generation > 0
}

// follow files an event of the current lineage, as a resume does.
func (a *Audit) follow(e *store.Event) {
	if a.Bad != 0 {
		a.lose(e)
		return
	}
	err := a.begin(e)
	a.Past.Events++
	if err == nil {
		err = a.Past.Add(e)
		a.Past.filing.done(a.Past.Scopes)
	}
	if future := (*FutureEventError)(nil); errors.As(err, &future) {
		a.Verdict.Add(Fault{Kind: Incompatible, Part: PartEvent, Seq: e.Seq, Key: e.Key, Text: err.Error()})
		return
	}
	if err != nil {
		a.Damage(e.Seq, e.Key, PartEvent, err.Error())
		a.lose(e)
		return
	}
	switch {
	case e.Type.Stable():
		a.Cut, a.Lost = e.Seq, nil
	case e.Type == store.WorkflowCreated, e.Type == store.WorkflowStarted, e.Type == store.InputReplaced:
		a.Start = e.Seq
	default:
		a.lose(e)
	}
}

// begin checks the first event of the lineage.
func (a *Audit) begin(e *store.Event) error {
	if a.Past.Events > 0 {
		return nil
	}
	_, renewed, err := a.Past.beginGeneration(e)
	switch {
	case err != nil:
		return fmt.Errorf("its data is not readable: %w", err)
	case !renewed && e.Type != store.WorkflowCreated:
		return fmt.Errorf("the history does not begin with %s", store.WorkflowCreated)
	}
	return nil
}

// behind reports whether an event with this number cannot be part of the current lineage:
// it is in an earlier generation, or after a cut and before the branch that begins there.
// So this also holds for an event whose branch is not to be believed.
func (a *Audit) behind(seq int64) bool {
	if seq <= a.root {
		return true
	}
	for n, cutoff := range a.cuts {
		if seq > cutoff && !a.seen[n] {
			return true
		}
	}
	return false
}

// Half returns what must be taken back in the lineage when it is cut after seq: the scope
// of a narrow cut that was made later stays cut, and calls outside it that had ended with
// it must not count as ended. It does not ask the event that made the branch, because
// that may be the damaged one.
func (a *Audit) Half(seq int64) (keys []string) {
	for _, n := range a.Lineage.Branches() {
		if b := a.Branches[n]; b.CutScope != "" && (a.firsts[n] == 0 || a.firsts[n] > seq) {
			keys = append(keys, around(b.CutScope)...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Damage notes that the event with this number cannot be believed.
func (a *Audit) Damage(seq int64, key string, part string, text string) {
	behind := a.behind(seq)
	a.Verdict.Add(Fault{Kind: Corrupt, Part: part, Seq: seq, Key: key, Behind: behind, Text: text})
	if !behind {
		a.spoil(seq)
	}
}

func (a *Audit) spoil(seq int64) {
	if a.Bad == 0 || seq < a.Bad {
		a.Bad = seq
	}
}

// lose notes what a cut before e would leave behind.
func (a *Audit) lose(e *store.Event) {
	// Its type may be what is damaged.
	var d struct {
		Force     bool `json:"force"`
		Probation bool `json:"probation"`
	}
	err := read(e, &d)
	a.Forced = a.Forced || d.Force
	switch e.Type {
	case store.StepStarted:
		// On probation every body is announced.
		if e.Attempt > 0 && (!d.Probation || err != nil || a.Unsound[e.Seq]) {
			a.Once[e.Key] = true
		}
	case store.StepCompleted, store.StepFailed, store.AttemptFailed, store.ItemCompleted, store.ItemFailed, store.ChildStarted, store.ChildFinished, store.SignalReceived:
	default:
		return
	}
	a.Lost = append(a.Lost, e.Key)
}

// UndoneBehind returns the calls that were undone, including those that the undoing after
// the damage names, as far as it can be read.
func (a *Audit) UndoneBehind(left []store.Event) []Undone {
	p := *a.Past
	p.Scopes = maps.Clone(p.Scopes)
	for i := range left {
		ev := &left[i]
		if !store.InScope(ev.Key, UndoScope) || p.Call(ev.Key) != nil {
			continue
		}
		if d, err := prefaceOf(ev); err == nil && d.Undoes != nil {
			p.Undoes = d.Undoes
		}
		rec := newCall(ev.Key, CallStep)
		p.Scopes[UndoScope] = append(slices.Clone(p.Scopes[UndoScope]), &rec)
	}
	return p.Undone()
}
