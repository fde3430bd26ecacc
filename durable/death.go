package durable

import (
	"errors"
	"reflect"
	"runtime"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/envelope"
)

// A death is why a run makes no further durable calls in this process.
type death struct {
	kind   deathKind
	code   string // parked: Code of the row
	err    error  // what every durable call returns from now on
	reason string // parked: Reason of the row; empty: err
	calls  atomic.Int32
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
	// A run that is being stopped and turns out to be lost is lost.
	if old := r.dead.Load(); d.kind == deathLost && old.kind != deathLost && r.dead.CompareAndSwap(old, d) {
		r.cancel(d.err)
	}
	return r.dead.Load().err
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
