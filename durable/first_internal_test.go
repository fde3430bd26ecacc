package durable

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store/memory"
)

// A branch is over a moment before its channel is closed. Another goroutine may be there in between, on a machine whose
// processors have other work.
func TestFirstNamesABranchWhoseGoroutineIsJustEnding(t *testing.T) {
	wf := Define("w", func(ctx context.Context, _ int) (int, error) {
		s, err := scopeOf(ctx, "won")
		if err != nil {
			return 0, err
		}
		ending := func(over bool) *Future[int] {
			return &Future[int]{branch: &branch{run: s.run, key: "b", done: make(chan struct{}), over: over}, value: 7}
		}
		i, v, err := First(ctx, "won", ending(false), ending(true))
		return 10*i + v, err
	})
	eng, err := Open(t.Context(), memory.Open(), Options{Workflows: []Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() { require.NoError(t, eng.Close()) }()
	out, err := wf.Run(NewContext(t.Context(), eng), "r", 0)
	require.NoError(t, err)
	require.Equal(t, 17, out)
}
