package conformance

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// Harness says how to make the stores under test.
type Harness struct {
	// New makes new, empty data, and registers its clean-up with t.Cleanup. Cases run
	// one after the other, unless Parallel is set.
	New func(t testing.TB) Data
	// Parallel lets Run check several cases at a time, as many as the -parallel flag of
	// go test says. New is then called by several goroutines at once. Cases of a
	// database mostly wait, so side by side they take a fraction of the time.
	Parallel bool
	// Has lists the capabilities of the backend. The suite fails if one is listed and
	// missing, or present and not listed.
	Has []Capability
	// Patience is how long a condition may take to become true, and how long clients
	// may take to finish their work; 0: 20 s.
	Patience time.Duration
}

// Data is the place where one case keeps its runs.
type Data struct {
	// Open opens a handle on the data, as a separate process would: also while others
	// are open, and again after all were closed.
	Open func() (store.Store, error)

	// Place says where the data are, so that the processes that the suite kills can
	// open them; see Main. If it is empty, no process is killed.
	Place string

	// The rest is optional. Cases that need a hook which is nil are reported
	// as not checked.

	// Advance moves the clock by which leases and due times are judged. If it is nil,
	// the suite waits for real time to pass.
	Advance func(d time.Duration)
	// Corrupt damages a stored event, bypassing the store.
	Corrupt func(runID string, seq int64) error
	// Future marks the data, while no handle is open, as written by a program with a
	// newer schema.
	Future func() error
	// Begin opens a user's transaction, for a TxCommitter.
	Begin func(ctx context.Context) (Tx, error)
	// Copy returns a new place where a Backuper is to make a copy, and how to open a
	// handle on that copy.
	Copy func() (to string, open func() (store.Store, error))
	// Requests reaches the table of requests as a program that speaks SQL does, for
	// Requests.
	Requests *RequestTable
}

// Tx is a user's transaction.
type Tx struct {
	Tx               any // what TxCommitter.CommitIn takes
	Commit, Rollback func() error
}

// Capability is an ability of a store beyond store.Store.
type Capability string

// The capabilities a Harness may declare, by the interfaces of package store.
const (
	Notifier    Capability = "Notifier"
	Meter       Capability = "Meter"
	Presence    Capability = "Presence"
	Clocked     Capability = "Clocked"
	TxCommitter Capability = "TxCommitter"
	Backuper    Capability = "Backuper"
	Maintainer  Capability = "Maintainer"
	Schedules   Capability = "Schedules"
	Transactor  Capability = "Transactor"
	Queues      Capability = "Queues"
	Requests    Capability = "Requests"
	Loader      Capability = "Loader"

	// SingleProcess is a limit rather than a capability, so Capabilities does not list
	// it: the data can be open in one process at a time, through one handle. Cases that
	// need a second handle then share the first.
	SingleProcess Capability = "SingleProcess"
)

// costs says what users lose when a capability is missing.
var costs = map[Capability]string{
	Notifier:    "whoever waits in another process learns what happened at its next beat",
	Meter:       "nobody sees how many statements and commits a step costs",
	Presence:    "after a kill -9 the runs of the dead process rest until its lease has run out (durable.DefaultLease), and nothing is reported until then",
	Clocked:     "nobody can see whose clock judges leases",
	Transactor:  "durable.Transact is refused: the effect of a step in the user's data may happen twice",
	TxCommitter: "runs and steps cannot share a transaction with the user's own data",
	Backuper:    "a copy of a live store has to be made by other means",
	Maintainer:  "statistics and space have to be looked after by other means",
	Queues:      "no limit of a queue holds over processes, and no rate",
	Schedules:   "durable.Options.Schedules is refused: runs have to be started at their times by other means",
	Requests:    "programs in other languages cannot start, signal and cancel by SQL",
	Loader:      "recovery loads run after run, each with a round trip of its own",
}

// Capabilities returns all capabilities.
func Capabilities() []Capability {
	return []Capability{Notifier, Meter, Presence, Clocked, TxCommitter, Backuper, Maintainer, Schedules, Transactor, Queues, Requests, Loader}
}

func (h Harness) has(c Capability) bool { return slices.Contains(h.Has, c) }

// found returns the capabilities s really has.
func found(s store.Store) map[Capability]bool {
	c := capabilities(s)
	return map[Capability]bool{
		Notifier: c.Notifier != nil, Meter: c.Meter != nil, Presence: c.Presence != nil,
		Clocked: c.Clocked != nil, TxCommitter: c.TxCommitter != nil,
		Backuper: c.Backuper != nil, Maintainer: c.Maintainer != nil, SingleProcess: c.SingleProcess != nil,
		Schedules: c.Schedules != nil, Transactor: c.Transactor != nil, Queues: c.Queues != nil, Requests: c.Requests != nil, Loader: c.Loader != nil,
	}
}

// The hooks of Data a case may need.
type hook string

const (
	hookCorrupt hook = "Data.Corrupt"
	hookFuture  hook = "Data.Future"
	hookBegin   hook = "Data.Begin"
	hookCopy    hook = "Data.Copy"
	hookPlace   hook = "Data.Place"
	hookAdvance hook = "Data.Advance"

	hookRequests hook = "Data.Requests"
)

func (d Data) hooks() map[hook]bool {
	return map[hook]bool{hookCorrupt: d.Corrupt != nil, hookFuture: d.Future != nil, hookBegin: d.Begin != nil, hookCopy: d.Copy != nil, hookPlace: d.Place != "", hookAdvance: d.Advance != nil, hookRequests: d.Requests != nil}
}
