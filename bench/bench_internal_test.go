package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/store"
)

func TestQuantileInterpolates(t *testing.T) {
	values := []float64{4, 1, 3, 2}
	require.InDelta(t, 2.5, median(values), 1e-9)
	require.InDelta(t, 1, quantile(values, 0), 1e-9)
	require.InDelta(t, 4, quantile(values, 1), 1e-9)
	require.Equal(t, []float64{4, 1, 3, 2}, values, "the values are left as they are")
}

func TestRatioIsTheHigherTheBetter(t *testing.T) {
	p := pair{floor: 10, ours: 20}
	require.InDelta(t, 0.5, p.ratio(false), 1e-9, "twice the time is half as good")
	require.InDelta(t, 2, p.ratio(true), 1e-9, "twice the rate is twice as good")
}

func TestPairsAlternateWhichComesFirst(t *testing.T) {
	var order strings.Builder
	say := func(what string, v float64) block {
		return func() (float64, error) { order.WriteString(what); return v, nil }
	}
	got, err := pairs(3, say("f", 1), say("o", 2))
	require.NoError(t, err)
	require.Equal(t, "fooffo", order.String())
	require.Equal(t, []pair{{1, 2}, {1, 2}, {1, 2}}, got)

	broken := errors.New("broken")
	_, err = pairs(1, say("f", 1), func() (float64, error) { return 0, broken })
	require.ErrorIs(t, err, broken)
}

func TestBootstrapHoldsTheMedian(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	values := make([]float64, 40)
	for i := range values {
		values[i] = 1 + 0.1*rng.NormFloat64()
	}
	low, high := bootstrap(values)
	require.Less(t, low, median(values))
	require.Greater(t, high, median(values))
	require.InDelta(t, 1, low, 0.1)
	require.InDelta(t, 1, high, 0.1)
	again, _ := bootstrap(values)
	require.Equal(t, low, again, "the same values give the same interval")
}

func TestJSONLeavesOutTheFloorOfCasesWithoutOne(t *testing.T) {
	seq := pairedResult("SEQ", "us/step", false, []pair{{100, 110}, {100, 120}, {100, 130}})
	seq.Store, seq.Mode = "sqlite", "FULL"
	var b bytes.Buffer
	require.NoError(t, printJSON(&b, []result{seq, plainResult("ENGINE", "ns/step", []float64{700})}))
	var got struct{ Cases []map[string]any }
	require.NoError(t, json.Unmarshal(b.Bytes(), &got))
	require.Len(t, got.Cases, 2)
	for _, field := range []string{"name", "store", "mode", "unit", "min", "median", "max", "floor", "ratio", "low", "high", "rounds"} {
		require.Contains(t, got.Cases[0], field)
	}
	require.InDelta(t, 100.0/120, got.Cases[0]["ratio"], 1e-9)
	for _, field := range []string{"floor", "ratio", "low", "high"} {
		require.NotContains(t, got.Cases[1], field)
	}
}

func TestTablePrintsGoals(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, printTable(&b, []result{inFloors("START p50 in inserts", "inserts/run", []pair{{100, 310}}).within(3.4)}))
	require.Regexp(t, `START p50 in inserts .* 3\.10 +inserts/run .* ≤ 3\.40`, b.String())
}

func TestUnknownCaseIsRefused(t *testing.T) {
	_, err := choose("SEQ,NONE", caseNames())
	require.ErrorContains(t, err, `"NONE" is none of SEQ`)
}

// The loop that a replay is compared with keeps the promise of a replay, or it would be too quick.
func TestAReplayByHandRefusesWhatWasChanged(t *testing.T) {
	result := envelope.Seal(envelope.Prefix("json", "int", 1), []byte("1"))
	written := func() []store.Event {
		l := log{id: "r"}
		return []store.Event{l.event(store.WorkflowCreated, "", nil, nil), l.event(store.StepCompleted, "step", nil, result)}
	}
	read := func(events []store.Event) error {
		return replayEvents("r", func(yield func(store.Event, error) bool) {
			for i := range events {
				if !yield(events[i], nil) {
					return
				}
			}
		})
	}
	require.ErrorContains(t, read(written()), "the history has 1 results")
	changed := written()
	changed[1].Attempt++
	require.ErrorContains(t, read(changed), "event 2 of the history does not follow event 1")
	require.ErrorContains(t, read(written()[1:]), "event 2 of the history does not follow event 0")
	changed = written()
	changed[1].Payload = append(result[:len(result)-1:len(result)-1], '2')
	changed[1].Sum = store.Seal("r", changed[0].Sum, &changed[1])
	require.ErrorContains(t, read(changed), "the result of event 2 is no int")
}
