package outline

import (
	"encoding/json"
	"iter"
	"time"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// Input is what is known about a run besides its events.
type Input struct {
	Run      store.Run
	Branches []store.Branch
	// Executors as the store lists them; nil: unknown, and then the story does not
	// say which are live.
	Executors []store.Executor
	// Executing is the key of the step whose body is known to be executing now,
	// which no event shows before it is over; empty: unknown. See
	// durable.Engine.Executing.
	Executing string
	// Line is where the run stands in line of its queue; nil: it is in no line, or
	// that is not known.
	Line *Line
	// Now is the moment at which the story is told.
	Now store.Time
	// Zone in which moments are written; nil: UTC.
	Zone *time.Location
}

// Newest is how many of a run's newest events are enough for its verdict when the
// whole story is not needed: even in a longer run they include what ended it or
// holds it up.
const Newest = 5000

// Outline is the story of the current generation of a run. It shares only the rows
// with the Builder that made it; a later Add may change those.
type Outline struct {
	Run        store.Run
	Now        store.Time
	Begin, End store.Time // of the time axis: the first event; the end of the run, or Now

	Lives []Life
	// Lanes are the branches, oldest first; a row is in the lane where it began.
	Lanes []Lane
	// Waits are the waiting rows, oldest first.
	Waits []*Row
	// Current is where the run is: what failed, waits, or runs. Nil: unknown, or the
	// run has ended well.
	Current *Row

	Declared       []string // names given to Steps, as recorded when it began
	Steps          int      // done in this generation
	Attempts       int      // recorded, of all steps of the current history
	FailedAttempts int
	Replayed       int // steps taken from history when the last life began
	Events         int
	LastSeq        int64
	LastAt         store.Time
	Active         time.Duration
	ForkedFrom     string

	// Attended: a live executor has the run. Served: a live executor serves its
	// workflow and version. Both are false if executors are unknown, see
	// KnowExecutors.
	Attended, Served, KnowExecutors bool
	coded                           bool // a live executor has its code, and may take no runs from its queue

	// Damage is what is wrong with the events, as far as they were looked at; nil: nothing. See Damaged.
	Damage *history.Damage

	Verdict Verdict
	zone    *time.Location
}

// A Life is the time in which one executor had the run.
type Life struct {
	Executor string // its id
	Name     string // for people: its name, or else the beginning of its id
	Host     string // empty: no longer known
	PID      int
	Begin    store.Time
	End      store.Time // for an Alive one, Now; for a Lost one, its last sign
	How      Ending
	Reason   string // that it gave for a clean end
	Resumed  bool   // it was requested
	Replayed int    // steps done before, which it took from history
	After    string // key of the last call with an outcome before End
	claim    store.Type
}

// Ending says how a life ended.
type Ending string

// The endings of lives.
const (
	Alive Ending = "alive" // it has not ended, as far as is known
	Clean Ending = "clean" // it gave the run up or ended it
	// Lost: the run was taken from it, or has no live owner, and it never gave the
	// run up: its process was killed, has crashed, or was out of reach.
	Lost Ending = "lost"
	// Gone: likewise, but the run only waited, which needs no executor.
	Gone Ending = "gone"
)

// A Lane is a branch of the history.
type Lane struct {
	Branch, Parent int32
	Root           bool       // it begins a generation
	Cutoff         int64      // last event of the parent that it keeps
	Scope          string     // only calls in it were cut; empty: all
	Act            store.Type // that began it; empty for a root
	Reason, By     string
	Key            string     // of an edited result
	At             store.Time // when it began; 0 for branch 0
	Current        bool
	// Rows of the current history that began here, in call order.
	Rows []*Row
	// Left are rows recorded here that a later branch left behind; LeftBy is that
	// branch, LeftEvents the number of events left.
	Left       []*Row
	LeftBy     int32
	LeftEvents int
}

// Kind says what sort of call a row is.
type Kind string

// The kinds of rows, in the words of errors and listings.
const (
	Step     Kind = "step"
	Timer    Kind = "timer"
	Wait     Kind = "wait"
	Approval Kind = "approval"
	Request  Kind = "request"
	Child    Kind = "child run"
	Branch   Kind = "branch"
	Map      Kind = "map"
	Item     Kind = "item"
	First    Kind = "first"
	Publish  Kind = "published"
	Attrs    Kind = "attributes"
	Undo     Kind = "compensation"
	Undoing  Kind = "compensations"
)

// State is the state of a row.
type State string

// The states of rows.
const (
	Expected State = "expected" // a declared name of which nothing is recorded
	Running  State = "running"
	Backoff  State = "backoff" // between two attempts
	Waiting  State = "waiting"
	Done     State = "done"
	Failed   State = "failed"
	TimedOut State = "timed out"
	Closed   State = "closed" // a wait that was ended from outside
	// Stopped: begun, without an outcome, and no executor has the run.
	Stopped State = "stopped"
)

// A Row is a durable call, an item of a Map, or what encloses them.
type Row struct {
	Key     string
	Name    string // the last part of the key, for people
	Depth   int    // of nesting, from 0
	Kind    Kind
	State   State
	Branch  int32
	Ordinal int32
	Seq     int64 // of its first event; 0: nothing recorded
	Outcome int64 // of the event that ended it; 0: none
	// Begin is when it began, as far as recorded: for a step, the time of its first
	// event minus what that took. End is 0 while it goes on.
	Begin, End store.Time

	Attempts []Attempt
	Max      int        // attempts allowed; 0: not known
	NextAt   store.Time // when the next attempt may begin
	Error    string     // of the failure, whole
	Progress int64      // event of the last progress saved without a name; 0: none
	command  int64      // event of the last command that package shell began; 0: none
	Once     bool       // its body must not run twice

	Prompt      string
	Signal      string          // that it waits for
	Sample      json.RawMessage // zero value of what it waits for; nil: not known, or it may be null
	Until       store.Time      // when it ends on its own
	ChildID     string
	ChildStatus store.Status
	Items       int // of a Map that has ended: their number
	ItemsDone   int
	ItemsFailed int
	Edited      *Edit
	Reset       bool // its failures were reset since
	Copied      bool // recorded by the run it was forked from

	Rows []*Row // in call order
	// The last recorded start of an attempt, and the number of that attempt.
	startedAt store.Time
	startedN  int
	life      int
	note      bool // it began with step_started or saved progress
	skip      bool // shown elsewhere
}

// An Edit is a result that a person has replaced.
type Edit struct {
	At         store.Time
	By, Reason string
	Seq        int64 // of the outcome that was replaced
}

// AttemptState is the outcome of an attempt.
type AttemptState string

// The states of attempts.
const (
	AttemptDone    AttemptState = "done"
	AttemptFailed  AttemptState = "failed"
	AttemptRunning AttemptState = "running"
	// AttemptCut: its process was lost and its outcome is not recorded. Its effects
	// may have happened; it ran again, or will.
	AttemptCut AttemptState = "cut off"
)

// An Attempt is one execution of a step's body.
type Attempt struct {
	N          int
	Seq        int64 // 0: not recorded
	State      AttemptState
	Begin, End store.Time // if it was cut off: the earliest possible beginning, the last sign of its process
	Took       time.Duration
	Error      string
	Permanent  bool
	NextAt     store.Time // if it failed: when the next may begin
	Notes      []Note
	Life       int // index of the life in which it ran; -1: unknown
	// Begun: it was cut off, but its beginning is recorded.
	Begun bool
	Reset bool // it no longer counts
}

// A Note is debug output of an attempt: user data, JSON.
type Note struct{ Key, Value string }

// Of tells the story of a run from all its events, on all branches, in order of
// their numbers. It stops at the first error of the sequence and returns it with the
// story so far. It skips events of earlier generations.
func Of(in Input, events iter.Seq2[store.Event, error]) (*Outline, error) {
	b := New(in)
	for ev, err := range events {
		if err != nil {
			return b.Outline(), err
		}
		b.Add(&ev)
	}
	return b.Outline(), nil
}

// Each calls f with every row of rows and below, in order, until f returns false.
func Each(rows []*Row, f func(*Row) bool) bool {
	for _, r := range rows {
		if !f(r) || !Each(r.Rows, f) {
			return false
		}
	}
	return true
}

// Keyed reports whether the row's attempts are bodies with an idempotency key of
// this run. A row that a fork has copied has the key of the run it was copied from.
func (r *Row) Keyed() bool {
	return (r.Kind == Step || r.Kind == Undo) && r.State != Expected && !r.Copied
}

// BeforeFailure returns the last event before the start of the call that made the
// run fail: a copy up to there makes that call again, whereas a copy of everything
// would fail at once. 0: the run has not failed, or not because of a call.
func (o *Outline) BeforeFailure() int64 {
	r := o.Current
	if o.Run.Status != store.Failed || r == nil {
		return 0
	}
	first := r.Seq
	Each(r.Rows, func(in *Row) bool { // what was done inside it stays
		if in.State == Failed && len(in.Rows) == 0 && in.Seq != 0 && (first == r.Seq || in.Seq < first) {
			first = in.Seq
		}
		return true
	})
	return max(first-1, 0)
}

// Row returns the row of the current history with this key, nil if there is none.
func (o *Outline) Row(key string) (found *Row) {
	for _, l := range o.Lanes {
		Each(l.Rows, func(r *Row) bool {
			if r.Key == key {
				found = r
			}
			return found == nil
		})
	}
	return found
}
