package durabletest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A record is the part of a run in the store that is compared.
type record struct {
	row    store.Run
	events []store.Event // of the current lineage
	calls  []call
	output operate.Payload
}

// A call is the outcome of one durable call.
type call struct {
	key     string
	ordinal int32
	kind    store.Type
	payload []byte
	at      store.Time
	branch  bool // outcome of durable.Go
	unknown bool // a Once that a crash left without an outcome
}

func (c *call) String() string { return strings.ReplaceAll(string(c.kind), "_", " ") }

// compared holds the events that must be the same however often the process has
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
		p, err := operate.On(eng).Payload(id, ev)
		if err != nil {
			return nil, err
		}
		if ev.Type == store.WorkflowCompleted {
			r.output = p
			continue
		}
		c := call{key: ev.Key, ordinal: ev.Ordinal, kind: ev.Type, payload: p.Data, at: ev.At}
		switch ev.Type {
		case store.StepCompleted:
			c.branch = bytes.Contains(ev.Data, []byte(`"kind":"branch"`))
		case store.FirstWon:
			c.payload = ev.Data // who
		case store.StepFailed:
			c.branch = bytes.Contains(ev.Data, []byte(`"kind":"branch"`))
			c.unknown = bytes.Contains(ev.Data, []byte("durable.UnknownOutcomeError"))
		}
		r.calls = append(r.calls, c)
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

// sameOutcome reports whether two runs had the same outcome.
func sameOutcome(a, b *record) bool {
	return a.row.Status == b.row.Status && a.row.Code == b.row.Code && a.row.Reason == b.row.Reason && bytes.Equal(a.output.Data, b.output.Data)
}

// callID identifies a call of a run. A step has one outcome: if it failed where it
// completed before, that is a different result, not a different call.
type callID struct {
	key  string
	kind store.Type
}

func (c *call) id() callID {
	switch c.kind {
	case store.StepFailed:
		return callID{c.key, store.StepCompleted}
	case store.WaitTimedOut:
		return callID{c.key, store.SignalReceived}
	case store.ItemFailed:
		return callID{c.key, store.ItemCompleted}
	}
	return callID{c.key, c.kind}
}

// raced reports whether durable.First was called. How far the losing branches got is
// left to chance.
func (r *record) raced() bool {
	return slices.ContainsFunc(r.calls, func(c call) bool { return c.kind == store.FirstWon })
}

// byChance reports whether a call need not be made again because there was a race:
// it is a branch, or in one.
func (c *call) byChance(raced bool) bool {
	return raced && (c.branch || strings.Contains(c.key, "/"))
}

func index(calls []call) map[callID]*call {
	m := make(map[callID]*call, len(calls))
	for i := range calls {
		m[calls[i].id()] = &calls[i]
	}
	return m
}

// otherCall describes the first call by which two runs differ, or is empty. The order
// in which branches reach their outcomes does not count, and neither do the results.
func otherCall(want, got *record) string {
	wanted, had := index(want.calls), index(got.calls)
	raced := want.raced() || got.raced()
	for _, c := range want.calls {
		g := had[c.id()]
		if c.byChance(raced) {
			continue
		}
		if g == nil {
			now := ""
			for _, g := range got.calls {
				if wanted[g.id()] == nil && g.ordinal == c.ordinal {
					now = fmt.Sprintf("; call %d is %q (%s) now", g.ordinal, g.key, g.String())
					break
				}
			}
			return fmt.Sprintf("call %d, %q (%s), of the undisturbed run is missing%s", c.ordinal, c.key, c.String(), now)
		}
		if g.ordinal != c.ordinal {
			return fmt.Sprintf("%q is call %d of the undisturbed run and call %d now", c.key, c.ordinal, g.ordinal)
		}
	}
	for _, c := range got.calls {
		if wanted[c.id()] == nil && !c.byChance(raced) {
			return fmt.Sprintf("call %d, %q (%s), is none of the undisturbed run", c.ordinal, c.key, c.String())
		}
	}
	return ""
}

// sameWay reports whether two runs have made the same calls, each of which ended in the same way
// in both, whatever came of it. After a race, or a result that may vary, nobody knows.
func sameWay(want, got *record, varies func(key string) bool) bool {
	if want.row.Status != got.row.Status || want.raced() || got.raced() || otherCall(want, got) != "" {
		return false
	}
	had := index(got.calls)
	return !slices.ContainsFunc(want.calls, func(c call) bool {
		g := had[c.id()]
		return g.kind != c.kind || varies(c.key) && !bytes.Equal(g.payload, c.payload)
	})
}

// A difference describes how the calls of two runs with the same seed returned
// different results.
type difference struct {
	// result describes the first call, in the order of the undisturbed run, that had
	// a different result without an excuse; empty: none.
	result string
	// excused: a call had a different result, as it may: a call that varies on its
	// own, a race that another branch won, a wait that ended differently, a Once
	// whose outcome is unknown after a crash. What follows may differ.
	excused bool
	// times: something that is otherwise the same happened at another time, which
	// durable.Now reveals.
	times bool
}

// compareResults looks for different results in the two runs. varies reports whether
// a call may have a different result.
func compareResults(want, got *record, varies func(key string) bool) (d difference) {
	had := index(got.calls)
	raced := want.raced() || got.raced()
	for i := range want.calls {
		c := &want.calls[i]
		g := had[c.id()]
		if g == nil || c.byChance(raced) {
			continue
		}
		d.times = d.times || g.at != c.at
		if g.kind == c.kind && bytes.Equal(g.payload, c.payload) {
			continue
		}
		switch {
		case c.kind == store.FirstWon, c.kind == store.SignalReceived, c.kind == store.WaitTimedOut,
			c.kind == store.Published, c.kind == store.ChildFinished, c.kind == store.ItemCompleted, c.kind == store.ItemFailed,
			g.unknown, c.unknown, varies(c.key):
			d.excused = true
		case d.result == "" && !d.excused && (c.kind == store.StepCompleted || c.kind == store.StepFailed):
			d.result = fmt.Sprintf("step %q %s in the undisturbed run and %s now", c.key, c.came(), g.came())
		}
	}
	return d
}

// came describes the outcome of a step.
func (c *call) came() string {
	if c.kind == store.StepFailed {
		return "failed"
	}
	return "returned " + short(string(c.payload))
}
