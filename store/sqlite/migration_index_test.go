//go:build cgo

package sqlite_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What SQLite would make for each run that is written is not there.
func TestWritingARunMakesNoTemporaryTreeOutsideQueuesAndKeys(t *testing.T) {
	path, _ := filled(t)
	for _, index := range []string{"durable_runs_owned", "durable_runs_owned_ended"} {
		require.NotContains(t, ask[string](t, path, "SELECT sql FROM sqlite_schema WHERE name = '"+index+"'"), " IN ", index)
	}
}
