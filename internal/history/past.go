package history

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/store"
)

// Past is a run's lineage, taken apart by scope and call. It is made once, when
// a run is loaded, and then only read.
type Past struct {
	RunID        string
	Created      store.Event // workflow_created, or workflow_started of a later generation
	replaced     store.Event // the last input_replaced; Seq 0: none
	Scopes       map[string][]*Call
	Items        map[string]map[int]*store.Event // outcomes of Map items, by key of the Map
	Taken        map[int64]bool                  // messages that were consumed
	Waits        map[string]Wait                 // asked for and neither answered nor closed, by key of the call
	Stopped      map[string]int32                // the call after which the context of each scope, by path, had ended when the undoing began
	StoppedWaits map[string]int32                // and the number of waits since that call
	Undoes       []string                        // the call that each compensation undoes, in the order in which they run; nil: not said
	Anew         map[string]int32                // calls that are made again after they were undone, and the branch since which
	undoneAt     store.Time                      // of the first event of the undoing; 0: it has not begun
	late         *bool                           // whether the deadline had stopped the run by then; nil: not said
	Answers      map[string]string               // keys of the calls that answered a request, by the request's id
	Cancel       *store.Event                    // cancel_received
	Inbox        int64                           // messages up to this number were taken by earlier generations,
	carried      []int64                         // but for these, in order
	pause        pauseState                      // whether it is paused
	branch       int32                           // of the previous event
	cuts         []store.Branch                  // as the events that begin them say
	holders      []Holder                        // who had it from which event on, one for each change of code
	Repinned     string                          // version to which it was pinned since the generation began
	paused       int64                           // requests to pause up to this number were carried out, or are void
	Lifted       int64                           // cancels up to this number were taken back
	ResetAt      map[string]int64                // calls that were reset, and by which event; nil: none
	Attributes   *map[string]string              // as last set; nil: not since the start
	filing       filing
	Head         head
	LastAt       store.Time
	Steps        int32
	Events       int
	Patches      map[string][]*Patch // markers, by path of the scope
	Spans        map[string]string   // trace contexts of Maps, by key; nil: none
	begun        map[string]int      // of Maps with items that have recorded calls: one more than the highest
	Forced       bool                // an operator has asked for matching by name

	// The last segment of its trace, and the last one of an earlier claim.
	Segment, SegmentBefore Segment
}

// A head is where a log ends.
type head struct {
	Seq    int64
	Sum    uint32
	Epoch  int64
	Branch int32
}

// A Wait is a wait for a message that was asked for and has no answer.
type Wait struct {
	Kind  store.Kind
	Name  string
	Plain bool // no person is asked
	Seq   int64
}

// Wants reports whether m is for w, whose own answers come under the name own (WaitKey).
// A plain signal is for any wait for its name; an answer names the wait that it answers,
// so that a person is asked again after a jump back.
func (w Wait) Wants(m *store.Message, own string) bool {
	return m.Kind == w.Kind && (m.Name == w.Name || m.Name == own)
}

// Add files one event. Scopes has its call once filing.done is called.
func (p *Past) Add(e *store.Event) error {
	if p.Created.Seq != 0 && e.Branch != p.branch && !BeginsBranch(e.Type) {
		return fmt.Errorf("branch %d begins with it, and not with the event that made the branch", e.Branch)
	}
	p.branch = e.Branch
	kind, role := RoleOf(e.Type)
	switch role {
	case RoleRun:
		return p.takeRun(e)
	case RoleItem:
		return p.takeItem(e)
	case RoleOther:
		return &FutureEventError{Type: e.Type}
	}
	if e.Type == store.StepCompleted && len(e.Data) == 0 {
		// As most events say: a step has completed, and that is all.
		rec, err := p.find(e, kind)
		if err == nil {
			rec.LastAt, rec.Fresh = e.At, false
			rec.end(e)
		}
		return err
	}
	said, err := Decode(e)
	if err != nil {
		return fmt.Errorf("its data is not readable: %w", err)
	}
	if d, ok := said.(*AttributeSet); ok {
		p.Attributes = &d.Attributes
		if e.Key == "" {
			return nil // not set by a call of the workflow
		}
	}
	if named := kindSaid(said); named != "" {
		kind = named
	}
	rec, err := p.find(e, kind)
	if err != nil {
		return err
	}
	if d, ok := said.(interface{ preface() *Preface }); ok {
		p.takePreface(d.preface(), rec)
	}
	p.takeCall(e, said, rec)
	return nil
}

// Input returns the event that has the input: the one that created the run, or the last that
// has replaced it before the run began. A cut leaves all of them in the history.
func (p *Past) Input() *store.Event {
	if p.replaced.Seq != 0 {
		return &p.replaced
	}
	return &p.Created
}

// takePreface files what the first event in a scope says beside its own.
func (p *Past) takePreface(d *Preface, rec *Call) {
	if d.Stopped != nil {
		p.Stopped, p.StoppedWaits = d.Stopped, d.StoppedWaits
		for path := range d.Stopped {
			p.beginItem(path)
		}
	}
	if d.Undoes != nil {
		p.Undoes = d.Undoes
	}
	if d.Late != nil {
		p.late = d.Late
	}
	if rec.Item == "" && d.Item != "" {
		rec.own().Item = d.Item
	}
}

// takeCall files an event of the call rec.
func (p *Past) takeCall(e *store.Event, said any, rec *Call) {
	rec.LastAt, rec.Fresh = e.At, false
	if n := messageSaid(said); n != 0 {
		p.Taken[n] = true
	}
	switch d := said.(type) {
	case *Begun:
		rec.input(d.Input)
		o := rec.own()
		o.Once = o.Once || d.Once
		if d.Span != "" {
			p.Spans = put(p.Spans, e.Key, d.Span)
		}
		if o.Began == 0 { // on probation a step may begin in several executions
			o.Began, o.OpenedAt = e.At, e.At
		}
	case *Timer:
		if e.Type == store.TimerFired {
			rec.end(e)
			break
		}
		rec.open(e, d.Until)
	case *WaitBegun:
		rec.open(e, d.Until)
		p.Waits = put(p.Waits, e.Key, Wait{Kind: MessageKind(d.Kind), Name: d.Name, Plain: d.Prompt == "", Seq: e.Seq})
	case *ChildBegun:
		rec.open(e, 0)
		if d.Child != "" {
			o := rec.own()
			o.Child, o.Abandon = d.Child, d.Abandon
			o.Derived = DerivedChild(p.RunID, e, d)
		}
	case *Progress:
		rec.input(d.Input)
		rec.saved(d.Slot, e)
	case *StepEnd:
		rec.input(d.Input)
		if e.Type == store.AttemptFailed {
			o := rec.own()
			o.Failures, rec.Settled = append(o.Failures, *e), e.Seq
			break
		}
		rec.end(e)
		rec.Again = d.Again
	case *WaitEnd:
		rec.end(e)
		delete(p.Waits, e.Key)
	case *ChildEnd:
		rec.end(e)
	case *Publication:
		if d.Reply != "" {
			p.Answers = put(p.Answers, d.Reply, e.Key)
		}
		rec.end(e)
	default:
		rec.end(e)
	}
}

// takeRun files an event of the run itself.
func (p *Past) takeRun(e *store.Event) error {
	p.filing.done(p.Scopes)
	p.pause = p.pause.After(e.Type)
	switch e.Type {
	case store.WorkflowCreated:
		p.Created = *e
		return nil
	case store.InputReplaced:
		p.replaced = *e
		return nil
	case store.Patched:
		return p.takePatch(e)
	case store.WorkflowCompleted, store.WorkflowFailed, store.WorkflowCancelled, store.WorkflowContinued, store.JumpRequested:
		return nil
	}
	said, err := Decode(e)
	if err != nil {
		return fmt.Errorf("its data is not readable: %w", err)
	}
	if b, ok := branchOf(e, said); ok {
		p.cuts = append(p.cuts, b)
	}
	if answered, r, force := effectOf(said); r != nil {
		p.paused, p.Lifted = max(p.paused, answered), max(p.Lifted, r.Lifted)
		p.Forget(r.Reset, e.Seq)
		if r.Anew != nil {
			p.Anew = r.Anew
		}
		p.Forced = p.Forced || force
	}
	switch d := said.(type) {
	case *Cancelling:
		ev := *e
		p.Cancel = &ev
		p.Taken[d.Message] = true
	case *Recovery:
		p.Repinned = cmp.Or(d.Version, p.Repinned)
	case *Claim:
		p.takeClaim(e, d)
	case *Beginning:
		p.takeClaim(e, d.Claim())
	}
	return nil
}

// takeItem files the outcome of an item of a Map, "items[17]".
func (p *Past) takeItem(e *store.Event) error {
	name, n, ok := SplitItem(e.Key)
	if !ok {
		return fmt.Errorf("%q is not the key of an item", e.Key)
	}
	items := p.Items[name]
	if items == nil {
		items = map[int]*store.Event{}
		p.Items[name] = items
	}
	ev := *e
	items[n] = &ev
	return nil
}

// find returns the record to which an event belongs, a new one for the first event of a
// call. The event's ordinal says where in the scope the call is.
func (p *Past) find(e *store.Event, kind CallKind) (*Call, error) {
	path := ScopeOfKey(e.Key)
	calls := p.filing.of(p.Scopes, path)
	n := int(e.Ordinal)
	if n < 1 || n > len(calls)+1 {
		return nil, fmt.Errorf("%s is call %d of its scope, after %s", e.Key, n, count.Of(len(calls), "call"))
	}
	if n <= len(calls) {
		rec := calls[n-1]
		switch {
		case rec.Key != e.Key:
			return nil, fmt.Errorf("%s is call %d of its scope, which was %s before", e.Key, n, rec.Key)
		case rec.Kind != kind:
			return nil, fmt.Errorf("%s is a %s, and was a %s before", e.Key, kind, rec.Kind)
		}
		return rec, nil
	}
	rec := p.filing.next()
	rec.Key, rec.Kind, rec.Seq = e.Key, kind, e.Seq
	if n == 1 && path != "" {
		p.beginItem(path)
	}
	if n == 1 && path == UndoScope {
		p.undoneAt = e.At
	}
	p.filing.calls = append(calls, rec)
	return rec, nil
}

// Call returns the record of the call with this key, nil if there is none.
func (p *Past) Call(key string) *Call {
	for _, rec := range p.Scopes[ScopeOfKey(key)] {
		if rec.Key == key {
			return rec
		}
	}
	return nil
}

// OpenChildren returns the ids of the children that end with the run and whose outcome is
// not recorded, in order.
func (p *Past) OpenChildren() (ids []string) {
	for _, calls := range p.Scopes {
		for _, rec := range calls {
			if rec.Kind == CallChild && rec.Child != "" && !rec.Abandon && rec.Outcome.Seq == 0 {
				ids = append(ids, rec.Child)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// beginItem files that an item has begun: its scope has a recorded call, or had one when the run was stopped.
func (p *Past) beginItem(path string) {
	if name, n, ok := SplitItem(path); ok {
		if p.begun == nil {
			p.begun = map[string]int{}
		}
		p.begun[name] = max(p.begun[name], n+1)
	}
}

// beginGeneration files the first event of a generation, and returns what takes the
// place of the event before it, which is not part of the lineage. ok is false for a
// workflow_started that begins no generation.
func (p *Past) beginGeneration(e *store.Event) (before store.Event, ok bool, err error) {
	if e.Type != store.WorkflowStarted {
		return before, false, nil
	}
	d, err := Of[Beginning](e)
	if err != nil || d.Generation == 0 {
		return before, false, err
	}
	p.Created, p.replaced = *e, store.Event{}
	p.Inbox = d.Inbox
	p.carried = d.Pending
	return store.Event{Seq: e.Seq - 1, Sum: d.Sum}, true, nil
}

// Consumed reports whether the message was taken: in this generation, or before
// it began.
func (p *Past) Consumed(m *store.Message) bool {
	switch {
	case p == nil:
		return false
	case p.Taken[m.Seq], m.Kind == store.KindPause && m.Seq <= p.paused, m.Kind == store.KindCancel && m.Seq <= p.Lifted:
		return true
	}
	if m.Seq > p.Inbox {
		return false
	}
	_, carried := slices.BinarySearch(p.carried, m.Seq)
	return !carried
}

// Floor returns the number of the message up to which all were taken when the generation
// began.
func (p *Past) Floor() int64 { return FloorOf(p.Inbox, p.carried) }

// FloorOf returns the number of the message up to which all were taken, for a generation that
// begins with messages up to inbox read and the pending ones, in order, still to be taken.
func FloorOf(inbox int64, pending []int64) int64 {
	if len(pending) > 0 {
		return pending[0] - 1 // they are in order
	}
	return inbox
}

// RootOf returns the branch with which the lineage of branch n begins.
func RootOf(branches []store.Branch, n int32) store.Branch {
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

// pausedNow returns whether the history says that the run is paused; known is false if
// something happened to the run since that may have ended the pause.
func (p *Past) pausedNow() (paused, known bool) { return p.pause == pauseOn, p.pause != pauseUnknown }

// pauseState is what the events so far say of a pause.
type pauseState uint8

const (
	pauseOff pauseState = iota
	pauseOn
	pauseUnknown
)

// After returns the state that an event of type t makes of s. A jump may end a pause that it
// made itself, and an event that begins a branch may have cut away the end of a pause.
func (s pauseState) After(t store.Type) pauseState {
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

// cancelAsked reports whether the inbox has a cancel that still counts. One that was
// taken counts until the run ends.
func (p *Past) cancelAsked(inbox []store.Message) bool {
	for i := range inbox {
		if m := &inbox[i]; m.Kind == store.KindCancel && m.Seq > max(p.Lifted, p.Inbox) {
			return true
		}
	}
	return false
}

// WasLate reports whether the deadline had stopped the run when its undoing began:
// by then its function had returned, and a deadline that passes later changes
// nothing. decided is false if the undoing has not begun, and if an earlier version has
// not recorded this and the undoing began after the deadline.
func (p *Past) WasLate(deadline store.Time) (late, decided bool) {
	switch {
	case p == nil || p.undoneAt == 0:
		return false, false
	case p.late != nil:
		return *p.late, true
	}
	return false, p.undoneAt < deadline
}
