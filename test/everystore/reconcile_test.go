package everystore_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/conformance/recovery"
	"github.com/holdfast-dev/holdfast/store"
)

// log reads the row and all events of a run.
func (d *data) log(t *testing.T, id string) (store.Run, []store.Event) {
	t.Helper()
	h, err := d.outside.Load(context.Background(), id, store.Cursor{All: true})
	require.NoError(t, err)
	var events []store.Event
	for ev, err := range h.Events {
		require.NoError(t, err)
		events = append(events, ev)
	}
	h.Run.Last = nil
	return h.Run, events
}

// catalogue runs cases of package recovery on every store.
func catalogue(t *testing.T, wants func(recovery.Case) bool) {
	t.Helper()
	cases := slices.DeleteFunc(recovery.Cases(), func(c recovery.Case) bool { return !wants(c) })
	require.NotEmpty(t, cases)
	for _, b := range backends {
		h := recovery.Harness{Patience: patience, New: func(t testing.TB) func() (store.Store, error) {
			tt, ok := t.(*testing.T)
			require.True(t, ok)
			return b.fresh(tt)().open
		}}
		for _, c := range cases {
			t.Run(b.name+"/"+c.Title(), func(t *testing.T) {
				b.run(t, func(t *testing.T) { c.Check(t, h) })
			})
		}
	}
}

func named(name string) func(recovery.Case) bool {
	return func(c recovery.Case) bool { return c.Name == name }
}

// One case per code of the catalogue of torn states, on every store, those that are
// no inconsistency too.
func TestEveryTornStateIsRepairedOnceOnAnyStore(t *testing.T) {
	others := []string{"D1", "E1", "E2", "F1", "F2", "none"}
	catalogue(t, func(c recovery.Case) bool { return !slices.Contains(others, c.Code) && c.Name != composite })
}

const composite = "a Map that was interrupted goes on at its inner place"

func TestACompositeThatWasInterruptedGoesOnAtItsInnerPlaceOnAnyStore(t *testing.T) {
	catalogue(t, named(composite))
}

func TestABranchNobodyTurnedToIsHarmlessOnAnyStore(t *testing.T) {
	catalogue(t, func(c recovery.Case) bool { return c.Code == "D1" })
}

func TestARunWithoutAVersionGoesOnWithItsInitialOneOnAnyStore(t *testing.T) {
	catalogue(t, func(c recovery.Case) bool { return c.Code == "E1" })
}

func TestAVersionThatIsGoneFallsBackToTheInitialOneOnAnyStore(t *testing.T) {
	catalogue(t, func(c recovery.Case) bool { return c.Code == "E2" })
}

func TestAWatcherThatLeavesStopsNothingOnAnyStore(t *testing.T) {
	catalogue(t, func(c recovery.Case) bool { return c.Code == "F1" || c.Code == "F2" })
}

func TestWithoutAStableEventNothingIsTouchedOnAnyStore(t *testing.T) {
	catalogue(t, named("without a stable event nothing is touched"))
}

func TestTwoRecoveriesAtOnceMakeOneBranchOnAnyStore(t *testing.T) {
	catalogue(t, named("two recoveries at once make one branch"))
}

func TestALiveRunIsNotRepairedOnAnyStore(t *testing.T) {
	catalogue(t, named("a live run is not repaired"))
}
