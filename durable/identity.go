package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// identity is what the first event of a run, and of each later generation, says of
// the row that is recorded nowhere else in its history. The row is a cache (G6), and
// a cache that nothing can be compared with would have to be believed.
//
// It is written once a generation. A history of an earlier version of this library
// has none, and is not compared with the row in these points.
type identity struct {
	Workflow   string     `json:"workflow"`
	Version    string     `json:"version,omitempty"` // with which it was created
	Pinned     string     `json:"pinned,omitempty"`  // a later generation: to another one than that
	Parent     string     `json:"parent,omitempty"`
	ParentKey  string     `json:"parent_key,omitempty"`
	ForkedFrom string     `json:"forked_from,omitempty"`
	Queue      string     `json:"queue,omitempty"`
	Partition  string     `json:"partition,omitempty"`
	Dedup      string     `json:"dedup,omitempty"`
	Priority   int32      `json:"priority,omitempty"`
	Trace      string     `json:"trace,omitempty"`
	CreatedAt  store.Time `json:"created_at"`
}

// identityOf is what the first event of a generation says of its row. The row must
// be complete: what is set later is not in it.
func identityOf(r *store.Run) *identity {
	id := &identity{
		Workflow: r.Workflow, Version: r.InitialVersion, Parent: r.Parent, ParentKey: r.ParentKey, ForkedFrom: r.ForkedFrom,
		Queue: r.Queue, Partition: r.Partition, Dedup: r.Dedup, Priority: r.Priority, Trace: r.Trace, CreatedAt: r.CreatedAt,
	}
	if r.Version != r.InitialVersion {
		id.Pinned = r.Version
	}
	return id
}

// pinned returns the version that a generation begins with; empty: none yet, and the
// first executor that claims the run decides.
func (id *identity) pinned() string {
	if id.Pinned != "" {
		return id.Pinned
	}
	return id.Version
}

// copyOf returns, encoded, the identity of a copy of the run source under another id.
func (id *identity) copyOf(source string) []byte {
	c := *id
	c.Parent, c.ParentKey, c.Dedup, c.ForkedFrom = "", "", "", source
	b, _ := json.Marshal(&c) // strings and numbers
	return b
}

// endsAt returns the patch with the end of a run, if it sets one, at the time of the
// event that records it, so that the two can be compared.
func endsAt(p *store.RowPatch, at store.Time) *store.RowPatch {
	if p == nil || p.EndedAt == nil || *p.EndedAt == 0 {
		return p
	}
	own, end := *p, at // a copy of at, so that a write which ends nothing allocates nothing
	own.EndedAt = &end
	return &own
}

// disbelief returns why an execution, or whoever makes something of the run, must not
// go by this row, nil if it may: the fields that decide what the run does must be
// those that its history has. born is what began the generation, branches are those of
// the same moment or later.
//
// The version is not among them: reconcile mends it (E1, E2), and an execution
// compares it with the code it is about to run; see disbelieveVersion.
func (p *past) disbelief(row *store.Run, branches []store.Branch, born *eventData) error {
	no := func(what string, have, want any) error {
		return &DamagedError{RunID: row.ID, Err: fmt.Errorf("its row was changed: its %s is %v there, and %v in its history", what, have, want)}
	}
	if row.Branch != 0 && !slices.ContainsFunc(branches, func(b store.Branch) bool { return b.N == row.Branch }) {
		return &DamagedError{RunID: row.ID, Err: fmt.Errorf("its row was changed: it is on branch %d, of which there is no record", row.Branch)}
	}
	if err := p.disbelieveBranches(row.ID, branches); err != nil {
		return err
	}
	if row.Generation != born.Generation {
		return no("generation", row.Generation, born.Generation)
	}
	if paused, known := p.pausedNow(); known && paused && !row.Paused && !row.Status.Terminal() {
		return &DamagedError{RunID: row.ID, Err: errors.New("its row was changed: it is not paused there, and its history says that it is")}
	}
	if id := born.Run; id != nil {
		switch {
		case row.Workflow != id.Workflow:
			return no("workflow", quoted(row.Workflow), quoted(id.Workflow))
		case row.InitialVersion != id.Version:
			return no("initial version", quoted(row.InitialVersion), quoted(id.Version))
		case row.Parent != id.Parent:
			return no("parent", quoted(row.Parent), quoted(id.Parent))
		case row.ParentKey != id.ParentKey:
			return no("parent key", quoted(row.ParentKey), quoted(id.ParentKey))
		}
	}
	return nil
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }

// disbelieveVersion returns why code of this version must not execute the run, nil
// if it may. A run that was pinned to none goes with any.
func (p *past) disbelieveVersion(id, version string, born *eventData) error {
	if born.Run == nil {
		return nil // an earlier version of this library has begun it
	}
	want := born.Run.pinned()
	if p.repinned != "" {
		want = p.repinned
	}
	if want == "" || want == version {
		return nil
	}
	return &DamagedError{RunID: id, Err: fmt.Errorf("its row was changed: its version is %q there, and %q in its history", version, want)}
}

// disbelieveCancel returns why the row's word that a cancel was asked for must not be
// believed, nil if it may. Row and inbox are of one moment, and nothing that the
// generation has to look at is missing in the inbox.
//
// A row that denies a cancel does no harm: the message is there, and is read.
func (p *past) disbelieveCancel(row *store.Run, inbox []store.Message) error {
	if !row.CancelAsked || p.cancelAsked(inbox) {
		return nil
	}
	return &DamagedError{RunID: row.ID, Err: errors.New("its row was changed: it says that a cancel was asked for, and its inbox has none")}
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

// disbelieve returns why r must not be executed by its row, nil if it may: it would be
// other work, or be reported to somebody else. h is what the history was read from; it
// costs no statement.
func (r *run) disbelieve(h *store.History) error {
	born, err := dataOf(&r.past.created)
	if err != nil {
		return &DamagedError{RunID: r.id, Seq: r.past.created.Seq, Err: err}
	}
	if err := r.past.disbelief(&r.row, h.Branches, &born); err != nil {
		return err
	}
	if err := r.past.disbelieveVersion(r.id, r.def.version, &born); err != nil {
		return err
	}
	if err := r.past.disbelieveCancel(&h.Run, h.Inbox); err != nil {
		return err
	}
	return r.disbelieveInput(&born)
}

// disbelieveInput returns why the row's hash of the input must not be believed.
func (r *run) disbelieveInput(born *eventData) error {
	if born.Run == nil || r.past.created.Type != store.WorkflowCreated {
		return nil // of a later generation, the row has the hash of another input
	}
	// What cannot be opened here is found where it is decoded.
	input, err := r.eng.sealer.unseal(placeOf(r.id, &r.past.created), r.past.created.Payload)
	if err != nil || hashInput(input) == r.row.InputHash {
		return nil
	}
	return &DamagedError{RunID: r.id, Err: errors.New("its row was changed: its hash of the input is not that of the input in its history")}
}
