package main

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
)

func TestCommandPrintsCasesAsJSON(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, command(t.Context(), &out, []string{"-quick", "-json", "-stores", "memory", "-only", "ENGINE"}))
	var got struct{ Cases []result }
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Len(t, got.Cases, 2)
	require.Equal(t, "memory", got.Cases[0].Store)
	require.Positive(t, got.Cases[0].Median)
	require.Equal(t, quick.rounds, got.Cases[0].Rounds)
}

func TestCommandRefusesUnknownStores(t *testing.T) {
	require.ErrorContains(t, command(t.Context(), io.Discard, []string{"-stores", "punchcards"}), "punchcards")
}

// The floor pays for the same row and the same fence as the store does; a floor
// without the fence would be too low.
func TestSQLiteFloorInsertsFencedRowsLikeTheStore(t *testing.T) {
	f, err := sqliteTarget(t.TempDir(), modeNormal).openFloor(t.Context())
	require.NoError(t, err)
	defer f.Close()
	_, err = f.singles(t.Context(), 50)
	require.NoError(t, err)

	var rows, shapes int
	row := f.conn.QueryRowContext(t.Context(), "SELECT count(*), count(DISTINCT key || type || length(payload)) FROM floor_events")
	require.NoError(t, row.Scan(&rows, &shapes))
	require.Equal(t, 51, rows)
	require.Equal(t, 1, shapes)

	f.args[f.place] = f.args[f.place].(int64) + 1 // leaves a gap
	_, err = f.singles(t.Context(), 1)
	require.ErrorIs(t, err, errFenced)
}

func TestPostgresFloorInsertsFencedRowsLikeTheStore(t *testing.T) {
	t.Setenv(pgtest.EnvDSN, pgtest.DSN(t))
	target, stop, err := postgresTarget()
	require.NoError(t, err)
	defer func() { require.NoError(t, stop()) }()
	f, err := target.openFloor(t.Context())
	require.NoError(t, err)
	defer f.Close()
	_, err = f.singles(t.Context(), 50)
	require.NoError(t, err)

	f.args[f.place] = f.args[f.place].(int64) + 1 // leaves a gap
	_, err = f.singles(t.Context(), 1)
	require.ErrorIs(t, err, errFenced)
}
