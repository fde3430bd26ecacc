package recovery

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// Harness says how to make the stores under test.
type Harness struct {
	// New makes new, empty data and returns a function that opens a handle on it, as a
	// separate process would, also while others are open. It registers clean-up with
	// t.Cleanup.
	New func(t testing.TB) func() (store.Store, error)
	// Patience is how long a case waits for anything; 0: a minute.
	Patience time.Duration
}

// Case is one state of the catalogue.
type Case struct {
	Code string // "A1", or "none" where there is nothing to cut after
	Name string
	// Consistent says that the state only looks like an inconsistency, and nothing is
	// written.
	Consistent bool

	run func(t *trial)
}

// Title is the name of the case's subtest.
func (c Case) Title() string { return c.Code + ": " + c.Name }

// Cases returns all cases, in the order of the catalogue.
func Cases() []Case {
	cases := tornCases()
	return append(cases,
		Case{Code: "C2", Name: "a Map that was interrupted goes on at its inner place", Consistent: true, run: composite},
		Case{Code: "D1", Name: "a branch nobody turned to is harmless", Consistent: true, run: orphanedBranch},
		Case{Code: "E1", Name: "a run without a version goes on with its initial one", Consistent: true, run: noVersion},
		Case{Code: "E2", Name: "a version that is gone falls back to the initial one", run: versionGone},
		Case{Code: "E2", Name: "without either version it is parked, and nothing is executed", run: bothVersionsGone},
		Case{Code: "F1", Name: "who watches a run that nobody executes is told what there is", Consistent: true, run: watcherOfNobody},
		Case{Code: "F2", Name: "a watcher that leaves stops nothing", Consistent: true, run: watcherLeaves},
		Case{Code: "none", Name: "without a stable event nothing is touched", run: noStableEvent},
		Case{Code: "none", Name: "two recoveries at once make one branch", run: twoAtOnce},
		Case{Code: "none", Name: "a live run is not repaired", run: liveRun},
	)
}

// Check runs one case on fresh data. It may be called in a bubble of
// testing/synctest, where the store can be.
func (c Case) Check(t testing.TB, h Harness) {
	t.Helper()
	open := h.New(t)
	outside, err := open()
	require.NoError(t, err, "opening a handle")
	t.Cleanup(func() { require.NoError(t, outside.Close()) })
	c.run(&trial{TB: t, patience: h.patience(), open: open, outside: outside})
}

// Run checks all cases as subtests and logs how many ran.
func Run(t *testing.T, h Harness) {
	t.Helper()
	require.NotNil(t, h.New, "a harness needs New")
	ran, failed := 0, 0
	for _, c := range Cases() {
		began := false
		ok := t.Run(c.Title(), func(t *testing.T) {
			began = true
			c.Check(t, h)
		})
		if began {
			ran++
		}
		if !ok {
			failed++
		}
	}
	t.Logf("%d of %d cases of the catalogue ran, %d failed", ran, len(Cases()), failed)
}

func (h Harness) patience() time.Duration {
	if h.Patience > 0 {
		return h.Patience
	}
	return time.Minute
}

// trial is a case in progress: data that outlive their processes, and a handle that
// observes them from outside.
type trial struct {
	testing.TB
	patience time.Duration
	open     func() (store.Store, error)
	outside  store.Store
}

// program is an engine in its context.
type program struct {
	context.Context
	eng *durable.Engine
}

// lease is so long that heartbeats play no part: what a program must learn from others
// it learns when the case says so.
const lease = 5 * time.Minute

// program opens an engine on its own handle, as another process would.
func (t *trial) program(defs ...durable.Definition) program {
	t.Helper()
	st, err := t.open()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	eng, err := durable.Open(context.Background(), st, durable.Options{
		Workflows: defs, Lease: lease, Grace: -1, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	ctx, stop := context.WithTimeout(durable.NewContext(context.Background(), eng), t.patience)
	t.Cleanup(stop)
	p := program{ctx, eng}
	_, err = durable.Recover(p)
	require.NoError(t, err)
	return p
}

// awaits waits, from outside, until a run has this status.
func (t *trial) awaits(id string, s store.Status) store.Run {
	t.Helper()
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		h, err := t.outside.Load(context.Background(), id, store.Cursor{NoEvents: true})
		require.NoError(t, err)
		if h.Run.Status == s {
			return h.Run
		}
		require.Less(t, time.Since(began), t.patience, "%s does not become %s", id, s)
	}
}

// log reads the row and all events of a run.
func (t *trial) log(id string) (store.Run, []store.Event) {
	t.Helper()
	h, err := t.outside.Load(context.Background(), id, store.Cursor{All: true})
	require.NoError(t, err)
	var events []store.Event
	for ev, err := range h.Events {
		require.NoError(t, err)
		events = append(events, ev)
	}
	h.Run.Last = nil
	return h.Run, events
}

// untouched returns a function that fails the case if the run has changed since.
func (t *trial) untouched(id string) func() {
	t.Helper()
	row, events := t.log(id)
	return func() {
		t.Helper()
		rowNow, now := t.log(id)
		require.Equal(t, row, rowNow, "nothing is written to the row of %s", id)
		require.Equal(t, events, now, "nothing is written to the log of %s", id)
	}
}

// recovers recovers a consistent run and checks that nothing is written.
func (t *trial) recovers(p program, id string) {
	t.Helper()
	check := t.untouched(id)
	rec, err := p.eng.RecoverRun(p, id)
	require.NoError(t, err)
	require.Equal(t, durable.Recovery{RunID: id}, rec, fmt.Sprintf("%s is consistent", id))
	check()
}
