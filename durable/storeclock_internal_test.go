package durable

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheFastestOfTheLastBeatsTellsTheStoresTime(t *testing.T) {
	var c storeClock
	for i, step := range []struct {
		offset, within, want int64
		why                  string
	}{
		{100, 50, 100, "the first is all there is"},
		{180, 400, 100, "a slow one says less than what is known"},
		{110, 10, 110, "a faster one says more"},
		{105, 10, 105, "of two that are as good the later one counts"},
		{5000, 300, 5000, "both cannot be true: a clock was set"},
		{5200, 400, 5000, "and what was before it is forgotten"},
	} {
		require.Equal(t, step.want, c.observe(clockReading{step.offset, step.within}), "step %d: %s", i, step.why)
	}
	for range clockReadings - 2 {
		require.EqualValues(t, 5000, c.observe(clockReading{5100, 400}))
	}
	require.EqualValues(t, 5100, c.observe(clockReading{5100, 400}), "the fastest was too long ago")
}
