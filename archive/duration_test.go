package archive_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func TestTheDurationIsThatOfTheRunInMilliseconds(t *testing.T) {
	var file bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		wf := durable.Define("w", func(ctx context.Context, d time.Duration) (int, error) { return 1, durable.Sleep(ctx, d) })
		eng, err := durable.Open(t.Context(), memory.Open(), durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		ctx := durable.NewContext(t.Context(), eng)
		_, err = wf.Run(ctx, "r", 90*time.Second+5*time.Millisecond)
		require.NoError(t, err)
		time.Sleep(time.Hour) // it has ended
		require.NoError(t, operate.On(eng).Export(ctx, "r", &file))
		require.NoError(t, eng.Close())
	})
	dir := repository(t)
	require.NoError(t, openGit(t, dir).Store(t.Context(), "r", file.Bytes()))
	require.Contains(t, git(t, dir, "show", "refs/durable/runs/r:run.json"), `"duration_ms": 90005,`)
}
