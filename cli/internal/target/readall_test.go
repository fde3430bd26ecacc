package target

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// The event to which a run was set back, and the one that says so, are missed like any other.
func TestARunThatLacksAnEventWhereItWasSetBackIsCorrupt(t *testing.T) {
	for _, gone := range []int{0, 4, 5, 10} {
		t.Run(fmt.Sprint(gone), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "runs.db")
			st, err := sqlite.Open(file)
			require.NoError(t, err)
			defer st.Close()
			wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				for i := range 5 {
					if _, err := durable.Step(ctx, fmt.Sprint("s", i), func(context.Context) (int, error) { return i, nil }); err != nil {
						return 0, err
					}
				}
				return 0, errors.New("it fails")
			})
			e, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			defer e.Close()
			ctx := durable.NewContext(t.Context(), e)
			_, err = wf.Run(ctx, "r", 0)
			require.Error(t, err)
			_, err = operate.On(e).Jump(ctx, "r", 5, operate.JumpOptions{Force: true})
			require.NoError(t, err)
			h, err := wf.Handle(ctx, "r")
			require.NoError(t, err)
			_, err = h.Wait(ctx)
			require.Error(t, err)

			db, err := sqlx.Open("sqlite3", file)
			require.NoError(t, err)
			defer db.Close()
			_, err = db.Exec(`DELETE FROM durable_events WHERE place & 268435455 = ?`, gone)
			require.NoError(t, err)
			l := &Local{Engine: e, Store: st, Mounted: true}
			runs, _, err := l.Runs(ctx, Query{Limit: 1})
			require.NoError(t, err)
			_, refused := operate.On(e).Resume(ctx, "r", operate.ResumeOptions{DryRun: true})
			require.Equal(t, gone != 0, refused != nil, "%v", refused)
			require.Equal(t, gone != 0, runs[0].Damage != nil)
		})
	}
}
