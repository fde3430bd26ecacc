package store

import (
	"context"
	"fmt"
	"iter"
)

// Store keeps runs. All methods may be called concurrently, by many processes
// on the same data. A method returns promptly when its context ends; what it
// had begun to write is then written completely or not at all (S18).
//
// Methods return the errors of this package, wrapped or as types. Any other error
// means that the backend could not be reached or is broken; the same call may be
// made again.
type Store interface {
	// Commit carries out a batch and returns one error per Change, in order:
	// nil once the Change is durable (S4). It never panics and never returns
	// fewer errors than Changes.
	//
	// S1 A Change happens as a whole or not at all, Send and Start included.
	// S2 Changes of a batch are independent: a failed Change does not affect the
	// others. A batch holds at most one Change per RunID (ErrInvalid for the
	// second), shares one durable commit, and may be empty.
	// S3 Events are accepted only when the event before the first of them
	// exists and carries Expect.Epoch; otherwise ErrFenced. So the log has no
	// gap, and a replaced owner cannot write.
	// S4 When Commit returned nil, the Change survives the end of the process
	// and, in the backend's durable mode, of the machine; every later read,
	// through any handle, sees it.
	// S5 After a Yield nothing can be appended with the epoch before it.
	// S6 A Change that was already carried out (its last event is in the log with
	// the same epoch and sum) returns nil again and changes nothing, so it is safe
	// to send a batch again. A Create whose first event equals the stored one
	// counts as carried out.
	// S7 When the outcome cannot be known (the reply was lost), the error
	// wraps ErrUnknown; the caller sends the very same Change again until it gets
	// any other answer.
	// S8 A run that does not exist gives ErrNotFound; one that exists where
	// Absent was expected, *ExistsError.
	// S9 A status may only follow another as MayFollow says: *StatusError.
	// S10 A row-only Change is accepted only while the row has Expect.Epoch,
	// and Expect.Inbox where that is set: ErrFenced.
	// S11 Exclusive keys are held by one run at a time: *OccupiedError. Delete
	// frees them too.
	// S12 Dedup: while an unfinished run of the same queue has the same
	// non-empty Dedup, a Create fails with *ExistsError naming that run.
	//
	// S13 Messages are numbered per receiver from 1 in commit order without a
	// gap, raise Run.Inbox, and lower Run.ArchivedSeq to 1 at most.
	// S14 A message whose receiver already has one of the same Kind and ID is
	// dropped and the Change succeeds, even when the receiver has ended since.
	// S15 A message of KindCancel sets Run.CancelAsked, and clears the WakeAt of a
	// Pending run: what will execute nothing waits for no time. A message to a run that
	// does not exist fails the Change with ErrNotFound, to a run that ended
	// with *StatusError, unless IfLive.
	//
	// S42 A store that fills in Change.Sent sets each number to the Seq that the message
	// has got in the inbox of its receiver by this Commit, and to 0 where it got none: it
	// was dropped, or the Change had been carried out before. A store need not fill it in;
	// the numbers are then as the caller passed them. They say nothing if Commit returned
	// an error for the Change. Only the Sent of a Change is written to; callers that share a
	// Change leave it nil.
	//
	// S24 UpdatedAt belongs to the store: it is the time, by the store's clock, of
	// the last act that changed the row. Such acts are the creation, a Change with
	// Row, Yield or TakeEpoch, a message, and a claim. It never goes back. A plain
	// checkpoint leaves the row as it is, including UpdatedAt.
	// S25 In a Change, Release comes before Hold: what is held afterwards is what
	// Hold lists.
	// S26 A Branch whose N the run has already is refused with ErrInvalid.
	//
	// A cancelled context makes Commit give up before it writes; once it has begun
	// to write it finishes, whatever the context says.
	Commit(ctx context.Context, batch []Change) []error

	// Load reads a run: its row, branches, inbox and events, all as of one moment.
	// ErrNotFound if there is none. Events are read while History.Events is ranged
	// over, in order of Seq, and end with Run.Last: events committed later are not
	// among them, however late the range runs. What was committed before Load was
	// called is never missing: if the run was deleted meanwhile and some events
	// are gone, the range ends with ErrNotFound.
	//
	// S17 What a store returns is the caller's to keep: neither later rows nor
	// later calls overwrite it. What a caller passes in belongs to the caller again
	// when the call has returned: the store keeps none of its slices and maps.
	//
	// S27 The row, its attributes and Last, the branches, the inbox and the events
	// are as of one moment: later commits add nothing. Events may be ranged over
	// while others, or the same goroutine, write; that blocks no writer. Breaking
	// out of the range frees what it held. It never ends early in silence: if the
	// rest cannot be read, such as when the run was deleted, the context ended or
	// the store was closed meanwhile, the last thing it yields is an error.
	Load(ctx context.Context, runID string, c Cursor) (*History, error)

	// List returns a page of runs, each with its attributes, and with Last if
	// requested, as of one moment (S27).
	//
	// S16 Pages are stable: a run that exists during the whole listing and does
	// not change is returned exactly once, whatever is inserted or deleted
	// meanwhile.
	List(ctx context.Context, f Filter) (Page, error)

	// Count counts the runs that match by the value of a field (ByStatus, ...);
	// S28 With by == "" the only key is "", also when no run matches. A value that
	// no run has is absent or 0. Limit and After are ignored.
	Count(ctx context.Context, f Filter, by string) (map[string]int64, error)

	// Claim takes runs for an executor, which must be live (ErrNotFound if it
	// never beat, or its lease has expired). For each run, in one transaction: the
	// epoch grows by one, the owner becomes the executor, one event with the new
	// epoch is appended on the current branch (WorkflowStarted for a pending run,
	// RunClaimed for a waiting one, RunResumed otherwise) and the status becomes
	// Running, stays Waiting, or becomes Resuming, respectively. Resumes grows
	// with RunResumed; StartedAt is set with WorkflowStarted.
	//
	// The rows come back as they are after the claim, with Last set to that
	// event, whose Steps and Active continue the event before. No run is
	// returned to two callers (S19), and a run with a live owner never (S20).
	// Only runs of Serves are taken, and none that Claim.Spare names. Nothing else of the row changes but
	// UpdatedAt.
	//
	// S32 An error comes without runs, and yet some may have been taken. Each of
	// these is claimed completely, as if it had been returned: it belongs to the
	// executor, List by Owner finds it, and no other executor gets it while this
	// one lives (S20). A later Claim of the executor may return it, once, as it
	// was taken, and does not take it again.
	//
	// S41 What Claim.Created hands over is the only event that the run's log had, of a run
	// that the claim returns and that has neither messages nor branches.
	//
	// S21 Strikes, after a claim of a run that was Running or Resuming, is one
	// more than before if its last event was a claim event, else 1; after any
	// other claim it is 0.
	// S29 Times in a log never go back: the event of a claim is no older than the
	// event before it, nor than the WakeAt that has come, whatever Claim.At says.
	// Commit keeps times as given.
	// S22 Epochs of a run id are never reused, even when the run was deleted and
	// created again later.
	Claim(ctx context.Context, c Claim) ([]Run, error)

	// Beat records that an executor lives, from now for its Lease, judged by
	// the store's clock (S20). The first beat registers it.
	//
	// S30 In the Pulse of a leaving beat only Now and Late are meaningful, and
	// Mail is empty. The record of an executor is removed when it leaves, and may
	// be removed when it is dead and owns no unfinished run; until then Executors
	// lists it and Gone names it.
	Beat(ctx context.Context, e Executor) (Pulse, error)

	// Executors lists the registered executors, oldest first.
	Executors(ctx context.Context) ([]Executor, error)

	// Delete removes whole runs with all that belongs to them, in one
	// transaction, and returns how many it removed. It skips ids that do not
	// exist. It fails and removes nothing with *StatusError for a run that has not
	// ended, unless Force is set; with ErrFenced for a run whose epoch differs
	// from the expected one, so that it removes neither a run that was acted on
	// since nor a new run under an old id; and with *OwnedError for a run with a
	// live owner, even with Force.
	Delete(ctx context.Context, d Deletion) (int, error)

	// Limits of what Commit accepts.
	Limits() Limits

	// Close frees what the store holds and waits for what it started. Later calls
	// return ErrClosed (S23); a second Close returns nil.
	Close() error
}

// History is what Load returns.
type History struct {
	Run      Run // with Last set
	Branches []Branch
	Inbox    []Message
	// Events yields the requested events. It ends after an error. It may be ranged
	// over more than once, and holds no resources in between (S17).
	Events iter.Seq2[Event, error]
}

// Deletion says what Delete removes.
type Deletion struct {
	RunIDs []string
	// Epochs are the expected epochs, one for each of RunIDs. Nil: any.
	Epochs []int64
	// Force also removes runs that have not ended.
	Force bool
}

// Expects returns an error that matches ErrFenced unless epoch, that of RunIDs[i],
// is the expected one. For use by stores.
func (d *Deletion) Expects(i int, epoch int64) error {
	if d.Epochs == nil || d.Epochs[i] == epoch {
		return nil
	}
	return fmt.Errorf("run %q has epoch %d and not %d: %w", d.RunIDs[i], epoch, d.Epochs[i], ErrFenced)
}

// Check returns an error that matches ErrInvalid if d makes no sense.
func (d *Deletion) Check() error {
	if d.Epochs != nil && len(d.Epochs) != len(d.RunIDs) {
		return fmt.Errorf("store: a deletion with %d ids and another number of epochs, %d: %w", len(d.RunIDs), len(d.Epochs), ErrInvalid)
	}
	return nil
}

// Limits bound what a store accepts, in bytes unless stated otherwise.
type Limits struct {
	Payload int // of one event's or message's Payload or Data
	Batch   int // of a Change; also the largest useful total of a batch
	Changes int // largest useful number of Changes in a batch
}

// DefaultLimits returns the limits of this module's backends: 16 MiB per payload,
// 64 MiB per change, 512 changes per batch.
func DefaultLimits() Limits {
	return Limits{Payload: 16 << 20, Batch: 64 << 20, Changes: 512}
}
