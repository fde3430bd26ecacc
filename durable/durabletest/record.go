package durabletest

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A record is what the store holds of a run, as far as it is compared.
type record struct {
	row    store.Run
	events []store.Event // of the current lineage
	calls  []call
	output durable.Payload
}

// A call is the outcome of one durable call.
type call struct {
	key     string
	ordinal int32
	kind    store.Type
	payload []byte
}

func (c *call) String() string { return strings.ReplaceAll(string(c.kind), "_", " ") }

// compared are the events that must be the same however often the process has
// ended: outcomes, not attempts or claims.
var compared = map[store.Type]bool{
	store.StepCompleted: true, store.StepFailed: true,
	store.SignalReceived: true, store.WaitTimedOut: true, store.TimerFired: true,
	store.ChildStarted: true, store.ChildFinished: true, store.ItemCompleted: true, store.ItemFailed: true, store.FirstWon: true,
	store.Compensated: true, store.Patched: true, store.Published: true, store.WorkflowContinued: true,
}

// recordOf reads a run. eng opens the payloads; it need not be one that has
// executed the run.
func recordOf(ctx context.Context, eng *durable.Engine, s store.Store, id string) (*record, error) {
	h, err := s.Load(ctx, id, store.Cursor{})
	if err != nil {
		return nil, err
	}
	r := &record{row: h.Run}
	for ev, err := range h.Events {
		if err != nil {
			return nil, err
		}
		r.events = append(r.events, ev)
		if !compared[ev.Type] && ev.Type != store.WorkflowCompleted {
			continue
		}
		p, err := eng.Payload(id, ev)
		if err != nil {
			return nil, err
		}
		if ev.Type == store.WorkflowCompleted {
			r.output = p
			continue
		}
		r.calls = append(r.calls, call{key: ev.Key, ordinal: ev.Ordinal, kind: ev.Type, payload: p.Data})
	}
	return r, nil
}

// outcome says how the run ended, for people.
func (r *record) outcome() string {
	switch r.row.Status {
	case store.Completed:
		return "completed with " + short(r.output.String())
	case store.Failed, store.Cancelled:
		return fmt.Sprintf("%s: %s", r.row.Status, short(r.row.Reason))
	}
	return fmt.Sprintf("%s (%s): %s", r.row.Status, r.row.Code, r.row.Reason)
}

func short(s string) string {
	const most = 500
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// sameOutcome reports whether two runs came to the same.
func sameOutcome(a, b *record) bool {
	return a.row.Status == b.row.Status && a.row.Code == b.row.Code && a.row.Reason == b.row.Reason && bytes.Equal(a.output.Data, b.output.Data)
}

// otherCall describes the first call by which two runs differ, or is empty. In
// which order branches come to their outcomes does not count, and neither does
// what was returned.
func otherCall(want, got *record) string {
	type id struct {
		key  string
		kind store.Type
	}
	index := func(calls []call) map[id]int32 {
		m := make(map[id]int32, len(calls))
		for i := range calls {
			m[id{calls[i].key, calls[i].kind}] = calls[i].ordinal
		}
		return m
	}
	wanted, had := index(want.calls), index(got.calls)
	for _, c := range want.calls {
		at, ok := had[id{c.key, c.kind}]
		if !ok {
			now := ""
			for _, g := range got.calls {
				if _, known := wanted[id{g.key, g.kind}]; !known && g.ordinal == c.ordinal {
					now = fmt.Sprintf("; call %d is %q (%s) now", g.ordinal, g.key, g.String())
					break
				}
			}
			return fmt.Sprintf("call %d, %q (%s), of the undisturbed run is missing%s", c.ordinal, c.key, c.String(), now)
		}
		if at != c.ordinal {
			return fmt.Sprintf("%q is call %d of the undisturbed run and call %d now", c.key, c.ordinal, at)
		}
	}
	for _, c := range got.calls {
		if _, ok := wanted[id{c.key, c.kind}]; !ok {
			return fmt.Sprintf("call %d, %q (%s), is none of the undisturbed run", c.ordinal, c.key, c.String())
		}
	}
	return ""
}

// otherResult names the first step, in the order of the undisturbed run, that has
// returned something else, or is empty.
func otherResult(want, got *record) string {
	results := map[string][]byte{}
	for _, c := range got.calls {
		results[c.key] = c.payload
	}
	for _, c := range want.calls {
		if p, ok := results[c.key]; ok && c.kind == store.StepCompleted && !bytes.Equal(p, c.payload) {
			return fmt.Sprintf("step %q returned %s in the undisturbed run and %s now", c.key, short(string(c.payload)), short(string(p)))
		}
	}
	return ""
}
