package matching

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/history"
)

// recorded is a run whose workflow function has recorded these steps.
func recorded(byName bool, keys ...string) *Run {
	p := &history.Past{Scopes: map[string][]*history.Call{}}
	for _, k := range keys {
		p.Scopes[""] = append(p.Scopes[""], &history.Call{Key: k, Kind: history.CallStep})
	}
	return &Run{Past: p, ByName: byName}
}

// The table of the package comment.
func TestCallsAreMatchedByOrderAndNameOrByNameAlone(t *testing.T) {
	for _, c := range []struct {
		recorded, code string
		stopsAt        string // by order; empty: nowhere
		runs           string // by name: what runs anew
		uncalled       string // by name: what is reported
	}{
		{recorded: "a b c", code: "a b c"},
		{recorded: "a b c", code: "a x b c", stopsAt: "x", runs: "x"},
		{recorded: "a b c", code: "b a c", stopsAt: "b"},
		{recorded: "a b c", code: "a c", stopsAt: "c", uncalled: "b"},
		{recorded: "a b c", code: "a b", stopsAt: "the end", uncalled: "c"},
		{recorded: "a b", code: "a b c", runs: "c"},
		{recorded: "a b", code: "", stopsAt: "the end", uncalled: "a b"},
		{recorded: "", code: "a", runs: "a"},
	} {
		t.Run(c.recorded+" to "+c.code, func(t *testing.T) {
			var byOrder, byName Replay
			byOrder.Begin(recorded(false, strings.Fields(c.recorded)...), "")
			byName.Begin(recorded(true, strings.Fields(c.recorded)...), "")

			stoppedAt := ""
			for _, key := range strings.Fields(c.code) {
				ordinal, _, d := byOrder.Match(key, history.CallStep)
				if d != nil {
					stoppedAt = key
					require.Equal(t, int(ordinal), d.Ordinal)
					break
				}
				byOrder.Take(ordinal)
			}
			if _, d := byOrder.Finish(); d != nil && stoppedAt == "" {
				stoppedAt = "the end"
			}
			require.Equal(t, c.stopsAt, stoppedAt)

			var runs []string
			places := map[int32]bool{}
			for _, key := range strings.Fields(c.code) {
				ordinal, rec, d := byName.Match(key, history.CallStep)
				require.Nil(t, d)
				require.False(t, places[ordinal], "two calls at place %d", ordinal)
				places[ordinal] = true
				byName.Take(ordinal)
				if rec == nil {
					runs = append(runs, key)
					require.Greater(t, int(ordinal), len(strings.Fields(c.recorded)), "what is new comes after what is recorded")
				} else {
					require.Equal(t, key, rec.Key)
				}
			}
			uncalled, d := byName.Finish()
			require.Nil(t, d)
			require.Equal(t, c.runs, strings.Join(runs, " "))
			require.Equal(t, c.uncalled, strings.Join(uncalled, " "))
			require.Equal(t, uncalled == nil, byName.AtFrontier())
		})
	}
}

func TestAPlaceThatIsTakenBackIsGivenToTheNextCall(t *testing.T) {
	var rp Replay
	rp.Begin(recorded(true, "a"), "")
	refused, _, _ := rp.Match("x", history.CallStep)
	rp.TakeBack()
	next, _, _ := rp.Match("y", history.CallStep)
	require.Equal(t, refused, next)
}

func TestACallOfAnotherKindIsADifferenceByNameToo(t *testing.T) {
	for _, byName := range []bool{false, true} {
		var rp Replay
		rp.Begin(recorded(byName, "a"), "")
		_, _, d := rp.Match("a", history.CallTimer)
		require.Equal(t, ChangeKind, d.Change)
		require.Equal(t, "a was recorded as a step and is a sleep now.", d.Detail)
	}
}

// A marker that the code does not ask about is a difference once the calls are matched,
// and not before; asked, or deprecated, it is none.
func TestAMarkerThatIsNotAskedAboutIsADifference(t *testing.T) {
	run := recorded(false, "a")
	marker := &history.Patch{Name: "v2", Change: "v2"}
	run.Past.Patches = map[string][]*history.Patch{"": {marker}}
	ends := func(asks bool) *Difference {
		var rp Replay
		rp.Begin(run, "")
		if asks {
			require.Same(t, marker, rp.Marker("v2"))
			rp.Told("v2", true)
		}
		ordinal, _, d := rp.Match("a", history.CallStep)
		require.Nil(t, d)
		rp.Take(ordinal)
		_, d = rp.Finish()
		return d
	}
	require.Equal(t, ChangePatchRemoved, ends(false).Change)
	require.Nil(t, ends(true))
	marker.Deprecated = true
	require.Nil(t, ends(false))
}
