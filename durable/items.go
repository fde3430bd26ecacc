package durable

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// What the history knows of the items of a Map, and how other items than were
// recorded are noticed: by a hash of each, which stands in the event of its
// outcome and, for an item whose function makes durable calls, in the first event
// of its scope. Without the latter an item that was under way could go on with
// what was recorded for another one.

func addMember(ev *store.Event, begin string, value any) {
	member := append([]byte(begin), mustJSON(value)...)
	if len(ev.Data) > 0 {
		member = append(append(member, ','), ev.Data[1:]...)
	} else {
		member = append(member, '}')
	}
	ev.Data = member
}

// mustJSON returns a string, a bool, a list of strings, or a map of numbers, as JSON, which never fails.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("durable: %T cannot be encoded: %v", v, err))
	}
	return b
}

// identify gives the scope of an item the item's hash: to be recorded with its
// first event or, when that is recorded, to be compared with.
func (m *mapping[I, O]) identify(inner *scope, n int, hash payload.Fingerprint) error {
	if len(inner.replay.hist) == 0 {
		inner.preface.item = hash.Hash
		return nil
	}
	if was := inner.replay.hist[0].Item; was != "" && hash.Differs(was) {
		return m.otherItem(n)
	}
	return nil
}

// otherItem parks the run: item n is not the one that was recorded. Matching by
// name does not change that: an item's name is its number.
func (m *mapping[I, O]) otherItem(n int) error {
	return m.scope.replay.changed(EditItems, int(m.call.ordinal), m.call.key, fmt.Sprintf("Item %d of %s is another one than was recorded: the items must be the same, in the same order, whenever the code runs again.", n, m.call.key))
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
			d, err := history.DataOf(ev)
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

// count checks how many items there are. Items behind those of a Map that has
// ended, and ones that are gone, would be left out without a word.
func (m *mapping[I, O]) count(total int) error {
	r := m.scope.run
	if r.past == nil {
		return nil
	}
	if m.call.done() {
		d, err := history.DataOf(&m.call.rec.Outcome)
		if err != nil {
			return r.damaged(m.call.rec.Outcome.Seq, err)
		}
		switch {
		case d.Items == total:
		case !r.matching.byName || m.window:
			return m.scope.replay.changed(EditItems, int(m.call.ordinal), m.call.key, fmt.Sprintf("%s had %d items and has %d now.", m.call.key, d.Items, total))
		case d.Items < total:
			again := *m.call.rec // it has not ended: there is more to do
			again.Outcome = store.Event{}
			m.call.rec = &again
		}
	}
	recorded := r.past.MostItems(m.call.key)
	if recorded <= total {
		return nil
	}
	if !r.matching.byName {
		return m.scope.replay.changed(EditItems, int(m.call.ordinal), m.call.key, fmt.Sprintf("%s had at least %d items and has %d now.", m.call.key, recorded, total))
	}
	var gone []string
	for n := total; n < recorded; n++ {
		gone = append(gone, history.ItemKey(m.call.key, n))
	}
	r.matching.noteUncalled(m.scope.path, gone)
	return nil
}
