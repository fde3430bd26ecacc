package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/cli"
)

// Scripts say --yes everywhere: what has a dry run takes it, whether it asks or not.
func TestEveryCommandWithADryRunTakesYes(t *testing.T) {
	n := 0
	for path, cmd := range leaves(cli.Command(nil), "") {
		if cmd.Flags().Lookup("dry-run") != nil {
			n++
			require.NotNil(t, cmd.Flags().Lookup("yes"), path)
		}
	}
	require.Greater(t, n, 5)
}
