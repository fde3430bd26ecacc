package durable

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/faults"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// item is one element on its way to a worker.
type item[I any] struct {
	n     int
	value I
	hash  string // of the value as it was given; empty: it could not be hashed
	// from is the caller of the Map while it waits for a worker to take the item; nil: it did
	// not wait.
	from *parking
}

// recorded takes the outcome of an item from the history, if it has one; again
// reports whether the item's function must be called nevertheless.
func (m *mapping[I, O]) recorded(n int, v I) (done, again bool, err error) {
	r := m.scope.run
	if r.past == nil {
		return false, false, nil
	}
	ev := r.past.Items[m.call.key][n]
	if ev == nil {
		return false, false, nil
	}
	d, err := history.Of[history.ItemEnd](ev)
	if err == nil && ev.Type == store.ItemFailed && d.Error == nil {
		err = errors.New("its error is not readable")
	}
	if err != nil {
		return false, false, r.damaged(ev.Seq, err)
	}
	if d.Input != "" { // else it failed because it could not be encoded
		hash, err := m.hash(v)
		if err != nil {
			return false, false, err
		}
		if hash.Differs(d.Input) {
			return false, false, m.otherItem(n)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if ev.Type == store.ItemFailed {
		m.failed = append(m.failed, &ItemError{Index: n, Key: ev.Key, Err: r.eng.program.errors.Restore(d.Error), Attempts: max(d.Attempts, 1)})
		m.told(func() { m.miss(n) })
		return true, d.Again, nil
	}
	var out O
	if !payload.DecodeInt(ev.Payload, &out) {
		if recorded, err := r.eng.sealer.DecodeOutcome(payload.PlaceOf(r.id, ev), ev.Payload, &out); err != nil {
			return false, false, r.undecodable(ev.Key, recorded, reflect.TypeFor[O](), err)
		}
	}
	m.told(func() { m.keep(n, out) })
	return true, d.Again, nil
}

// replay calls the function of item n, which has ended, like that of a branch that has ended;
// one at a time, since nothing in it waits.
func (m *mapping[I, O]) replay(n int, v I) {
	inner := m.scope.child(history.ItemKey(m.call.key, n), true, m.call.ordinal, int32(n+1))
	m.scope.replaysAgain()
	m.scope.forked.Add(1)
	defer m.scope.forked.Add(-1)
	ctx := inner.holdBack(m.ctx)
	_ = guard.Call(func() {
		defer m.scope.run.goroutines.end(m.scope.run.goroutines.begin(inner))
		_, _ = m.fn(&scopeContext{Context: ctx, scope: inner}, v)
	})
	inner.replayed()
}

// hash returns the fingerprint that distinguishes items.
func (m *mapping[I, O]) hash(v I) (payload.Fingerprint, error) {
	e := m.scope.run.eng
	f, err := e.sealer.Fingerprint(v, reflect.TypeFor[I](), 8)
	if err != nil {
		return payload.Fingerprint{}, &EncodeError{RunID: m.scope.run.id, Key: m.call.key, Type: reflect.TypeFor[I]().String(), Err: err}
	}
	return f, nil
}

// do runs the function on one item and records the outcome.
func (m *mapping[I, O]) do(it item[I], st *branchGoroutine) {
	var out O
	ok := false
	err := error(ErrGoexit)
	var env []byte
	key := history.ItemKey(m.call.key, it.n)
	inner := m.scope.child(key, false, m.call.ordinal, int32(it.n+1))
	ctx := m.ctx
	st.scope.Store(inner)
	defer func() {
		st.scope.Store(nil)
		inner.noteStop(0)
		if v := recover(); v != nil {
			env, err = nil, guard.Panicked(v)
		}
		if !inner.seat.close() && err == nil {
			ok, env, err = false, nil, inner.concurrent("the end of "+inner.path)
		}
		failure := m.record(key, inner, it, env, err)
		_, failed := failure.(*ItemError)
		inner.trace.End(failure, failure == nil || failed)
		inner.leave()
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.under, it.n)
		m.turn.Broadcast()
		switch {
		case failure == nil && ok:
			m.told(func() { m.keep(it.n, out) })
		case failure != nil:
			if ie, ok := failure.(*ItemError); ok {
				m.failed = append(m.failed, ie)
				m.told(func() { m.miss(it.n) })
			} else if m.stop == nil {
				m.stop = failure
			}
		}
	}()
	// Computed before fn can change what the item points to.
	hash, bad := m.hash(it.value)
	it.hash = hash.Hash
	if bad == nil {
		bad = m.identify(inner, it.n, hash)
	}
	if bad != nil {
		err = bad
		return
	}
	// The span of each item has the name of the Map, because tracing backends group by name.
	ctx = inner.holdBack(inner.trace.Begin(ctx, "item", m.call.name, inner.path, m.span, inner.replay.Empty()))
	var value O
	if value, err = m.fn(&scopeContext{Context: ctx, scope: inner}, it.value); err != nil {
		return
	}
	if env, out, err = payload.Encode(m.scope.run.eng.sealer, m.scope.run.origin.maxPayload, value); err != nil {
		err = Permanent(m.scope.run.refuses(&EncodeError{RunID: m.scope.run.id, Key: key, Type: reflect.TypeFor[O]().String(), Err: err}))
		return
	}
	ok = true
}

// record records the outcome of an item. It returns nil, an *ItemError as a replay will return
// it, or why nothing could be recorded.
func (m *mapping[I, O]) record(key string, inner *scope, it item[I], env []byte, err error) error {
	r := m.scope.run
	if err == nil {
		if err = inner.forgotten(); err != nil {
			env = nil
		}
	}
	if stopped := inner.stopped(); stopped != nil {
		return stopped
	}
	if changed := inner.replay.finish(); changed != nil {
		return changed
	}
	d := &history.ItemEnd{Input: it.hash, Items: len(m.items), Again: inner.mustReplay()}
	ev := store.Event{Type: store.ItemCompleted, Key: key, Ordinal: int32(it.n + 1), Payload: env}
	if err != nil {
		ev.Type = store.ItemFailed
		d.Error = r.eng.program.errors.Record(err)
		if st, ok := faults.Find[*StepError](err); ok {
			d.Attempts = st.Attempt
		}
	}
	ev.Data = history.Encode(d)
	if err := r.write(&commit.Write{Events: []store.Event{ev}}); definite(err) {
		return r.unrecorded(key, err)
	} else if err != nil {
		return err
	}
	if err == nil {
		return nil
	}
	return &ItemError{Index: it.n, Key: key, Err: r.eng.program.errors.Restore(d.Error), Attempts: max(d.Attempts, 1)}
}

// Below, the items of a Map are compared with those in the history, by a hash of each. The
// hash is in the event of the item's outcome and, if the item's function makes durable calls,
// in the first event of its scope. Without the latter, an item in progress could continue with
// what was recorded for another one.

// identify gives the scope of an item the hash to record with its first event or, if that is
// recorded already, compares the two.
func (m *mapping[I, O]) identify(inner *scope, n int, hash payload.Fingerprint) error {
	first := inner.replay.Upcoming()
	if first == nil || first.Fresh {
		inner.preface.item = hash.Hash // again after a reset: a fork does not have what was taken back
	}
	if first == nil {
		return nil
	}
	if was := first.Item; was != "" && hash.Differs(was) {
		return m.otherItem(n)
	}
	return nil
}

// otherItem parks the run, because item n is not the one that was recorded. Matching by name
// does not change that: an item's name is its number.
func (m *mapping[I, O]) otherItem(n int) error {
	return m.scope.replay.changed(ChangeItems, &m.call, fmt.Sprintf("Item %d of %s is another one than was recorded: the items must be the same, in the same order, whenever the code runs again.", n, m.call.key))
}

// verify compares the items of a slice with what was recorded, before any of them
// is begun.
func (m *mapping[I, O]) verify(in []I) error {
	p := m.scope.run.past
	if p == nil || m.call.rec == nil {
		return nil
	}
	if err := m.count(len(in)); err != nil {
		return err
	}
	outcomes := p.Items[m.call.key]
	for n := range min(len(in), p.MostItems(m.call.key)) {
		was := ""
		if ev := outcomes[n]; ev != nil {
			d, err := history.Of[history.ItemEnd](ev)
			if err != nil {
				return m.scope.run.damaged(ev.Seq, err)
			}
			was = d.Input
		} else if hist := p.Scopes[history.ItemKey(m.call.key, n)]; len(hist) > 0 {
			was = hist[0].Item
		}
		if was == "" {
			continue
		}
		hash, err := m.hash(in[n])
		if err != nil {
			return err
		}
		if hash.Differs(was) {
			return m.otherItem(n)
		}
	}
	return nil
}

// count checks the number of items. Without it, items added after those of a Map that has
// ended, and items that were removed, would be left out silently.
func (m *mapping[I, O]) count(total int) error {
	r := m.scope.run
	if r.past == nil {
		return nil
	}
	if m.call.done() {
		d, err := history.Of[history.StepEnd](&m.call.rec.Outcome)
		if err != nil {
			return r.damaged(m.call.rec.Outcome.Seq, err)
		}
		switch {
		case d.Items == total:
		case !r.matching.ByName || m.window:
			return m.scope.replay.changed(ChangeItems, &m.call, fmt.Sprintf("%s had %s and has %d now.", m.call.key, count.Of(d.Items, "item"), total))
		case d.Items < total:
			again := *m.call.rec // treated as not ended, since there is more to do
			again.Outcome = store.Event{}
			m.call.rec = &again
		}
	}
	recorded := r.past.MostItems(m.call.key)
	if recorded <= total {
		return nil
	}
	if !r.matching.ByName {
		return m.scope.replay.changed(ChangeItems, &m.call, fmt.Sprintf("%s had at least %s and has %d now.", m.call.key, count.Of(recorded, "item"), total))
	}
	var gone []string
	for n := total; n < recorded; n++ {
		gone = append(gone, history.ItemKey(m.call.key, n))
	}
	m.scope.replay.noteUncalled(gone)
	return nil
}
