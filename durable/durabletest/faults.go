package durabletest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A Harm is what happens to a call of a store.
type Harm string

// The harms.
const (
	// LostBefore: the call is not carried out, and its answer is lost.
	LostBefore Harm = "lost before"
	// LostAfter: it is carried out, and its answer is lost.
	LostAfter Harm = "lost after"
	// Refused: it is not carried out, because there is no connection.
	Refused Harm = "refused"
	// Slow: it is carried out after Fault.For, unless its context ends before.
	Slow Harm = "slow"
	// SlowAnswer: it is carried out at once, and answers after Fault.For.
	SlowAnswer Harm = "slow answer"
	// Cut: there is no connection for Fault.For, from this call on.
	Cut Harm = "cut"
)

// A Fault harms calls of a store. Its conditions are those that are set; all of them must hold.
type Fault struct {
	Do  Harm
	For time.Duration // that Slow, SlowAnswer and Cut take
	// On is the call that it harms: "commit", "claim", "beat", "load", "list", "count", "delete",
	// "executors", "queues", "schedules", "requests", "transaction" (the beginning of one) or
	// "commit in transaction". Empty: every call.
	On string
	// Step is the name, or key, of a durable call: only those commits are meant that record
	// something of it.
	Step string
	// Nth is which of these calls is meant, from 1; 0: all of them.
	Nth int
	// Chance is the part of these calls that is meant, as Seed chooses: the same seed chooses the
	// same numbers. 0: all of them.
	Chance float64
	Seed   uint64
}

// callsOfStore are what Fault.On may name.
var callsOfStore = []string{
	"commit", "claim", "beat", "load", "list", "count", "delete", "executors", "queues", "schedules", "requests", "transaction", inTransaction,
}

// inTransaction is the call that commits with a transaction.
const inTransaction = "commit in transaction"

// wrong says why the fault can never happen as it is meant; empty: it can.
func (w *Fault) wrong() string {
	switch {
	case !slices.Contains([]Harm{LostBefore, LostAfter, Refused, Slow, SlowAnswer, Cut}, w.Do):
		return fmt.Sprintf("Do is %q, which is none of the harms", w.Do)
	case w.On != "" && !slices.Contains(callsOfStore, w.On):
		return fmt.Sprintf("On is %q, and the calls are %s", w.On, strings.Join(callsOfStore, ", "))
	case w.Step != "" && w.On != "" && w.On != "commit" && w.On != inTransaction:
		return fmt.Sprintf("a %s records nothing of step %q", w.On, w.Step)
	}
	return ""
}

// errNoConnection is the answer of a store that cannot be reached.
var errNoConnection = errors.New("durabletest: no connection to the store")

// Faults wraps a store so that these faults happen to its calls: the program sees a bad night. A
// call is harmed by the first fault whose conditions hold. The other abilities of the store stay, but
// for store.LateCommitter and store.RunKinds, without which an engine does the same in other ways.
//
// What the engine promises holds all the same: an outcome whose commit is lost is recorded once, and
// a process that is cut off for longer than its lease loses its runs to another one. To cut one of
// two processes off, give each a handle on the same data, and one of them Faults.
//
// It panics if a fault names no harm or no call that there is: the fault would never happen, and the
// test would say nothing.
func Faults(s store.Store, faults ...Fault) *FaultStore {
	for i := range faults {
		if wrong := faults[i].wrong(); wrong != "" {
			panic(fmt.Sprintf("durabletest.Faults: fault %d: %s", i+1, wrong))
		}
	}
	f := &FaultStore{Store: s, faults: slices.Clone(faults)}
	f.met = make([]int, len(faults))
	return f
}

// A FaultStore is a store with faults. See Faults.
type FaultStore struct {
	store.Store
	faults []Fault

	mu       sync.Mutex
	met      []int // how many calls the conditions of each fault have held for, but for Nth and Chance
	down     bool
	until    time.Time // there is no connection until then
	happened []string
}

// Cut takes the connection away until Heal.
func (f *FaultStore) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = true
}

// Heal gives the connection back.
func (f *FaultStore) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down, f.until = false, time.Time{}
}

// Happened returns the faults that have happened, in order: "lost after: commit step_completed charge of order-42".
func (f *FaultStore) Happened() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.happened)
}

// cut reports whether there is no connection.
func (f *FaultStore) cut() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.down || time.Now().Before(f.until)
}

// at returns the fault that happens to a call, nil for none.
func (f *FaultStore) at(call string, batch []store.Change) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	var first *Fault
	for i := range f.faults {
		w := &f.faults[i]
		if w.On != "" && w.On != call || w.Step != "" && !records(batch, w.Step) {
			continue
		}
		f.met[i]++
		if w.Nth != 0 && w.Nth != f.met[i] || w.Chance != 0 && !chosen(w.Seed, i, f.met[i], w.Chance) {
			continue
		}
		if first == nil {
			first = w
		}
	}
	if first == nil {
		return nil
	}
	f.happened = append(f.happened, fmt.Sprintf("%s: %s%s", first.Do, call, said(batch)))
	if first.Do == Cut {
		f.until = time.Now().Add(first.For)
	}
	return first
}

// chosen reports whether the n-th call of a fault is among those that happen.
func chosen(seed uint64, fault, n int, chance float64) bool {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %d %d", seed, fault, n)
	const most = 1 << 30
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd // or near numbers have near hashes
	x ^= x >> 33
	return float64(x%most) < chance*most
}

// records reports whether a batch records something of a durable call.
func records(batch []store.Change, step string) bool {
	for i := range batch {
		for j := range batch[i].Events {
			if key := batch[i].Events[j].Key; key == step || key != "" && nameOf(key) == history.EscapeName(step) {
				return true
			}
		}
	}
	return false
}

// said names what a batch records.
func said(batch []store.Change) (text string) {
	for i := range batch {
		for j := range batch[i].Events {
			e := &batch[i].Events[j]
			text += " " + string(e.Type)
			if e.Key != "" {
				text += " " + e.Key
			}
		}
		text += " of " + batch[i].RunID
	}
	return text
}

// call makes a call, or lets a fault happen to it. forward returns an error that concerns the call
// as a whole.
func (f *FaultStore) call(ctx context.Context, name string, batch []store.Change, forward func() error) error {
	if f.cut() {
		return errNoConnection
	}
	fault := f.at(name, batch)
	if fault == nil {
		return forward()
	}
	switch fault.Do {
	case LostBefore:
		return fmt.Errorf("durabletest: the answer is lost: %w", store.ErrUnknown)
	case LostAfter:
		_ = forward()
		return fmt.Errorf("durabletest: the answer is lost: %w", store.ErrUnknown)
	case Slow:
		if err := stand(ctx, fault.For); err != nil {
			return err
		}
	case SlowAnswer:
		err := forward()
		if ended := stand(ctx, fault.For); ended != nil {
			return fmt.Errorf("%w: %w", store.ErrUnknown, ended)
		}
		return err
	default:
		return errNoConnection
	}
	return forward()
}

// stand waits, or until the context ends.
func stand(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// asked is call for a method with one result.
func asked[T any](ctx context.Context, f *FaultStore, name string, forward func() (T, error)) (T, error) {
	var got, none T
	err := f.call(ctx, name, nil, func() (err error) {
		got, err = forward()
		return err
	})
	if err != nil {
		return none, err
	}
	return got, nil
}
