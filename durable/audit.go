package durable

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// An audit looks at a whole run, event by event in the order of the log: what is
// damaged, and how far what comes before the damage can be believed. It is a pure
// function of what it is given.
//
// For example, of the log 1 created, 2 started, 3 step_completed a, 4
// step_completed b, with a flipped bit in 4: there is one finding, on event 4; bad
// is 4, and the cut behind which a repair can go on is after event 3.
type audit struct {
	v        auditVerdict
	h        *store.History // the events are not read from it
	payloads payloads

	branch   int32 // the current one, as far as row and log tell
	lineage  store.Lineage
	cuts     map[int32]int64 // of the branches of the lineage: after which event each begins
	root     int64           // the last event of the generations before
	seen     map[int32]bool  // branches with a sound event
	firsts   map[int32]int64 // number of the first event of each branch, sound or not
	branches map[int32]store.Branch

	before store.Event   // the one before in the log, over all branches
	past   *history.Past // the current lineage, up to the damage
	life   lifeOf
	facts  rowFacts
	faults []rowFault // of the row
	stands *standstill
	asked  string // id of the run that was asked for; empty: the row's
	// bad is the first event of the lineage that cannot be believed; 0: none.
	bad   int64
	start int64    // the last of the events that begin the generation
	cut   int64    // the last stable event before bad
	lost  []string // keys of the lineage whose outcome or beginning is recorded behind cut
	// What a cut needs to know, for a repair. The lineage is kept in memory only if it is
	// asked for.
	keeps   bool
	events  []store.Event   // the lineage, with what of it is damaged
	unsound map[int64]bool  // the damaged ones
	once    map[string]bool // calls that were announced before they began, or may be such
	forced  bool            // an operator has it matched by name
	born    map[string]bool // runs that the log names as children, in any part of it that is sound
	// unreadable: the store could not give all of it.
	unreadable bool
}

// payloads open what the events and messages of a run carry, at their place.
type payloads struct {
	// event and message return why a payload cannot be opened, nil if it can.
	event   func(run string, e *store.Event) error
	message func(run string, m *store.Message) error
	// input returns the hash of the input that an event carries, if it can be read.
	input func(run string, e *store.Event) (hash [16]byte, ok bool)
	// kind is what an error of event and message is a fault of: Corrupt or Incompatible.
	kind func(err error) string
}

// The kinds of faults.
const (
	isCorrupt      = "corrupt"      // what is stored is not what was written
	isIncompatible = "incompatible" // it is sound, and cannot be read by this engine
	isOrphan       = "orphan"       // nothing refers to it any more
)

// The parts of a run.
const (
	partEvent   = "event"
	partPayload = "payload"
	partRow     = "row"
	partBranch  = "branch"
	partMessage = "message"
)

// A fault is one thing that an audit has noticed.
type auditFault struct {
	Kind, Part string
	Seq        int64  // of the event or message, number of the branch; 0: of the row
	Key        string // of the event
	Behind     bool   // in a part of the history that was left behind
	Text       string
}

// A auditVerdict is what an audit has found.
type auditVerdict struct {
	RunID            string
	Workflow         string
	Status           store.Status // as the row says
	Events, Payloads int          // that were looked at
	Faults           []auditFault
	More             int // faults beyond maxFaults
}

// maxFaults is how many faults of one run are kept.
const maxFaults = 100

func (v *auditVerdict) add(f auditFault) {
	if len(v.Faults) == maxFaults {
		v.More++
		return
	}
	v.Faults = append(v.Faults, f)
}

// has reports whether something that a resume needs has a fault of this kind.
func (v *auditVerdict) has(kind string) bool {
	return slices.ContainsFunc(v.Faults, func(f auditFault) bool { return f.Kind == kind && !f.Behind })
}

func newAudit(h *store.History, p payloads) *audit {
	a := &audit{
		v: auditVerdict{RunID: h.Run.ID, Workflow: h.Run.Workflow, Status: h.Run.Status},
		h: h, payloads: p, branch: h.Run.Branch,
		cuts: map[int32]int64{}, seen: map[int32]bool{}, firsts: map[int32]int64{}, branches: map[int32]store.Branch{0: {}},
		unsound: map[int64]bool{}, once: map[string]bool{}, born: map[string]bool{},
		past: &history.Past{RunID: h.Run.ID, Scopes: map[string][]*history.Call{}, Items: map[string]map[int]*store.Event{}, Taken: map[int64]bool{}},
	}
	for _, b := range h.Branches {
		a.branches[b.N] = b
	}
	// The end of the log is always on the current branch.
	if last := h.Run.Last; last != nil && last.Branch != a.branch {
		if _, known := a.branches[last.Branch]; known {
			a.branch = last.Branch
		}
	}
	a.lineage = store.LineageOf(h.Branches, a.branch)
	for _, n := range a.lineage.Branches() {
		if b := a.branches[n]; b.Parent < n && b.CutScope == "" {
			a.cuts[n] = b.Cutoff
		}
	}
	a.root = history.RootOf(h.Branches, a.branch).Cutoff
	return a
}

// event looks at the next event of the log.
func (a *audit) event(e *store.Event) {
	a.v.Events++
	if cutoff, ok := a.cuts[e.Branch]; ok && e.Seq > cutoff {
		a.seen[e.Branch] = true // with its first event a branch begins, sound or not
	}
	before := a.before.Sum
	sound := a.chain(e)
	if _, ok := a.firsts[e.Branch]; !ok {
		a.firsts[e.Branch] = e.Seq
	}
	if e.Type == store.ChildStarted && sound {
		if d, err := history.DataOf(e); err == nil {
			a.born[d.Child] = true
		}
	}
	a.before = *e
	a.takeFacts(e, sound)
	a.life.take(e)
	if a.facts.unclaimedFork() {
		a.life.may = []store.Status{store.Interrupted} // it is born so
	}
	if !sound {
		if a.bad != 0 && !a.behind(e.Seq) {
			a.loseUnsound(*e, before)
		}
		return
	}
	a.seen[e.Branch] = true
	behind := a.behind(e.Seq) || !a.lineage.Has(e)
	if _, known := a.branches[e.Branch]; !known {
		a.damage(e.Seq, e.Key, partEvent, fmt.Sprintf("it stands on branch %d, of which there is no record", e.Branch))
		return
	}
	if len(e.Payload) > 0 {
		a.v.Payloads++
		if err := a.payloads.event(a.v.RunID, e); err != nil {
			kind := a.payloads.kind(err)
			a.v.add(auditFault{Kind: kind, Part: partPayload, Seq: e.Seq, Key: e.Key, Behind: behind, Text: err.Error()})
			if kind == isCorrupt && !behind {
				a.spoil(e.Seq)
			}
		}
	}
	if !behind {
		a.keep(e)
		a.follow(e)
	}
}

func (a *audit) keep(e *store.Event) {
	if a.keeps {
		a.events = append(a.events, *e)
	}
}

// loseUnsound is lose for an event that was changed since. That its type alone was
// changed shows in the sum: the beginning of a body must be known as such.
func (a *audit) loseUnsound(e store.Event, before uint32) {
	began := e
	began.Type = store.StepStarted
	if e.Type != store.StepStarted && store.Seal(a.v.RunID, before, &began) == e.Sum {
		e = began
	}
	a.unsound[e.Seq] = true
	a.keep(&e)
	a.lose(&e)
}

// takeFacts takes an event into account for what it says of the row.
func (a *audit) takeFacts(e *store.Event, sound bool) {
	f := &a.facts
	if !sound {
		f.lost = true
		return
	}
	f.whole = f.whole || e.Seq == 1
	if first := e.Type == store.WorkflowCreated && e.Seq == 1; first || f.born == nil && !f.whole && e.Type == store.WorkflowStarted {
		if d, err := history.DataOf(e); err == nil {
			f.born, f.fork = d.Run, d.Fork
		}
		if first {
			f.hash, f.hashed = a.payloads.input(a.v.RunID, e)
		}
	}
	// A row that missed an end says that the run is executed.
	f.take(e, (slices.Contains(a.life.may, store.Running) || a.life.ended()) && !f.unclaimedFork())
}

// chain checks number and sum of e, and reports whether e can be believed.
func (a *audit) chain(e *store.Event) bool {
	if a.before.Seq == 0 && e.Seq > 1 {
		// Closed generations may be gone as a whole; what follows carries the sum.
		if d, err := history.DataOf(e); err == nil && e.Type == store.WorkflowStarted && d.Generation > 0 {
			a.before = store.Event{Seq: e.Seq - 1, Sum: d.Sum}
		}
	}
	if e.Seq != a.before.Seq+1 {
		missing := fmt.Sprintf("the event before it is %d: the events between are missing", a.before.Seq)
		if e.Seq <= a.before.Seq {
			missing = fmt.Sprintf("it comes after event %d", a.before.Seq)
		}
		at := max(min(a.before.Seq+1, e.Seq), 1)
		a.damage(at, e.Key, partEvent, fmt.Sprintf("event %d: %s", e.Seq, missing))
		return a.behind(at) // then e is the first that counts
	}
	if store.Seal(a.v.RunID, a.before.Sum, e) != e.Sum {
		if d, err := history.DataOf(e); err == nil && e.Type == store.WorkflowStarted && d.Generation > 0 && store.Seal(a.v.RunID, d.Sum, e) == e.Sum {
			return true // it is the sum before that was changed, which it carries
		}
		a.damage(e.Seq, e.Key, partEvent, "its checksum does not fit: it, or the event before it, was changed")
		return false
	}
	return true
}

// follow takes an event of the current lineage into account, as a resume does.
func (a *audit) follow(e *store.Event) {
	if a.bad != 0 {
		a.lose(e)
		return
	}
	err := a.begin(e)
	a.past.Events++
	if err == nil {
		err = a.past.Add(e)
	}
	if future := (*history.FutureEventError)(nil); errors.As(err, &future) {
		a.v.add(auditFault{Kind: isIncompatible, Part: partEvent, Seq: e.Seq, Key: e.Key, Text: err.Error()})
		return
	}
	if err != nil {
		a.damage(e.Seq, e.Key, partEvent, err.Error())
		a.lose(e)
		return
	}
	switch {
	case e.Type.Stable():
		a.cut, a.lost = e.Seq, nil
	case e.Type == store.WorkflowCreated, e.Type == store.WorkflowStarted:
		a.start = e.Seq
	default:
		a.lose(e)
	}
}

// begin checks the first event of the lineage.
func (a *audit) begin(e *store.Event) error {
	if a.past.Events > 0 {
		return nil
	}
	_, renewed, err := a.past.BeginGeneration(e)
	switch {
	case err != nil:
		return fmt.Errorf("its data is not readable: %w", err)
	case !renewed && e.Type != store.WorkflowCreated:
		return fmt.Errorf("the history does not begin with %s", store.WorkflowCreated)
	}
	return nil
}

// behind reports whether no event with this number is part of the current
// lineage: it stands in an earlier generation, or behind a cut and before the
// branch that begins there. So it can also be said of an event whose branch is
// not to be believed.
func (a *audit) behind(seq int64) bool {
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

// half returns what must be taken back in the lineage when it is cut behind seq:
// of a narrow cut that was made later, the scope stays cut, and what had ended
// with it outside of it must not count as ended. What the event says that made
// the branch is not asked: it may be the one that is damaged.
func (a *audit) half(seq int64) (keys []string) {
	for _, n := range a.lineage.Branches() {
		if b := a.branches[n]; b.CutScope != "" && (a.firsts[n] == 0 || a.firsts[n] > seq) {
			keys = append(keys, history.Around(b.CutScope)...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// damage notes that the event with this number cannot be believed.
func (a *audit) damage(seq int64, key string, part string, text string) {
	behind := a.behind(seq)
	a.v.add(auditFault{Kind: isCorrupt, Part: part, Seq: seq, Key: key, Behind: behind, Text: text})
	if !behind {
		a.spoil(seq)
	}
}

func (a *audit) spoil(seq int64) {
	if a.bad == 0 || seq < a.bad {
		a.bad = seq
	}
}

// lose notes what a cut before e would leave behind.
func (a *audit) lose(e *store.Event) {
	d, err := history.DataOf(e)
	a.forced = a.forced || d.Force
	switch e.Type {
	case store.StepStarted:
		// On probation every body announces itself.
		if e.Attempt > 0 && (!d.Probation || err != nil || a.unsound[e.Seq]) {
			a.once[e.Key] = true
		}
	case store.StepCompleted, store.StepFailed, store.AttemptFailed, store.ItemCompleted, store.ItemFailed, store.ChildStarted, store.ChildFinished, store.SignalReceived:
	default:
		return
	}
	a.lost = append(a.lost, e.Key)
}

// undoneBehind adds to the calls that were undone what the undoing behind damage says of
// them, as far as it can be read.
func (a *audit) undoneBehind(left []store.Event) []history.Undone {
	p := *a.past
	p.Scopes = maps.Clone(p.Scopes)
	for i := range left {
		ev := &left[i]
		if !store.InScope(ev.Key, history.UndoScope) || p.Call(ev.Key) != nil {
			continue
		}
		if d, err := history.DataOf(ev); err == nil && d.Undoes != nil {
			p.Undoes = d.Undoes
		}
		p.Scopes[history.UndoScope] = append(slices.Clone(p.Scopes[history.UndoScope]), &history.Call{Key: ev.Key, Kind: history.CallStep})
	}
	return p.Undone()
}
