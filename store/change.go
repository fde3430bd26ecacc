package store

import (
	"fmt"
	"slices"
)

// Change is one atomic act on one run: everything in it happens or nothing
// does (S1). Create, Events, Row, Branch, Hold, Release and Yield concern the
// owner run, RunID; Send and Start may concern any.
//
// When RunID is empty, only Send and Start are allowed and Expect is ignored.
type Change struct {
	RunID  string
	Expect Expect

	// Create is the row to insert; it needs Expect.Absent. Its Epoch is stored as
	// given and must be positive. With an Owner, the run is created already claimed.
	Create *Run
	// Events to append: consecutive Seq, sealed, in the run's log. Their Epoch
	// is set by the store (see Expect and Yield).
	Events []Event
	Row    *RowPatch
	// Branch is a new branch to record; its N must be new (S26).
	Branch *Branch
	Send   []Message
	// Sent says which numbers the messages of Send got, if the store fills it in (S42);
	// the caller makes room for one number each. Nil: nobody asks.
	Sent []int64
	// Start creates runs: each is a Change with Expect.Absent and without Send or
	// Start of its own. If its run already exists with the same Workflow,
	// InputHash, Parent and ParentKey, nothing happens; any other existing run
	// fails the whole Change with ErrExists.
	Start []Change
	// Hold takes exclusive keys for the run, all or none: *OccupiedError when
	// another run holds one. A key that the run already holds is no obstacle.
	// Validate checks each as CheckHold does.
	Hold []string
	// Release frees every exclusive key the run holds, before Hold takes (S25).
	Release bool
	// Yield gives the run up: the last event of the Change carries the next epoch,
	// the row moves to that epoch and loses its owner. Nothing that the former
	// owner left running can write after that (S5). Needs an event.
	Yield bool
}

// Expect is the precondition of a Change. The head of the log must be
// Events[0].Seq - 1; without Events the head is not checked.
type Expect struct {
	// Absent: no run with this id exists. Seq 1 is written only with it.
	Absent bool
	// Epoch of the row (for a row-only Change or one with TakeEpoch) or of the
	// event at the head of the log (for a Change with events).
	Epoch int64
	// TakeEpoch raises the row's epoch to Epoch + 1, clears the owner and
	// writes the events with the new epoch. Operators and recovery use it. It
	// needs an event, which fences the former owner. Refused with *OwnedError
	// while a live executor owns the run.
	TakeEpoch bool
	// NoCancel: Run.CancelAsked is false, else ErrCancelAsked.
	NoCancel bool
	// Inbox: Run.Inbox has this value, so no message has arrived since it was
	// read, else ErrFenced. Nil: not checked.
	Inbox *int64
	// Statuses: the row's status is one of these, else *StatusError. Empty:
	// not checked.
	Statuses []Status
}

// SetSent notes that the i-th message of Send got this number; 0: it was dropped. For use by
// stores: it does nothing if nobody asks.
func (c *Change) SetSent(i int, seq int64) {
	if i < len(c.Sent) {
		c.Sent[i] = seq
	}
}

// Plain reports whether c is a plain checkpoint: it appends events after an event of
// its own epoch and touches nothing else. Backends carry it out in one statement.
func (c *Change) Plain() bool {
	return c.RunID != "" && len(c.Events) > 0 && c.Create == nil && c.Row == nil && c.Branch == nil &&
		len(c.Send) == 0 && len(c.Start) == 0 && len(c.Hold) == 0 && !c.Release && !c.Yield &&
		!c.Expect.Absent && !c.Expect.TakeEpoch && !c.Expect.NoCancel && c.Expect.Inbox == nil && len(c.Expect.Statuses) == 0
}

// EventEpoch returns the epoch with which the i-th event of c is stored.
func (c *Change) EventEpoch(i int) int64 {
	e := c.Expect.Epoch
	if c.Create != nil {
		e = c.Create.Epoch
	}
	if c.Expect.TakeEpoch {
		e++
	}
	if c.Yield && i == len(c.Events)-1 {
		e++
	}
	return e
}

// RowEpoch returns the epoch that the row has after c.
func (c *Change) RowEpoch() int64 { return c.EventEpoch(len(c.Events) - 1) }

// Mark returns the Seq of the event that shows whether c has already been carried
// out (S6): the first event of a Create, otherwise the last. 0: c has no such event.
func (c *Change) Mark() int64 {
	if len(c.Events) == 0 {
		return 0
	}
	return c.Events[c.mark()].Seq
}

func (c *Change) mark() int {
	if c.Create != nil {
		return 0
	}
	return len(c.Events) - 1
}

// Did reports whether c was already carried out (S6). stored is the event that the
// log has at Mark, or nil if it has none there. Both its epoch and its sum must be
// those that c writes: the same event with another epoch comes from another writer.
func (c *Change) Did(stored *Event) bool {
	if stored == nil || len(c.Events) == 0 {
		return false
	}
	e := &c.Events[c.mark()]
	return stored.Seq == e.Seq && stored.Sum == e.Sum && stored.Epoch == c.EventEpoch(c.mark())
}

// Check returns why c cannot be carried out on its run, in the required order
// (S3): ErrFenced comes before every other reason. row is the run's row, nil if
// there is none. last is the last event of its log; a store whose insert tests the
// log passes nil, and must then obtain that answer before it returns another one.
// ownerLive says that a live executor owns the run.
//
// Call Did first (S6). The store itself checks whatever needs more than the run:
// Dedup (S12), exclusive keys (S11), existing branches, Start and Send.
func (c *Change) Check(row *Run, last *Event, ownerLive bool) error {
	if c.Create != nil {
		if row != nil {
			return &ExistsError{RunID: c.RunID}
		}
		return nil
	}
	if row == nil {
		return &NotFoundError{RunID: c.RunID}
	}
	if err := c.fence(row, last); err != nil {
		return err
	}
	switch {
	case c.Expect.TakeEpoch && row.Owner != "" && ownerLive:
		return &OwnedError{RunID: c.RunID, Owner: row.Owner}
	case c.Expect.NoCancel && row.CancelAsked:
		return fmt.Errorf("store: run %q: %w", c.RunID, ErrCancelAsked)
	case len(c.Expect.Statuses) > 0 && !slices.Contains(c.Expect.Statuses, row.Status):
		return &StatusError{RunID: c.RunID, Status: row.Status}
	case c.Row != nil && c.Row.Status != nil && !MayFollow(row.Status, *c.Row.Status):
		return &StatusError{RunID: c.RunID, Status: row.Status, To: *c.Row.Status}
	}
	return nil
}

// fence implements S3 and S10. The log alone fences a plain checkpoint. The row
// fences any other Change too, because an epoch may have been taken whose event is
// not the one directly before.
func (c *Change) fence(row *Run, last *Event) error {
	if row.Epoch != c.Expect.Epoch && !(c.Plain() && last != nil) {
		return fmt.Errorf("store: run %q: epoch %d was expected, the run is at %d: %w", c.RunID, c.Expect.Epoch, row.Epoch, ErrFenced)
	}
	if c.Expect.Inbox != nil && *c.Expect.Inbox != row.Inbox {
		return fmt.Errorf("store: run %q: its inbox was expected to hold %d, and holds %d: %w", c.RunID, *c.Expect.Inbox, row.Inbox, ErrFenced)
	}
	if last == nil || len(c.Events) == 0 {
		return nil
	}
	if last.Seq != c.Events[0].Seq-1 || last.Epoch != c.Expect.Epoch && !c.Expect.TakeEpoch {
		return fmt.Errorf("store: run %q: event %d with epoch %d does not follow event %d with epoch %d: %w",
			c.RunID, c.Events[0].Seq, c.Expect.Epoch, last.Seq, last.Epoch, ErrFenced)
	}
	return nil
}

// Revives reports whether c brings back a run that had ended, so that its Dedup
// counts again (S12).
func (c *Change) Revives(row *Run) bool {
	return c.Row != nil && c.Row.Status != nil && row.Status.Terminal() && !c.Row.Status.Terminal()
}

// Size returns roughly how many bytes c adds to the store.
func (c *Change) Size() int {
	n := 0
	for i := range c.Events {
		n += 64 + len(c.Events[i].Key) + len(c.Events[i].Data) + len(c.Events[i].Payload)
	}
	for i := range c.Send {
		n += 64 + len(c.Send[i].Data) + len(c.Send[i].Payload)
	}
	for i := range c.Start {
		n += c.Start[i].Size()
	}
	if c.Row != nil || c.Create != nil {
		n += 256
	}
	return n
}

// Validate returns an error that wraps ErrInvalid or ErrTooLarge when no store
// with these limits could carry out c. Backends call it first.
func (c *Change) Validate(l Limits) error {
	if c.RunID == "" {
		if c.Create != nil || len(c.Events) > 0 || c.Row != nil || c.Branch != nil || len(c.Hold) > 0 || c.Release || c.Yield {
			return fmt.Errorf("store: a change without a run id can only send and start: %w", ErrInvalid)
		}
		if len(c.Send) == 0 && len(c.Start) == 0 {
			return fmt.Errorf("store: empty change: %w", ErrInvalid)
		}
		return c.validateParts(l)
	}
	if err := CheckRunID(c.RunID); err != nil {
		return err
	}
	switch {
	case c.Expect.Absent != (c.Create != nil):
		return fmt.Errorf("store: run %q: Create and Expect.Absent go together: %w", c.RunID, ErrInvalid)
	case c.Create != nil && (c.Create.ID != c.RunID || c.Create.Epoch <= 0 || !c.Create.Status.Valid()):
		return fmt.Errorf("store: run %q: Create needs the same id, a positive epoch and a status: %w", c.RunID, ErrInvalid)
	case c.Create != nil && (len(c.Events) == 0 || c.Row != nil || c.Expect.TakeEpoch):
		return fmt.Errorf("store: run %q: Create needs its first event, and no row patch or taken epoch: %w", c.RunID, ErrInvalid)
	case c.Create == nil && c.Expect.Epoch <= 0:
		return fmt.Errorf("store: run %q: Expect.Epoch is missing: %w", c.RunID, ErrInvalid)
	case (c.Yield || c.Expect.TakeEpoch) && len(c.Events) == 0:
		// Without an event the log would keep the epoch that is being taken away.
		return fmt.Errorf("store: run %q: Yield and TakeEpoch need an event: %w", c.RunID, ErrInvalid)
	case c.Row != nil && c.Row.Status != nil && !c.Row.Status.Valid():
		return fmt.Errorf("store: run %q: unknown status %q: %w", c.RunID, *c.Row.Status, ErrInvalid)
	case c.Row != nil && c.Row.Status != nil && c.Row.Status.Terminal() && !c.Yield:
		return fmt.Errorf("store: run %q: a change to %s must yield: %w", c.RunID, *c.Row.Status, ErrInvalid)
	case c.Create != nil && len(c.Create.Code) > MaxName, c.Row != nil && c.Row.Code != nil && len(*c.Row.Code) > MaxName:
		return fmt.Errorf("store: run %q: a code has at most %d bytes; what is longer is a reason: %w", c.RunID, MaxName, ErrInvalid)
	}
	for _, key := range c.Hold {
		if err := CheckHold(key); err != nil {
			return err
		}
	}
	for i := range c.Events {
		e := &c.Events[i]
		if i == 0 {
			if (e.Seq == 1) != (c.Create != nil) || e.Seq < 1 {
				return fmt.Errorf("store: run %q: event %d cannot be the first of this change: %w", c.RunID, e.Seq, ErrInvalid)
			}
		} else if e.Seq != c.Events[i-1].Seq+1 {
			return fmt.Errorf("store: run %q: event %d follows %d: %w", c.RunID, e.Seq, c.Events[i-1].Seq, ErrInvalid)
		}
		if e.Type == "" || len(e.Key) > MaxKey {
			return fmt.Errorf("store: run %q: event %d needs a type and a key of at most %d bytes: %w", c.RunID, e.Seq, MaxKey, ErrInvalid)
		}
		if n := max(len(e.Payload), len(e.Data)); n > l.Payload {
			return &TooLargeError{RunID: c.RunID, Key: e.Key, Size: n, Limit: l.Payload}
		}
	}
	return c.validateParts(l)
}

func (c *Change) validateParts(l Limits) error {
	if len(c.Sent) > 0 && len(c.Sent) != len(c.Send) {
		return fmt.Errorf("store: run %q: Sent has room for %d, and Send has %d: %w", c.RunID, len(c.Sent), len(c.Send), ErrInvalid)
	}
	for i := range c.Send {
		m := &c.Send[i]
		if err := CheckRunID(m.To); err != nil {
			return err
		}
		if m.Kind == "" || m.ID == "" {
			return fmt.Errorf("store: message to %q needs a kind and an id: %w", m.To, ErrInvalid)
		}
		if n := max(len(m.Payload), len(m.Data)); n > l.Payload {
			return &TooLargeError{RunID: m.To, Key: m.Name, Size: n, Limit: l.Payload}
		}
	}
	for i := range c.Start {
		s := &c.Start[i]
		if !s.Expect.Absent || len(s.Send) > 0 || len(s.Start) > 0 {
			return fmt.Errorf("store: Start of %q must create a run and nothing else: %w", s.RunID, ErrInvalid)
		}
		if err := s.Validate(l); err != nil {
			return err
		}
	}
	if n := c.Size(); n > l.Batch {
		return &TooLargeError{RunID: c.RunID, Size: n, Limit: l.Batch}
	}
	return nil
}

// SameStart reports whether an existing run is the one s would have created, so
// that starting it again does nothing.
func SameStart(existing *Run, s *Run) bool {
	return existing.Workflow == s.Workflow && existing.InputHash == s.InputHash &&
		existing.Parent == s.Parent && existing.ParentKey == s.ParentKey
}
