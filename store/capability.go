package store

import "context"

// What a store may be able to do beyond Store. All probing for it stands in
// this file: CapabilitiesOf.

// Notifier is a store that tells at once when something changed.
type Notifier interface {
	// Notify calls fn, from one goroutine, whenever rows may have changed in a
	// way an executor waits for: a message was delivered, a run became
	// claimable, a run ended. The first notice comes at once and says to look at
	// everything, so that nothing is missed that happened between a look and the
	// moment from which the store listens. It returns when ctx ends or the store
	// is closed. A notice may be late, doubled, or lost: the beat stands behind
	// it.
	Notify(ctx context.Context, fn func(Notice)) error
}

// Notice says which runs to look at; with no RunIDs, all of them.
type Notice struct{ RunIDs []string }

// Meter is a store that counts what it does.
type Meter interface {
	// Counts returns totals since the store was opened.
	Counts() Counts
}

// Counts are totals since a store was opened.
type Counts struct {
	Statements int64 // sent to the database, BEGIN and COMMIT not counted
	Reads      int64 // of those, queries
	Commits    int64 // durable commits
}

// Presence is a store that can tell that an executor is gone before its lease
// has run out, such as by a lock its process holds. It never makes a lease
// longer. Where processes bring their own clocks, it may show that those differ:
// a lease that ran out long ago, of a process that is there, is waited for once
// by the clock of the one who looks.
type Presence interface {
	// PresenceKind names the means for people; empty means that it is not
	// available on this handle.
	PresenceKind() string
}

// Clocked is a store that says whose clock it takes the time from.
type Clocked interface {
	// ClockKind says whose clock judges leases and due times: "process", that of
	// each process that opens the store, or "server", one for all of them.
	ClockKind() string
}

// SingleProcess is a store whose data one process can have open at a time, by one
// handle, such as one that locks its file. It cannot be recovered by another
// process while the first lives, and no tool can look at it beside the program;
// so it says so.
type SingleProcess interface {
	// ProcessLock names what keeps others out, for people; empty means that
	// nothing does, on this handle.
	ProcessLock() string
}

// TxCommitter is a store that can carry out Changes inside a transaction of
// the user's on the same database, so that they become durable with it or not
// at all.
type TxCommitter interface {
	// CommitIn works like Commit, within tx (*sql.Tx or *sqlx.Tx). An error
	// means that the user must roll back.
	CommitIn(ctx context.Context, tx any, c Change) error
}

// Capabilities are the optional abilities of one store; a nil field is one it
// does not have.
type Capabilities struct {
	Notifier      Notifier
	Meter         Meter
	Presence      Presence
	Clocked       Clocked
	SingleProcess SingleProcess
	TxCommitter   TxCommitter
	Backuper      Backuper
	Maintainer    Maintainer
}

// CapabilitiesOf probes s.
func CapabilitiesOf(s Store) Capabilities {
	var c Capabilities
	c.Notifier, _ = s.(Notifier)
	c.Meter, _ = s.(Meter)
	if p, ok := s.(Presence); ok && p.PresenceKind() != "" {
		c.Presence = p
	}
	c.Clocked, _ = s.(Clocked)
	if p, ok := s.(SingleProcess); ok && p.ProcessLock() != "" {
		c.SingleProcess = p
	}
	c.TxCommitter, _ = s.(TxCommitter)
	c.Backuper, _ = s.(Backuper)
	c.Maintainer, _ = s.(Maintainer)
	return c
}
