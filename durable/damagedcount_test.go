package durable_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// How many steps a run has made is a number in the store like any other: if it is damaged, the run
// is parked, and the process that reads it goes on.
func TestADamagedCountOfStepsParksTheRun(t *testing.T) {
	for _, steps := range []int{-1, 1<<31 - 1} {
		t.Run(fmt.Sprint(steps), func(t *testing.T) {
			ctx, path := t.Context(), filepath.Join(t.TempDir(), "app.db")
			wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				if _, err := durable.Step(ctx, "a", one); err != nil {
					return 0, err
				}
				return 1, durable.Do(ctx, "b", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			})
			open := func() *durable.Engine {
				st, err := sqlite.Open(path)
				require.NoError(t, err)
				t.Cleanup(func() { _ = st.Close() })
				eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet, Grace: -1})
				require.NoError(t, err)
				return eng
			}
			eng := open()
			_, err := wf.Start(durable.NewContext(ctx, eng), "r", 0)
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				h, err := eng.Store().Load(ctx, "r", store.Cursor{NoEvents: true})
				return err == nil && h.Run.Last.Type == store.StepCompleted
			}, time.Minute, time.Millisecond)
			require.NoError(t, eng.Close())
			require.NoError(t, eng.Store().Close())

			db, err := sql.Open("sqlite3", path)
			require.NoError(t, err)
			_, err = db.ExecContext(ctx, `UPDATE durable_events SET steps = ? WHERE type = 'workflow_interrupted'`, steps)
			require.NoError(t, err)
			require.NoError(t, db.Close())

			eng = open()
			defer eng.Close()
			_, err = eng.Recover(ctx)
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				h, err := eng.Store().Load(ctx, "r", store.Cursor{NoEvents: true})
				return err == nil && h.Run.Code != ""
			}, time.Minute, time.Millisecond)
			h, err := eng.Store().Load(ctx, "r", store.Cursor{NoEvents: true})
			require.NoError(t, err)
			require.Equal(t, durable.CodeDamaged, h.Run.Code, h.Run.Reason)
		})
	}
}
