package history

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// A Beginning is what the first event of a generation says: workflow_created, or
// workflow_started of a later generation. No claim has recorded the latter, so it says in
// the fields of a Claim who has the run.
type Beginning struct {
	Seed        string            `json:"seed,omitempty"`        // of the random draws, in hexadecimal
	MaxPayload  int               `json:"max_payload,omitempty"` // Options.MaxPayload
	Declared    []string          `json:"declared,omitempty"`    // names given to Steps
	Executor    string            `json:"executor,omitempty"`    // later generation: see Claim
	Build       string            `json:"build,omitempty"`       // the same
	Segment     string            `json:"segment,omitempty"`     // the same
	Name        string            `json:"name,omitempty"`        // the same
	Headers     map[string]string `json:"headers,omitempty"`     // given to Start
	Deadline    store.Time        `json:"deadline,omitempty"`    // when the run is stopped
	Exclusive   []string          `json:"exclusive,omitempty"`   // keys it holds until it ends
	Attributes  map[string]string `json:"attributes,omitempty"`  // the whole set
	Around      string            `json:"around,omitempty"`      // trace context around the span of the start
	BeganAt     int64             `json:"began_at,omitempty"`    // when that span began, in nanoseconds
	Linked      string            `json:"linked,omitempty"`      // of a fork: trace context of the start it is linked to
	Baggage     string            `json:"baggage,omitempty"`     // W3C baggage of the start
	Generation  int32             `json:"generation,omitempty"`  // the one that begins; 0: the first
	Inbox       int64             `json:"inbox,omitempty"`       // later generation: last message before it
	Pending     []int64           `json:"pending,omitempty"`     // the same: messages up to that one that were not taken
	Sum         uint32            `json:"sum,omitempty"`         // the same: sum of the event before
	Environment json.RawMessage   `json:"environment,omitempty"` // of the program that begins it
	Fork        *Fork             `json:"fork,omitempty"`        // of a fork: where it comes from
	Run         *Identity         `json:"run,omitempty"`         // nil: an earlier version of this library has begun it
	Host        string            `json:"host,omitempty"`        // later generation: see Claim
	PID         int               `json:"pid,omitempty"`         // the same
	Scheduled   *Scheduled        `json:"scheduled,omitempty"`   // nil: no schedule has started the run
}

// Scheduled says which schedule has started a run, and for what time.
type Scheduled struct {
	Schedule string     `json:"schedule"`
	At       store.Time `json:"at"`
}

// A Replacement is what input_replaced says: a later start has given a run that had not begun another
// input.
type Replacement struct {
	StartAt  store.Time `json:"start_at,omitempty"` // when the run may begin, from now on
	Executor string     `json:"executor,omitempty"` // that recorded it
}

// A Claim is what an event by which an executor claims a run says: workflow_started,
// run_resumed, run_claimed. The first event of a later generation, which no claim has
// recorded, says in the same fields who has the run.
//
// What a field says holds from this event on; the zero value says nothing of it.
type Claim struct {
	Executor string `json:"executor,omitempty"` // its id
	Build    string `json:"build,omitempty"`    // of the program that claims
	Segment  string `json:"segment,omitempty"`  // trace context of the segment that it begins
	Resumed  bool   `json:"resumed,omitempty"`  // by a call of Resume
	Name     string `json:"name,omitempty"`     // of the executor, for people; empty: Host and PID take its place
	Version  string `json:"version,omitempty"`  // what the run is pinned to
	Force    bool   `json:"force,omitempty"`    // match by name
	Host     string `json:"host,omitempty"`     // where the process runs
	PID      int    `json:"pid,omitempty"`      // of the process on that host
}

// Claim returns which executor has the run from the beginning of a later generation on.
func (b *Beginning) Claim() *Claim {
	return &Claim{Executor: b.Executor, Build: b.Build, Segment: b.Segment, Name: b.Name, Host: b.Host, PID: b.PID}
}

// KeepIn notes in the first event of a later generation which executor has the run.
func (c *Claim) KeepIn(b *Beginning) {
	b.Executor, b.Name, b.Host, b.PID, b.Build = c.Executor, c.Name, c.Host, c.PID, c.Build
}

// Fork says in the first event of a fork where it comes from.
type Fork struct {
	From string `json:"from"`         // run id
	At   int64  `json:"at,omitempty"` // the event up to which it was asked for; 0: all
	// Seeds are the seeds under which the copied events were recorded, oldest first:
	// calls up to an event have drawn with them, and what is drawn until they are
	// replayed must be the same again.
	Seeds []Seed `json:"seeds,omitempty"`
	// Edits are the calls whose outcome differs from that in the source, with a
	// hash of the outcome; By says who made the edits, and Reason why.
	Edits  map[string]string `json:"edits,omitempty"`
	Reason string            `json:"reason,omitempty"`
	By     string            `json:"by,omitempty"`
}

// A Seed is the seed of the random draws of some of the calls of a fork.
type Seed struct {
	Seed  string `json:"seed"`
	Until int64  `json:"until"` // last event, in this run, that was recorded under it
}

// Uint64 returns the seed as a number.
func (f *Seed) Uint64() uint64 {
	b, err := hex.DecodeString(f.Seed)
	if err != nil || len(b) != 8 {
		return 0 // checked when it was read
	}
	return binary.BigEndian.Uint64(b)
}

// SeedsOf returns the seeds under which the calls that a fork copies have drawn.
func (b *Beginning) SeedsOf(kept []store.Event) []Seed {
	if len(kept) == 0 {
		return nil
	}
	// In the fork the created event is 1, and kept[i] is i+2.
	upTo := func(seq int64) int64 {
		i, _ := slices.BinarySearchFunc(kept, seq, func(e store.Event, seq int64) int { return cmp.Compare(e.Seq, seq+1) })
		return int64(i) + 1
	}
	var seeds []Seed
	if b.Fork != nil {
		for _, s := range b.Fork.Seeds {
			seeds = append(seeds, Seed{Seed: s.Seed, Until: upTo(s.Until)})
		}
	}
	return append(seeds, Seed{Seed: b.Seed, Until: int64(len(kept)) + 1})
}

// Continued is what workflow_continued, the last event of a generation, says.
type Continued struct {
	Generation int32 `json:"generation,omitempty"` // the one that begins
}

// An End is what an event that ends a run says: workflow_completed, workflow_failed,
// workflow_cancelled.
type End struct {
	Error       *Error   `json:"error,omitempty"`    // what the function returned; nil: recovery, or a cancel, has ended the run
	Executor    string   `json:"executor,omitempty"` // the one that ended the run without having executed it
	Code        string   `json:"code,omitempty"`
	Reason      string   `json:"reason,omitempty"`
	Recoverable *bool    `json:"recoverable,omitempty"` // workflow_failed: whether Resume is offered
	Uncalled    []string `json:"uncalled,omitempty"`    // if calls were matched by name: recorded ones that were not made
}

// A Stop is what workflow_interrupted, workflow_paused and workflow_unpaused say. Resume
// also records workflow_interrupted, if it changes only how the run is matched.
type Stop struct {
	Error    *Error `json:"error,omitempty"`    // why a run was parked
	Executor string `json:"executor,omitempty"` // that recorded it
	Code     string `json:"code,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Message  int64  `json:"message,omitempty"` // requests to pause up to this message are answered
	Reopened
	Force bool `json:"force,omitempty"` // match by name from here on
}

// An Act is what people do to a run: failures_reset, jump_requested, jump_activated, edited.
type Act struct {
	Executor   string `json:"executor,omitempty"` // that recorded it
	Reason     string `json:"reason,omitempty"`
	Message    int64  `json:"message,omitempty"`     // requests to pause up to this message are answered
	FromBranch int32  `json:"from_branch,omitempty"` // the branch that is left
	ToBranch   int32  `json:"to_branch,omitempty"`   // the new branch
	Cutoff     int64  `json:"cutoff,omitempty"`      // the last event that is kept
	By         string `json:"by,omitempty"`          // who asked for it
	Reopened
	Cut   *Cut `json:"cut,omitempty"`   // of the first event of a branch: what it says of that
	Force bool `json:"force,omitempty"` // match by name from here on
}

// A Recovery is what workflow_recovered says after recovery, or a repair, has changed the
// run.
type Recovery struct {
	Executor string `json:"executor,omitempty"` // that recorded it
	Code     string `json:"code,omitempty"`     // of the catalogue (see Reconcile), or CodeRepaired
	Reason   string `json:"reason,omitempty"`
	Message  int64  `json:"message,omitempty"` // requests to pause up to this message are answered
	Reopened
	Version        string `json:"version,omitempty"` // what the run is pinned to from now on
	Cut            *Cut   `json:"cut,omitempty"`     // of the first event of a branch: what it says of that
	PreviousBranch *int32 `json:"previous_branch,omitempty"`
	NewBranch      *int32 `json:"new_branch,omitempty"`
	CutoffEvent    int64  `json:"cutoff_event,omitempty"` // the last event that is kept; 0: nothing is cut
	Force          bool   `json:"force,omitempty"`        // match by name from here on
}

// Cut is what the first event of a branch says of the branch. The record of a branch is
// beside the log, has no sum of its own, and decides what belongs to the history. The
// event before the first one, whose sum would show that this is as it was written, is
// usually one that the branch has left behind.
type Cut struct {
	Parent     int32  `json:"parent"`
	Generation int32  `json:"generation,omitempty"`
	Cutoff     int64  `json:"cutoff"`
	Scope      string `json:"scope,omitempty"`
	Sum        uint32 `json:"sum"` // of the event before
}

// Encode returns c as the first event of a branch keeps it.
func (c *Cut) Encode() []byte {
	b, _ := json.Marshal(c) // numbers and a string
	return b
}

// Reopened is what acts and recoveries take back in addition to a cut.
type Reopened struct {
	Reset  []string         `json:"reset,omitempty"`  // calls that count as not ended
	Anew   map[string]int32 `json:"anew,omitempty"`   // calls that were undone and are made again, and the branch since which
	Lifted int64            `json:"lifted,omitempty"` // cancels up to this message no longer count
}

// effectOf returns what stops, acts and recoveries have in common; r is nil for other
// events.
func effectOf(said any) (answered int64, r *Reopened, force bool) {
	switch d := said.(type) {
	case *Stop:
		return d.Message, &d.Reopened, d.Force
	case *Act:
		return d.Message, &d.Reopened, d.Force
	case *Recovery:
		return d.Message, &d.Reopened, d.Force
	}
	return 0, nil, false
}

// Cancelling is what cancel_received says.
type Cancelling struct {
	Reason  string `json:"reason,omitempty"`
	Message int64  `json:"message,omitempty"` // its number in the inbox
}

// A Marker is what patched says: the code was asked whether it has a change.
type Marker struct {
	Name       string `json:"name,omitempty"`       // of the change, as it was given
	Deprecated bool   `json:"deprecated,omitempty"` // the code need not ask for the marker
}
