package operate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// Standing says where a run stands: what is done, what is in progress, and how
// long it took. It is a plain value, made from the run's events by a Tracker, or
// by Operator.Standing and Operator.Standings. The zero value is that of a run
// about which nothing is known.
type Standing struct {
	Seq       int64      // of the last event it knows of; 0: none
	CreatedAt store.Time // of the run, in its first generation, in whatever process that was
	At        store.Time // of the last event

	// Status, as far as events show it: Waiting means that everything known to be
	// in progress waits for a time, a person or a child.
	Status store.Status
	Reason string // why it was interrupted, failed or cancelled, in words

	// Active is how long the run was executed, in all processes together; it
	// leaves out what a killed process did after its last event.
	Active     time.Duration
	Resumes    int // how often it was claimed after an interruption
	Generation int // from 0; see Continue

	// Done of Total: if the workflow declares its names with Steps, how many of
	// those calls are done, and how many there are; Declared is true. Otherwise
	// the steps that are done, and the highest known count: of those over and in
	// progress, or Known. It is never a guess, and so may grow.
	Done, Total int
	Declared    bool
	// Failed is how many of Total are over and have failed, which Done leaves out: steps and
	// branches that returned an error, waits that nobody answered in time, children that have
	// not completed.
	Failed int
	// Names are the declared names, as keys, in order.
	Names []string
	// Steps is the number of steps with an outcome, including those in branches
	// and items, in this generation.
	Steps int

	// Current is the call in progress: of several, a step, the one with the latest
	// event. If none is in progress, it is the first declared call that is not
	// over. Empty: no call is recorded as in progress, or the run has ended.
	Current Call
	// Open lists the calls that are recorded as begun and not over, in the order
	// of their first events. A step is first recorded with its first failed
	// attempt, unless it is a LongOperation or saves progress.
	Open []Call
}

// Call is a durable call in progress.
type Call struct {
	Key  string // "charge", "items[17]/resize#2"
	Kind string // "step", "sleep", "wait", "child run", "branch", ...; empty: it is the next call, not yet recorded
	// N is its number among the declared names, from 1; 0: it is not one of them.
	N int
	// Attempt is the current or next attempt, from 1; 0 for anything but a step.
	Attempt int
	Max     int           // attempts allowed; 0: no limit, or nothing has failed yet
	Failed  string        // the error of the last failed attempt; empty: none failed
	Took    time.Duration // of that attempt
	NextAt  store.Time    // when the attempt may begin; 0: at once
	Since   store.Time    // the time of its first event; 0: not recorded yet
	Until   store.Time    // when a sleep or a wait ends on its own; 0: never
	Prompt  string        // of a wait: what a person is asked
	Child   string        // run id of a child

	seq int64 // of its last event
}

// Step is the number of the call in progress, from 1: its place among the declared
// names, or one more than the steps that are over. 0: the run has ended.
func (s Standing) Step() int {
	switch {
	case s.Status.Terminal():
		return 0
	case s.Current.N > 0:
		return s.Current.N
	case s.Declared:
		return min(s.Done+s.Failed+1, s.Total)
	}
	return s.Done + s.Failed + 1
}

// Tracker derives a Standing from the events of one run, one after the other:
// those of History, of Export, or of Watch as they arrive. Equal events make equal
// Standings. It is pure and cheap, and its memory grows with what is in progress or has
// failed, and not with the history; it never reads a result. The zero value is ready for
// use, by one goroutine at a time.
//
// A live event for which Cuts is true takes back earlier events: start again with a
// zero Tracker and Engine.History, which leaves them out. Operator.Standings does so.
type Tracker struct {
	// Names of the workflow's steps, if a list other than the one recorded at the
	// start applies (the code may have changed since). Set it before the first event.
	Names []string
	// Known is a number of steps known from elsewhere, such as that of an earlier
	// run; it counts if no names are declared.
	Known int

	s        Standing
	declared []string         // escaped
	place    map[string]int   // of the declared names, from 1
	over     map[string]bool  // declared calls that are over
	failed   map[string]bool  // calls that have failed; true: a step
	open     map[string]*Call // begun, not over
}

// Cuts reports whether ev begins a branch that leaves behind part of what was
// recorded before it.
func Cuts(ev *store.Event) bool {
	switch ev.Type {
	case store.JumpActivated, store.Edited, store.WorkflowRecovered:
		return true
	}
	return false
}

// Add takes the next event. An event that was added before changes nothing (Watch
// announces waits again). The error, of no type that a caller can test for, says that the
// event cannot be read, or comes from a newer version of this library; the Standing is then
// unchanged.
func (t *Tracker) Add(ev store.Event) error {
	if ev.Seq <= t.s.Seq {
		return nil
	}
	_, role := history.RoleOf(ev.Type)
	if role == history.RoleOther {
		return fmt.Errorf("durable: event %d: %w", ev.Seq, &history.FutureEventError{Type: ev.Type})
	}
	var said any
	if t.asksFor(&ev) {
		var err error
		if said, err = history.Decode(&ev); err != nil {
			return fmt.Errorf("durable: event %d: its data is not readable: %w", ev.Seq, err)
		}
	}
	s := &t.s
	s.Seq, s.At, s.Active, s.Steps = ev.Seq, ev.At, ev.Active, int(ev.Steps)
	switch role {
	case history.RoleRun:
		t.addRun(&ev, said)
	case history.RoleItem:
		t.close(ev.Key)
	default:
		t.addCall(&ev, said)
	}
	return nil
}

// asksFor reports whether the data of an event matters: that of most outcomes
// does not, and decoding is the main cost.
func (t *Tracker) asksFor(ev *store.Event) bool {
	switch ev.Type {
	case store.StepCompleted, store.StepFailed, store.ItemCompleted, store.ItemFailed, store.Published, store.AttributesSet, store.Patched:
		return false
	}
	return true
}

func (t *Tracker) addRun(ev *store.Event, said any) {
	s := &t.s
	switch d := said.(type) {
	case *history.Beginning:
		t.begin(ev, d)
	case *history.Claim:
		s.Status = store.Running
		if ev.Type == store.RunResumed {
			s.Resumes++
		}
		if ev.Type != store.WorkflowStarted {
			s.Reason = ""
		}
	case *history.End:
		t.end(ev, d)
	case *history.Stop:
		if ev.Type == store.WorkflowInterrupted {
			s.Status, s.Reason = store.Interrupted, d.Reason
		}
	case *history.Act:
		if ev.Type != store.JumpRequested {
			s.Status, s.Reason = store.Interrupted, d.Reason
			t.forget(d.Reset)
		}
	case *history.Recovery:
		if d.CutoffEvent != 0 && !s.Status.Terminal() {
			s.Status, s.Reason = store.Interrupted, d.Reason
		}
	}
}

// end takes the event that ends the run.
func (t *Tracker) end(ev *store.Event, d *history.End) {
	s := &t.s
	switch ev.Type {
	case store.WorkflowCompleted:
		s.Status, s.Reason = store.Completed, ""
		return
	case store.WorkflowFailed:
		s.Status = store.Failed
	case store.WorkflowCancelled:
		s.Status = store.Cancelled
	}
	if s.Reason = d.Reason; s.Reason == "" && d.Error != nil {
		s.Reason = d.Error.Message
	}
}

// begin starts a generation.
func (t *Tracker) begin(ev *store.Event, d *history.Beginning) {
	if ev.Type == store.WorkflowCreated {
		t.s.CreatedAt, t.s.Status = ev.At, store.Pending
	} else {
		t.s.Generation, t.s.Status = int(d.Generation), store.Running
	}
	names := t.Names
	if names == nil {
		names = d.Declared
	}
	t.declared, t.place = nil, map[string]int{}
	for i, name := range names {
		key := history.EscapeName(name)
		t.declared = append(t.declared, key)
		t.place[key] = i + 1
	}
	t.over, t.failed, t.open = map[string]bool{}, map[string]bool{}, map[string]*Call{}
}

func (t *Tracker) addCall(ev *store.Event, said any) {
	if ev.Key == "" {
		return // attributes not set by a call
	}
	kind, _ := history.RoleOf(ev.Type)
	attempt := func(kind history.CallKind) {
		c := t.begun(ev, kind)
		if kind == history.CallStep {
			c.Attempt = max(c.Attempt, int(ev.Attempt))
		}
	}
	switch d := said.(type) {
	case *history.Begun:
		attempt(cmp.Or(d.Kind, kind))
	case *history.Progress:
		attempt(kind)
	case *history.StepEnd: // of an attempt: that of the others is not asked for
		c := t.begun(ev, kind)
		c.Attempt, c.Max, c.NextAt, c.Took = int(ev.Attempt)+1, d.Max, d.NextAt, ev.Took
		if d.Error != nil {
			c.Failed = d.Error.Message
		}
	case *history.WaitBegun:
		c := t.begun(ev, kind)
		c.Until, c.Prompt = d.Until, d.Prompt
	case *history.ChildBegun:
		t.begun(ev, kind).Child = d.Child
	case *history.Timer:
		if ev.Type == store.TimerFired {
			t.done(ev, false)
			break
		}
		t.begun(ev, kind).Until = d.Until
	case *history.ChildEnd:
		t.done(ev, d.Status != "" && d.Status != store.Completed)
	default:
		t.done(ev, ev.Type == store.StepFailed || ev.Type == store.WaitTimedOut)
	}
}

// done ends a call.
func (t *Tracker) done(ev *store.Event, failed bool) {
	t.close(ev.Key)
	if t.place[ev.Key] > 0 {
		t.over[ev.Key] = true
	}
	if delete(t.failed, ev.Key); failed {
		t.failed[ev.Key] = history.IsStepOutcome(ev)
	}
}

// begun returns the open call of an event, or a new one for its first event.
func (t *Tracker) begun(ev *store.Event, kind history.CallKind) *Call {
	c := t.open[ev.Key]
	if c == nil {
		c = &Call{Key: ev.Key, Kind: string(kind), N: t.place[ev.Key], Since: ev.At}
		if t.open == nil {
			t.open = map[string]*Call{}
		}
		t.open[ev.Key] = c
	}
	c.seq = ev.Seq
	return c
}

// close ends a call, or an item, with everything in it: what a branch or item had
// in progress when it failed has no end of its own.
func (t *Tracker) close(key string) {
	for k := range t.open {
		if store.InScope(k, key) || isItemOf(k, key) {
			delete(t.open, k)
		}
	}
}

// isItemOf reports whether key is in an item of the Map with the key call.
func isItemOf(key, call string) bool {
	for path := history.ScopeOfKey(key); path != ""; path = history.ScopeOfKey(history.CallOfScope(path)) {
		if name, _, ok := history.SplitItem(path); ok && name == call {
			return true
		}
	}
	return false
}

// forget takes back the ends, and the failures, of calls that were reset.
func (t *Tracker) forget(keys []string) {
	for _, k := range keys {
		delete(t.over, k)
		delete(t.open, k)
		delete(t.failed, k)
	}
}

// failures returns how many of the calls that count have failed.
func (t *Tracker) failures(declared bool) (n int) {
	for key, step := range t.failed {
		if declared && t.over[key] || !declared && step {
			n++
		}
	}
	return n
}

// Standing returns where the run stands after the events that were added. The
// result shares nothing with the Tracker.
func (t *Tracker) Standing() Standing {
	s := t.s
	s.Declared, s.Total = len(t.declared) > 0, len(t.declared)
	s.Names, s.Failed = slices.Clone(t.declared), t.failures(s.Declared)
	s.Done = len(t.over) - s.Failed
	if s.Seq > 0 && !s.Status.Terminal() {
		t.underWay(&s)
	}
	if !s.Declared {
		steps := 0
		for i := range s.Open {
			if s.Open[i].Kind == string(history.CallStep) {
				steps++
			}
		}
		s.Done, s.Total = max(s.Steps-s.Failed, 0), max(s.Steps+steps, t.Known)
	}
	return s
}

// underWay fills in the calls of a run that has not ended.
func (t *Tracker) underWay(s *Standing) {
	waits, current := 0, -1
	for _, c := range t.open {
		s.Open = append(s.Open, *c)
	}
	slices.SortFunc(s.Open, func(a, b Call) int { return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Key, b.Key)) })
	for i := range s.Open {
		c := &s.Open[i]
		if waiting(c.Kind) {
			waits++
		}
		if current < 0 || preferred(c, &s.Open[current]) {
			current = i
		}
	}
	if current >= 0 {
		s.Current = s.Open[current]
		if s.Status == store.Running && waits > 0 && !t.busy() {
			s.Status = store.Waiting
		}
		return
	}
	for i, key := range t.declared {
		if !t.over[key] {
			s.Current = Call{Key: key, N: i + 1, Attempt: 1}
			return
		}
	}
}

// busy reports whether anything other than a wait is in progress; a call that only
// holds other calls, such as a branch, does not count.
func (t *Tracker) busy() bool {
	for _, c := range t.open {
		if c.Kind == string(history.CallStep) {
			return true
		}
	}
	return false
}

func waiting(kind string) bool {
	return kind == string(history.CallTimer) || kind == string(history.CallWait) || kind == string(history.CallChild)
}

// preferred reports whether a is more interesting to a person than b: a step before
// a wait before a call that holds other calls, then the one with the later event.
func preferred(a, b *Call) bool {
	rank := func(c *Call) int {
		switch {
		case c.Kind == string(history.CallStep):
			return 0
		case waiting(c.Kind):
			return 1
		}
		return 2
	}
	if ra, rb := rank(a), rank(b); ra != rb {
		return ra < rb
	}
	return a.seq > b.seq
}
