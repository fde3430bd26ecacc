package durable

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/store"
)

// past is a run's lineage, taken apart by scope and call. It is made once, when
// a run is loaded, and then only read.
type past struct {
	runID        string
	created      store.Event // workflow_created, or workflow_started of a later generation
	scopes       map[string][]*record
	items        map[string]map[int]*store.Event // outcomes of Map items, by key of the Map
	taken        map[int64]bool                  // messages that were consumed
	waits        map[string]openWait             // asked for and neither answered nor closed, by key of the call
	stopped      map[string]int32                // behind which call the context of each scope, by path, had ended when the undoing began
	stoppedWaits map[string]int32                // and behind how many waits after that call
	undoes       []string                        // the call that each compensation undoes, in the order in which they run; nil: not said
	anew         map[string]int32                // calls that are made again after they were undone; see anewKey
	undoneAt     store.Time                      // of the first event of the undoing; 0: it has not begun
	late         *bool                           // whether the deadline had stopped the run by then; nil: not said
	answers      map[string]string               // keys of the calls that answered a request, by the request's id
	cancel       *store.Event                    // cancel_received
	inbox        int64                           // messages up to this number were taken by earlier generations,
	carried      []int64                         // but for these, in order
	pause        pauseState                      // whether it is paused
	branch       int32                           // of the event before
	cuts         []store.Branch                  // as the events say that begin them
	claims       []claimMark                     // who had it from where on, one for each change of code
	repinned     string                          // version it was pinned to since the generation began
	paused       int64                           // requests to pause up to this number were carried out, or are void
	lifted       int64                           // cancels up to this number were taken back
	resetAt      map[string]int64                // calls that were reset, and by which event; nil: none
	attributes   *map[string]string              // as last set; nil: not since the start
	space        []record                        // room for the next records
	head         head
	lastAt       store.Time
	steps        int32
	events       int
	patches      map[string][]*patch // markers, by path of the scope
	spans        map[string]string   // trace contexts of Maps, by key; nil: none
	begun        map[string]int      // of Maps with items that have recorded calls: one more than the highest
	forced       bool                // an operator has it matched by name

	// The last segment of its trace, and the last one of an earlier claim.
	segment, segmentBefore segmentMark
}

// A head is where a log ends.
type head struct {
	seq    int64
	sum    uint32
	epoch  int64
	branch int32
}

// An openWait is a wait for a message that was asked for and has no answer.
type openWait struct {
	kind  store.Kind
	name  string
	plain bool // no person is asked
	seq   int64
}

// readLineage reads a lineage and checks it as it goes: numbers that grow, sums
// that chain wherever the event before is part of the lineage, calls without a
// gap in their scope.
func readLineage(runID string, events iter.Seq2[store.Event, error], sizeHint int) (*past, error) {
	p := &past{runID: runID, scopes: map[string][]*record{}, items: map[string]map[int]*store.Event{}, taken: map[int64]bool{}, space: make([]record, 0, sizeHint)}
	var before store.Event
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		if p.events == 0 {
			if first, ok, err := p.beginGeneration(&e); err != nil {
				return nil, &damage{RunID: runID, Seq: e.Seq, Err: fmt.Errorf("its data is not readable: %w", err)}
			} else if ok {
				before = first
			}
		}
		if e.Seq <= before.Seq {
			return nil, &damage{RunID: runID, Seq: e.Seq, Err: fmt.Errorf("it comes after event %d", before.Seq)}
		}
		if e.Seq == before.Seq+1 && store.Seal(runID, before.Sum, &e) != e.Sum {
			return nil, &damage{RunID: runID, Seq: e.Seq, Err: fmt.Errorf("its checksum does not fit: it, or the event before it, was changed")}
		}
		if e.Branch != before.Branch && beginsBranch(e.Type) && e.Seq != before.Seq+1 {
			if d, err := dataOf(&e); err == nil && !d.fits(runID, &e) {
				return nil, &damage{RunID: runID, Seq: e.Seq, Err: errFirstChanged}
			}
		}
		if err := p.take(&e); err != nil {
			if future := (*futureEventError)(nil); errors.As(err, &future) {
				return nil, fmt.Errorf("run %s: event %d: %w", runID, e.Seq, err)
			}
			return nil, &damage{RunID: runID, Seq: e.Seq, Err: err}
		}
		before = e
		p.events++
	}
	if p.events == 0 {
		return nil, &damage{RunID: runID, Err: errNoHistory}
	}
	if p.created.Seq == 0 {
		return nil, &damage{RunID: runID, Err: fmt.Errorf("the history does not begin with %s", store.WorkflowCreated)}
	}
	p.head = head{seq: before.Seq, sum: before.Sum, epoch: before.Epoch, branch: before.Branch}
	p.lastAt, p.steps = before.At, before.Steps
	return p, nil
}

// take files one event.
func (p *past) take(e *store.Event) error {
	if p.created.Seq != 0 && e.Branch != p.branch && !beginsBranch(e.Type) {
		return fmt.Errorf("branch %d begins with it, and not with the event that made the branch", e.Branch)
	}
	p.branch = e.Branch
	kind, role := roleOf(e.Type)
	switch role {
	case roleRun:
		return p.takeRun(e)
	case roleItem:
		return p.takeItem(e)
	case roleOther:
		return &futureEventError{e.Type}
	}
	d, err := dataOf(e)
	if err != nil {
		return fmt.Errorf("its data is not readable: %w", err)
	}
	if e.Type == store.AttributesSet {
		p.attributes = &d.Attributes
		if e.Key == "" {
			return nil // not set by a call of the workflow
		}
	}
	if d.Kind != "" {
		kind = d.Kind
	}
	if d.Stopped != nil {
		p.stopped, p.stoppedWaits = d.Stopped, d.StoppedWaits
	}
	if d.Undoes != nil {
		p.undoes = d.Undoes
	}
	if d.Late != nil {
		p.late = d.Late
	}
	if d.Reply != "" {
		if p.answers == nil {
			p.answers = map[string]string{}
		}
		p.answers[d.Reply] = e.Key
	}
	rec, err := p.find(e, kind)
	if err != nil {
		return err
	}
	rec.lastAt, rec.fresh = e.At, false
	rec.once = rec.once || d.Once
	if rec.input == "" {
		rec.input = d.Input
	}
	if rec.item == "" {
		rec.item = d.Item
	}
	if d.Message != 0 {
		p.taken[d.Message] = true
	}
	switch e.Type {
	case store.StepStarted:
		if d.Span != "" {
			if p.spans == nil {
				p.spans = map[string]string{}
			}
			p.spans[e.Key] = d.Span
		}
		if rec.began == 0 { // on probation a step may begin in several executions
			rec.began, rec.openedAt = e.At, e.At
		}
	case store.TimerSet, store.WaitRequested, store.ChildStarted:
		rec.opened, rec.openedAt, rec.until = true, e.At, d.Until
		if e.Type == store.WaitRequested {
			if p.waits == nil {
				p.waits = map[string]openWait{}
			}
			p.waits[e.Key] = openWait{kind: messageKind(d.Kind), name: d.Name, plain: d.Prompt == "", seq: e.Seq}
		}
		if d.Child != "" {
			rec.child, rec.abandon = d.Child, d.Abandon
			rec.derived = derivedChild(p.runID, e, &d)
		}
	case store.AttemptFailed:
		rec.failures, rec.settled = append(rec.failures, *e), e.Seq
	case store.ProgressSaved:
		ev := *e
		slot := d.Slot
		if env, err := envelope.Open(ev.Payload); slot == "" && err == nil && env.Type == "shell.inFlight" {
			slot = "holdfast/shell" // as package shell saved it before names existed
		}
		rec.saved(slot, &ev)
	default:
		rec.outcome, rec.settled, rec.again = *e, e.Seq, d.Again
		delete(p.waits, e.Key)
	}
	return nil
}

// takeRun files an event of the run itself.
func (p *past) takeRun(e *store.Event) error {
	p.pause = p.pause.after(e.Type)
	if beginsBranch(e.Type) {
		if err := p.takeCut(e); err != nil {
			return err
		}
	}
	switch e.Type {
	case store.WorkflowCreated:
		p.created = *e
	case store.CancelReceived:
		d, err := dataOf(e)
		if err != nil {
			return fmt.Errorf("its data is not readable: %w", err)
		}
		ev := *e
		p.cancel = &ev
		p.taken[d.Message] = true
	case store.WorkflowPaused, store.WorkflowUnpaused, store.WorkflowInterrupted, store.WorkflowRecovered, store.FailuresReset, store.JumpActivated, store.Edited:
		d, err := dataOf(e)
		if err != nil {
			return fmt.Errorf("its data is not readable: %w", err)
		}
		p.paused, p.lifted = max(p.paused, d.Message), max(p.lifted, d.Lifted)
		p.forget(d.Reset, e.Seq)
		if d.Anew != nil {
			p.anew = d.Anew
		}
		p.forced = p.forced || d.Force
		p.repin(d.Version)
	case store.RunResumed, store.RunClaimed, store.WorkflowStarted:
		d, err := dataOf(e)
		if err != nil {
			return fmt.Errorf("its data is not readable: %w", err)
		}
		p.forced = p.forced || d.Force
		p.repin(d.Version)
		p.markSegment(e, d.Segment)
		p.markClaim(e, &d)
	case store.Patched:
		return p.takePatch(e)
	}
	return nil
}

// takeItem files the outcome of an item of a Map, "items[17]".
func (p *past) takeItem(e *store.Event) error {
	name, n, ok := splitItem(e.Key)
	if !ok {
		return fmt.Errorf("%q is not the key of an item", e.Key)
	}
	items := p.items[name]
	if items == nil {
		items = map[int]*store.Event{}
		p.items[name] = items
	}
	ev := *e
	items[n] = &ev
	return nil
}

// find returns the record an event belongs to, a new one for the first event of
// a call. Its ordinal says where in the scope it stands.
func (p *past) find(e *store.Event, kind callKind) (*record, error) {
	path := scopeOfKey(e.Key)
	calls := p.scopes[path]
	n := int(e.Ordinal)
	if n < 1 || n > len(calls)+1 {
		return nil, fmt.Errorf("%s is call %d of its scope, after %d calls", e.Key, n, len(calls))
	}
	if n <= len(calls) {
		rec := calls[n-1]
		switch {
		case rec.key != e.Key:
			return nil, fmt.Errorf("%s is call %d of its scope, which was %s before", e.Key, n, rec.key)
		case rec.kind != kind:
			return nil, fmt.Errorf("%s is a %s, and was a %s before", e.Key, kind, rec.kind)
		}
		return rec, nil
	}
	if len(p.space) == cap(p.space) {
		// A new block: records that were handed out stay where they are.
		p.space = make([]record, 0, 256)
	}
	p.space = append(p.space, record{key: e.Key, kind: kind, seq: e.Seq})
	rec := &p.space[len(p.space)-1]
	if n == 1 && path != "" {
		p.beginItem(path)
	}
	if n == 1 && path == undoScope {
		p.undoneAt = e.At
	}
	p.scopes[path] = append(calls, rec)
	return rec, nil
}

// call returns the record of the call with this key, nil if there is none.
func (p *past) call(key string) *record {
	for _, rec := range p.scopes[scopeOfKey(key)] {
		if rec.key == key {
			return rec
		}
	}
	return nil
}

// beginItem files that the scope of an item has a recorded call.
func (p *past) beginItem(path string) {
	name, n, ok := splitItem(path)
	if !ok {
		return
	}
	if p.begun == nil {
		p.begun = map[string]int{}
	}
	p.begun[name] = max(p.begun[name], n+1)
}

// beginGeneration files the first event of a generation and returns what stands
// for the event before it, which is not part of the lineage. ok is false for a
// workflow_started that begins none.
func (p *past) beginGeneration(e *store.Event) (before store.Event, ok bool, err error) {
	if e.Type != store.WorkflowStarted {
		return before, false, nil
	}
	d, err := dataOf(e)
	if err != nil || d.Generation == 0 {
		return before, false, err
	}
	p.created = *e
	p.inbox = d.Inbox
	p.carried = d.Pending
	return store.Event{Seq: e.Seq - 1, Sum: d.Sum}, true, nil
}

// consumed reports whether the message was taken: in this generation, or before
// it began.
func (p *past) consumed(m *store.Message) bool {
	switch {
	case p == nil:
		return false
	case p.taken[m.Seq], m.Kind == store.KindPause && m.Seq <= p.paused, m.Kind == store.KindCancel && m.Seq <= p.lifted:
		return true
	}
	if m.Seq > p.inbox {
		return false
	}
	_, carried := slices.BinarySearch(p.carried, m.Seq)
	return !carried
}

// floor is the number of the last message before which all were taken when the
// generation began.
func (p *past) floor() int64 { return floorOf(p.inbox, p.carried) }

func floorOf(inbox int64, pending []int64) int64 {
	if len(pending) > 0 {
		return pending[0] - 1 // they are in order
	}
	return inbox
}

// rootOf returns the branch with which the lineage of branch n begins.
func rootOf(branches []store.Branch, n int32) store.Branch {
	for {
		i := slices.IndexFunc(branches, func(b store.Branch) bool { return b.N == n })
		if i < 0 {
			return store.Branch{N: n}
		}
		if branches[i].Parent >= n {
			return branches[i]
		}
		n = branches[i].Parent
	}
}

// repin files the version that an event pins the run to, if it does.
func (p *past) repin(version string) {
	if version != "" {
		p.repinned = version
	}
}

// pausedNow returns whether the history says that the run is paused; known is false
// where something was done with the run since that may have ended the pause.
func (p *past) pausedNow() (paused, known bool) { return p.pause == pauseOn, p.pause != pauseUnknown }

// pauseState is what the events so far say of a pause.
type pauseState uint8

const (
	pauseOff pauseState = iota
	pauseOn
	pauseUnknown
)

// after returns what e makes of s. A jump may end a pause, which it made itself, and
// what makes a branch may have cut the end of one away.
func (s pauseState) after(t store.Type) pauseState {
	switch t {
	case store.WorkflowPaused:
		return pauseOn
	case store.WorkflowUnpaused, store.WorkflowCancelled:
		return pauseOff
	case store.JumpActivated, store.WorkflowRecovered, store.Edited, store.FailuresReset:
		if s == pauseOn {
			return pauseUnknown
		}
	}
	return s
}

// cancelAsked reports whether the inbox has a cancel that is not over: one that was
// taken counts until the run ends.
func (p *past) cancelAsked(inbox []store.Message) bool {
	for i := range inbox {
		if m := &inbox[i]; m.Kind == store.KindCancel && m.Seq > max(p.lifted, p.inbox) {
			return true
		}
	}
	return false
}

// wasLate reports whether the deadline had stopped the run when its undoing began:
// by then its function had returned, and a deadline that passes later changes
// nothing. decided is false where the undoing has not begun, and where an earlier
// version does not say what it began with and it began behind the deadline.
func (p *past) wasLate(deadline store.Time) (late, decided bool) {
	switch {
	case p == nil || p.undoneAt == 0:
		return false, false
	case p.late != nil:
		return *p.late, true
	}
	return false, p.undoneAt < deadline
}

// errNoHistory is why nothing can be made of a run of which only the row is left.
var errNoHistory = errors.New("it has no event, and can neither be resumed nor repaired: delete what is left of it, and import a copy if there is one")

// A damage is why a history cannot be believed.
type damage struct {
	RunID string
	Seq   int64 // of the event; 0: unknown
	Err   error
}

func (d *damage) Error() string { return fmt.Sprintf("run %s, event %d: %v", d.RunID, d.Seq, d.Err) }

func (d *damage) Unwrap() error { return d.Err }
