package history_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/history"
)

// A replay begins with the whole history, so what is allocated for each event sets the collector to work.
func TestAnExpectedHistoryIsFiledInFewAllocations(t *testing.T) {
	events := longLog(5000)
	var err error
	allocs := testing.AllocsPerRun(5, func() { _, err = history.PastOf("bench", events) })
	require.NoError(t, err)
	require.LessOrEqual(t, allocs, 40.0) // the records and their list are one each
}
