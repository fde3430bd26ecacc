package matching

import (
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// The names of changes are escaped, as in keys.

// Answer returns what the scope was told about a change, if it has asked.
func (rp *Replay) Answer(name string) (yes, asked bool) {
	yes, asked = rp.asked[name]
	return yes, asked
}

// Told keeps what the scope was told about a change.
func (rp *Replay) Told(name string, yes bool) {
	if rp.asked == nil {
		rp.asked = map[string]bool{}
	}
	rp.asked[name] = yes
}

// Marker returns the marker of a change in the history of the scope, nil if there is none.
func (rp *Replay) Marker(name string) *history.Patch {
	if rp.run.Past == nil {
		return nil
	}
	ps := rp.run.Past.Patches[rp.path]
	if i := slices.IndexFunc(ps, func(p *history.Patch) bool { return p.Name == name }); i >= 0 {
		return ps[i]
	}
	return nil
}

// MarkerEvent makes the marker of a change; change is its name as it was given, not
// escaped. The ordinal is that of the call that the marker precedes.
func (rp *Replay) MarkerEvent(name, change string, deprecated bool) store.Event {
	return store.Event{
		Type: store.Patched, Key: history.JoinKey(rp.path, history.PatchPrefix+name, 1), Ordinal: rp.made + 1,
		Data: history.Encode(&history.Marker{Name: change, Deprecated: deprecated}),
	}
}

// unasked returns the first change that has a marker in the history and that the code has
// not asked about so far, nil if there is none.
func (rp *Replay) unasked() *history.Patch {
	if rp.run.Past == nil || rp.run.Past.Patches == nil {
		return nil
	}
	for _, p := range rp.run.Past.Patches[rp.path] {
		if _, asked := rp.asked[p.Name]; !asked && !p.Deprecated {
			return p
		}
	}
	return nil
}

// notAsked returns the difference that the run has taken the new path of a change that
// the code does not know. key is the call before which that was noticed, empty at the end
// of the function.
func (rp *Replay) notAsked(ordinal int, key string, p *history.Patch) *Difference {
	d := rp.difference(ordinal, key)
	d.Change = ChangePatchRemoved
	d.Detail = fmt.Sprintf("The run has gone the new way of durable.Patched(ctx, %q), and this code does not ask for it. Ask for it again, or run code that is the new way alone and has durable.DeprecatePatch(ctx, %q) in its place.", p.Change, p.Change)
	return d
}
