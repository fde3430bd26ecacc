package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAGoalIsMetInTheGreatestStore(t *testing.T) {
	require.True(t, quickly.meets([]float64{900, 199}))
	require.False(t, quickly.meets([]float64{1, 201}))
	require.Equal(t, "≤ 200ms", quickly.String())

	require.True(t, flat.meets([]float64{2, 9, 3.9}), "what is between does not count")
	require.False(t, flat.meets([]float64{2, 2, 4.1}))
	require.True(t, flat.meets([]float64{0.01, 0.4}), "what is very short may vary")
	require.Equal(t, "flat", flat.String())
	require.True(t, (goal{most: time.Minute}).meets([]float64{59_000}))
}

func TestEveryCurveIsMeasuredInAStoreOfEachSize(t *testing.T) {
	stores := []string{"sqlite"}
	if !testing.Short() {
		stores = append(stores, "postgres")
	}
	var out bytes.Buffer
	require.NoError(t, scale(t.Context(), &out, stores, []int{1000}, 1, nil, true))
	var got struct{ Curves []scaleResult }
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Len(t, got.Curves, len(stores)*len(curves))
	for _, c := range got.Curves {
		require.Len(t, c.Ms, 1, c.Curve)
		require.Positive(t, c.Ms[0], c.Curve)
		require.NotEmpty(t, c.Goal, c.Curve)
	}
}

func TestOnlyTheWantedCurvesAreMeasured(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, scale(t.Context(), &out, []string{"sqlite"}, []int{1000}, 1, []string{"beat"}, false))
	require.Regexp(t, `(?s)curve.*ms at 1000.*goal.*beat.*sqlite.*flat`, out.String())
	require.NotContains(t, out.String(), "page")
}
