package postgres

import (
	"testing"

	"github.com/lib/pq"
	"github.com/stretchr/testify/require"
)

func TestConnectionsOfOurOwnAreWithoutTheCompiler(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://u@h/d":                 "off",
		"postgres://u@h/d?sslmode=disable": "off",
		"host=h dbname=d":                  "off",
		"host=h dbname=d jit=on":           "on", // the caller's choice
	} {
		cfg, err := pq.NewConfig(interpreted(dsn, false))
		require.NoError(t, err, dsn)
		require.Equal(t, want, cfg.Runtime["jit"], dsn)
		require.Equal(t, dsn, interpreted(dsn, true), "a pooler may refuse the parameter")
	}
}
