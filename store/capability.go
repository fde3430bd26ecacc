package store

import "context"

// The optional abilities of a store beyond the Store interface. CapabilitiesOf,
// in this file, is the only place that probes for them.

// Notifier is a store that announces changes at once.
type Notifier interface {
	// Notify calls fn, from one goroutine, whenever rows may have changed in a
	// way an executor waits for: a message was delivered, a run became
	// claimable, a run ended. The first notice comes at once and says to look at
	// everything, so that nothing is missed that happened between the caller's
	// last look and the moment the store began to listen. Notify returns when
	// ctx ends or the store is closed. A notice may be late, duplicated or lost;
	// the heartbeat is the fallback.
	Notify(ctx context.Context, fn func(Notice)) error
}

// Notice says which runs to look at; with no RunIDs, all of them, unless it is only
// about requests.
type Notice struct {
	RunIDs []string
	// Mail says for each of RunIDs which message is the last that the notice tells of, by
	// its number: an executor that has read that one has nothing to read. 0: it tells of no
	// message to that run; negative: that is not known. Nil: of none of them it is known.
	Mail []int64
	// News says what has happened to the runs of RunIDs, taken together, so that an
	// executor does not look for what has not happened. 0: the store does not say, it may
	// be anything.
	News News
	// Requests: a program may have inserted requests (see Requests). A notice that
	// says to look at all runs says so of requests, too.
	Requests bool
}

// News is a set of things that may have happened to runs. A store may say too much, which
// costs the listeners a look, but nothing too little: what it has left out nobody looks for
// until a heartbeat.
type News uint16

const (
	// NewsClaimable: a run without an owner may be due, so that a claim can take it.
	NewsClaimable News = 1 << iota
	// NewsMail: a message was delivered. If the owner of its run is dead, a claim can take
	// the run.
	NewsMail
	// NewsPlace: a run has ended or was interrupted or deleted, so its place in a queue, if
	// it held one, is free.
	NewsPlace
	// NewsStatus: a run has another status or owner, was paused or unpaused, was created or
	// deleted.
	NewsStatus
	// NewsTime: a run without an owner may have got a time at which it becomes due, as a delayed
	// one has. A beat says when the first of those is (Pulse.Next).
	NewsTime
)

// RequestHearer is a Notifier that may not hear of the requests that programs insert (see Requests):
// it depends on how the store was opened.
type RequestHearer interface {
	// HearsRequests reports whether Notify tells of them. If not, an executor has to look for
	// them often.
	HearsRequests() bool
}

// Meter is a store that counts its operations.
type Meter interface {
	// Counts returns totals since the store was opened.
	Counts() Counts
}

// Counts are totals since a store was opened.
type Counts struct {
	Statements int64 // sent to the database, except BEGIN and COMMIT
	Reads      int64 // of those, queries
	Commits    int64 // durable commits
}

// Presence is a store that can tell that an executor is gone before its lease
// has expired, for example by a lock that its process holds. It never extends a
// lease. Where each process uses its own clock, it may show that the clocks
// differ: if a lease expired long ago but its process is still there, the
// observer waits for that lease once, by the observer's own clock.
type Presence interface {
	// PresenceKind names the mechanism, for people; empty means that it is not
	// available on this handle.
	PresenceKind() string
}

// Clocked is a store that says whose clock it uses.
type Clocked interface {
	// ClockKind says whose clock judges leases and due times: "process", the clock
	// of each process that opens the store, or "server", one clock for all of them.
	ClockKind() string
}

// SingleProcess is a store whose data only one process can have open at a time,
// through one handle, such as a store that locks its file. While that process
// lives, no other process can recover its runs and no tool can inspect the data
// beside the program, so the store has to declare it.
type SingleProcess interface {
	// ProcessLock names what keeps other processes out, for people; empty means
	// that nothing does on this handle.
	ProcessLock() string
}

// TxCommitter is a store that can carry out Changes inside the user's own transaction
// on the same database, so that they become durable with it or not at all.
type TxCommitter interface {
	// CommitIn works like Commit, within tx (*sql.Tx or *sqlx.Tx). An error
	// means that the user must roll back.
	CommitIn(ctx context.Context, tx any, c Change) error
}

// Parallel is a store that is faster if commits of different runs are sent at the same time than
// one after another, such as one on a server. Any store takes them; one that does not say so gets
// one batch after another, and beside it those with large changes.
type Parallel interface {
	// ParallelCommits returns how many commits are worth sending at a time.
	ParallelCommits() int
}

// LateCommitter is a store whose writers wait for one another, such as a file that several
// processes write to. A batch that is formed after the wait has everything in it that came
// meanwhile.
type LateCommitter interface {
	// CommitLate is Commit of the batch that form returns, which may be empty. It calls form exactly
	// once: when nothing but its own work is left to wait for, or when it has failed before that and
	// needs the changes that its answers are for.
	CommitLate(ctx context.Context, form func() []Change) []error
}

// RunKinds is a store that says what kinds of runs it has without counting them.
type RunKinds interface {
	// RunKinds returns the kinds of the runs that have not ended, each once, in no
	// order. How long it takes depends on how many kinds there are, and not on how
	// many runs.
	RunKinds(ctx context.Context) ([]RunKind, error)
}

// RunKind is what runs have in common that the same executors take.
type RunKind struct {
	Workflow string `db:"workflow"`
	Version  string `db:"version"`
	Queue    string `db:"queue"` // empty: on no queue
}

// Capabilities are the optional abilities of one store; a nil field means that
// the store lacks that ability.
type Capabilities struct {
	Notifier      Notifier
	Meter         Meter
	Presence      Presence
	Clocked       Clocked
	SingleProcess SingleProcess
	TxCommitter   TxCommitter
	Transactor    Transactor
	Queues        Queues
	Backuper      Backuper
	Maintainer    Maintainer
	Schedules     Schedules
	Requests      Requests
	// HearsRequests: the Notifier tells of requests, which it does unless it is a RequestHearer
	// that says otherwise.
	HearsRequests bool
	Loader        Loader
	RunKinds      RunKinds
	LateCommitter LateCommitter
	// ParallelCommits is what Parallel says, 1 without it.
	ParallelCommits int
}

// Capable is a store that says itself what it can do, such as one that wraps a Store it knows at
// run time only: which interfaces it implements then says nothing.
type Capable interface {
	Capabilities() Capabilities
}

// CapabilitiesOf probes s, or asks it if it is Capable.
func CapabilitiesOf(s Store) Capabilities {
	if asked, ok := s.(Capable); ok {
		return asked.Capabilities()
	}
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
	c.Transactor, _ = s.(Transactor)
	c.Queues, _ = s.(Queues)
	c.Backuper, _ = s.(Backuper)
	c.Maintainer, _ = s.(Maintainer)
	c.Schedules, _ = s.(Schedules)
	c.Requests, _ = s.(Requests)
	h, depends := s.(RequestHearer)
	c.HearsRequests = c.Notifier != nil && (!depends || h.HearsRequests())
	c.Loader, _ = s.(Loader)
	c.RunKinds, _ = s.(RunKinds)
	c.LateCommitter, _ = s.(LateCommitter)
	c.ParallelCommits = 1
	if p, ok := s.(Parallel); ok {
		c.ParallelCommits = max(p.ParallelCommits(), 1)
	}
	return c
}
