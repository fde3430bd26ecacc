package durable_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// A checkpoint of a large state is saved within half a second, and a run with a long
// history of them is back where it was within two: on a file, as it is by default.
// The fastest of a few counts, so that what else runs on this machine does not.
func TestALargeStateIsSavedInHalfASecondAndRestoredInTwo(t *testing.T) {
	const length, tries = 2000, 4
	path := filepath.Join(t.TempDir(), "app.db")
	saved, restored := time.Hour, time.Hour
	arrived := make(chan time.Time, 1)
	bodies := 0
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		for i := range length {
			if _, err := durable.Step(ctx, "small", func(context.Context) (int, error) { bodies++; return i, nil }, durable.Relaxed()); err != nil {
				return 0, err
			}
		}
		for i := range tries {
			var made time.Time
			replayed := true
			p, err := durable.Step(ctx, "state", func(context.Context) (project, error) {
				p := bigProject(uint64(i))
				made, replayed = time.Now(), false
				bodies++
				return p, nil
			})
			if err != nil {
				return 0, err
			}
			if !replayed {
				saved = min(saved, time.Since(made))
			}
			if p.Name != bigProject(uint64(i)).Name || len(p.Files) != 16 {
				t.Errorf("state %d is not the one that was saved", i)
			}
		}
		arrived <- time.Now()
		_, err := durable.Await[int](ctx, "go")
		return 0, err
	})
	live := func() (*durable.Engine, func()) {
		st, err := sqlite.Open(path)
		require.NoError(t, err)
		eng, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler), Grace: -1})
		require.NoError(t, err)
		return eng, func() {
			require.NoError(t, eng.Close())
			require.NoError(t, st.Close())
		}
	}
	arrival := func() time.Time {
		t.Helper()
		select {
		case at := <-arrived:
			return at
		case <-time.After(2 * time.Minute):
			require.Fail(t, "the run did not come to its wait")
		}
		return time.Time{}
	}
	eng, end := live()
	_, err := wf.Start(durable.NewContext(t.Context(), eng), "r", 0)
	require.NoError(t, err)
	arrival()
	end()
	for range tries {
		eng, end := live()
		begin := time.Now()
		require.NoError(t, eng.Adopt(t.Context(), "r"))
		restored = min(restored, arrival().Sub(begin))
		end()
	}
	require.Equal(t, length+tries, bodies, "what was saved is not made again")
	t.Logf("saved in %v, restored in %v", saved, restored)
	if !raceDetector {
		require.Less(t, saved, 500*time.Millisecond)
		require.Less(t, restored, 2*time.Second)
	}
}
