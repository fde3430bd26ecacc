package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A death is why a run makes no further durable calls in this process.
type death struct {
	kind   deathKind
	code   string // parked: Code of the row
	err    error  // what every durable call returns from now on
	reason string // parked: Reason of the row; empty: err
	calls  atomic.Int32
	// stuck: a run that is being paused met what would have parked it. What its bodies return from
	// then on may come of that; it is no outcome, and they run again once the run goes on.
	stuck atomic.Bool
}

type deathKind int

const (
	deathLost     deathKind = iota // another executor has it: write nothing
	deathShutdown                  // the engine closes: record an interruption
	deathParked                    // it cannot go on with this code or data: record an interruption with a code
	deathUnloaded                  // it only waits: write nothing, and load it again when something happens
	deathPaused                    // a pause was asked for: running bodies end and are recorded
	deathRenewed                   // it continues with a new input: only that is still written
)

// patience is how many durable calls a dead run may still make before its
// goroutine is ended: a loop that ignores errors would never return.
const patience = 64

// alive returns nil, or the error that a durable call must return because the
// run is dead.
func (r *run) alive() error {
	d := r.dead.Load()
	if d == nil {
		return nil
	}
	if d.calls.Add(1) > patience {
		runtime.Goexit()
	}
	return d.err
}

// deathOf returns the error by which r is dead, nil if it is alive.
func (r *run) deathOf() error {
	if d := r.dead.Load(); d != nil {
		return d.err
	}
	return nil
}

// die makes r dead, once, and returns the error of the death that counts.
func (r *run) die(d *death) error {
	if r.dead.CompareAndSwap(nil, d) {
		close(r.gone)
		if d.kind == deathLost {
			r.cancel(d.err)
		}
		return d.err
	}
	// A run that is being stopped and turns out to be lost is lost, and one that is being renewed and
	// cannot be is parked.
	old := r.dead.Load()
	switch {
	case d.kind == deathLost && old.kind != deathLost && r.dead.CompareAndSwap(old, d):
		r.cancel(d.err)
	case d.kind == deathParked && old.kind == deathRenewed:
		r.dead.CompareAndSwap(old, d)
	case d.kind == deathParked && old.kind == deathPaused:
		old.stuck.Store(true)
	}
	return r.dead.Load().err
}

// endedHere says that code that kept the context of a run can make no further call with it.
func endedHere(id string) *death {
	return &death{kind: deathLost, err: fmt.Errorf("%w: run %s has ended here", ErrOutsideRun, id)}
}

// unloaded reports whether r has made way for a later execution in this process.
func (r *run) unloaded() bool {
	d := r.dead.Load()
	return d != nil && d.kind == deathUnloaded
}

// damaged parks r, because the event with this number (0: unknown) cannot be
// believed, and returns the error for the call that found it.
func (r *run) damaged(seq int64, err error) error {
	return r.die(&death{kind: deathParked, code: CodeDamaged, err: &DamagedError{RunID: r.id, Seq: seq, Err: err}})
}

// unrecorded parks r, because the store, or the user's code, has prevented the
// outcome of a call from being recorded, and returns the error for the caller.
func (r *run) unrecorded(key string, err error) error {
	return r.die(&death{kind: deathParked, code: CodeUnrecorded, err: &UnrecordedError{RunID: r.id, Key: key, Err: err}})
}

// refuses returns the error of a call whose value cannot be encoded. If a key is
// missing, the run is parked: it can go on once there is one.
func (r *run) refuses(e *EncodeError) error {
	if errors.Is(e.Err, ErrNoKey) {
		return r.unrecorded(e.Key, e.Err)
	}
	return e
}

// undecodable parks r, because a recorded value cannot be read as the type that
// is wanted, and returns the error for the call that found it.
// wanted is nil where it is not known yet.
func (r *run) undecodable(key, recorded string, wanted reflect.Type, err error) error {
	und := &UndecodableError{RunID: r.id, Key: key, Recorded: recorded, Err: err}
	if wanted != nil {
		und.Wanted = wanted.String()
	}
	return r.die(&death{kind: deathParked, code: codeOfDecode(err), err: und})
}

// codeOfDecode distinguishes damaged data from data of another format or type.
func codeOfDecode(err error) string {
	if errors.Is(err, envelope.ErrDamaged) {
		return CodeDamaged
	}
	return CodeUndecodable
}

// ErrNoHistory: only the row of the run is left. There is nothing from which it could be
// resumed or repaired. Delete the row, and then import a copy of the run.
var ErrNoHistory = history.ErrNoHistory

// DamagedError says that a run's history cannot be believed.
type DamagedError struct {
	RunID string
	Seq   int64 // of the event; 0: unknown
	Err   error
}

func (e *DamagedError) Error() string {
	if errors.Is(e.Err, ErrNoHistory) {
		return fmt.Sprintf("run %s is damaged: %v", e.RunID, e.Err)
	}
	if e.Seq == 0 {
		return fmt.Sprintf("run %s is damaged: %v. It stays as it is until it is repaired", e.RunID, e.Err)
	}
	return fmt.Sprintf("run %s: event %d is damaged: %v. Nothing after it is believed; the run stays as it is until it is repaired", e.RunID, e.Seq, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// Is matches store.ErrCorrupt.
func (e *DamagedError) Is(target error) bool { return target == store.ErrCorrupt }

type damagedErrorJSON struct {
	RunID string
	Seq   int64
	Err   string
}

// MarshalJSON encodes the error, so that it is found again where it was recorded.
func (e *DamagedError) MarshalJSON() ([]byte, error) {
	return json.Marshal(damagedErrorJSON{e.RunID, e.Seq, fmt.Sprint(e.Err)})
}

// UnmarshalJSON reads what MarshalJSON has written; of Err it keeps the message.
func (e *DamagedError) UnmarshalJSON(b []byte) error {
	var j damagedErrorJSON
	err := json.Unmarshal(b, &j)
	*e = DamagedError{RunID: j.RunID, Seq: j.Seq, Err: errors.New(j.Err)}
	return err
}

// UnrecordedError says that the outcome of a durable call could not be recorded,
// although the store could be reached. Nothing after the call could be recorded either,
// so the run is parked: a resume makes the call again.
type UnrecordedError struct {
	RunID string
	Key   string // of the call
	Err   error
}

func (e *UnrecordedError) Error() string {
	return fmt.Sprintf("run %s: the outcome of %s is not recorded: %s. The run is parked; find the cause, then resume it", e.RunID, e.Key, e.Err)
}

func (e *UnrecordedError) Unwrap() error { return e.Err }

type unrecordedErrorJSON struct{ RunID, Key, Err string }

// MarshalJSON encodes the error, so that it is found again where it was recorded.
func (e *UnrecordedError) MarshalJSON() ([]byte, error) {
	return json.Marshal(unrecordedErrorJSON{e.RunID, e.Key, fmt.Sprint(e.Err)})
}

// UnmarshalJSON reads what MarshalJSON has written; of Err it keeps the message, and what it
// wraps is recorded beside it.
func (e *UnrecordedError) UnmarshalJSON(b []byte) error {
	var j unrecordedErrorJSON
	err := json.Unmarshal(b, &j)
	*e = UnrecordedError{RunID: j.RunID, Key: j.Key, Err: errors.New(j.Err)}
	return err
}
