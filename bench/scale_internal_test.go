package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/test/pgtest"
)

func TestAGoalIsMetInTheGreatestStore(t *testing.T) {
	require.True(t, quickly.meets([]float64{900, 199}, "ms"))
	require.False(t, quickly.meets([]float64{1, 201}, "ms"))
	require.Equal(t, "≤ 200", quickly.String())

	require.True(t, flat.meets([]float64{2, 9, 3.9}, "ms"), "what is between does not count")
	require.False(t, flat.meets([]float64{2, 2, 4.1}, "ms"))
	require.True(t, flat.meets([]float64{0.01, 0.4}, "ms"), "what is very short may vary")
	require.False(t, flat.meets([]float64{0.01, 0.4}, "B"))
	require.Equal(t, "flat", flat.String())
	require.True(t, within(time.Minute).meets([]float64{59_000}, "ms"))

	require.True(t, goal{least: 0.9}.meets([]float64{0.2, 0.9}, "of 1"))
	require.False(t, goal{least: 0.9}.meets([]float64{1, 0.8}, "of 1"))
	require.Equal(t, "≥ 0.90", goal{least: 0.9}.String())
	require.True(t, goal{}.meets([]float64{1, 1000}, "B"), "there is none")
	require.Empty(t, goal{}.String())
}

func TestEveryCurveIsMeasuredInAStoreOfEachSize(t *testing.T) {
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			if kind == "postgres" {
				t.Setenv(pgtest.EnvDSN, pgtest.DSN(t))
			}
			var out bytes.Buffer
			require.NoError(t, scale(t.Context(), &out, []string{kind}, []int{1000}, 1, nil, true))
			var got struct{ Curves []scaleResult }
			require.NoError(t, json.Unmarshal(out.Bytes(), &got))
			require.Len(t, got.Curves, len(curves))
			for _, c := range got.Curves {
				require.Len(t, c.Figures, 1, c.Curve)
				require.GreaterOrEqual(t, c.Figures[0], 0.0, c.Curve)
				require.NotEmpty(t, c.Unit, c.Curve)
			}
		})
	}
}

func TestOnlyTheWantedCurvesAreMeasured(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, scale(t.Context(), &out, []string{"sqlite"}, []int{1000}, 1, []string{"beat"}, false))
	require.Regexp(t, `(?s)curve.*at 1000.*goal.*beat.*sqlite.*ms.*flat.*ok`, out.String())
	require.NotContains(t, out.String(), "page")
}
