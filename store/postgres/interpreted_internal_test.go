package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConnectionsOfOurOwnAreWithoutTheCompiler(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://u@h/d":       "SET jit = off",
		"host=h dbname=d":        "SET jit = off",
		"host=h dbname=d jit=on": "", // the caller's choice
	} {
		require.Equal(t, want, interpreted(dsn, false), dsn)
		require.Empty(t, interpreted(dsn, true), "others use the same session")
	}
}
