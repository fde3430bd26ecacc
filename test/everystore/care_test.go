package everystore_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// A traveller renews itself twice, fails once, and waits for a letter.
var traveller = durable.Define("traveller", func(ctx context.Context, n int) (string, error) {
	if n > 0 {
		return "", durable.Continue(ctx, n-1)
	}
	v, err := durable.Retry(ctx, "try", durable.Policy{Initial: time.Millisecond}, func(ctx context.Context) (string, error) {
		if durable.Attempt(ctx).Number == 1 {
			return "", errors.New("not yet ü\x00")
		}
		return strings.Repeat("long ", 10_000), nil
	})
	if err != nil {
		return "", err
	}
	first, err := durable.Await[string](ctx, "first")
	if err != nil {
		return "", err
	}
	letter, err := durable.Await[string](ctx, "letter")
	return fmt.Sprint(len(v), first, letter), err
})

// engineOn opens an engine on a store of its own.
func engineOn(t *testing.T, open opener, defs ...durable.Definition) (context.Context, *durable.Engine) {
	t.Helper()
	st, err := open()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	return engineOf(t, st, defs...)
}

func engineOf(t *testing.T, st store.Store, defs ...durable.Definition) (context.Context, *durable.Engine) {
	t.Helper()
	eng, err := durable.Open(context.Background(), st, durable.Options{Workflows: defs, Logger: slog.New(slog.DiscardHandler), Grace: -1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	ctx, stop := context.WithTimeout(durable.NewContext(context.Background(), eng), patience)
	t.Cleanup(stop)
	return ctx, eng
}

// log returns all events of a run, without their epochs.
func log(t *testing.T, st store.Store, id string) (all []store.Event) {
	t.Helper()
	h, err := st.Load(context.Background(), id, store.Cursor{All: true})
	require.NoError(t, err)
	for e, err := range h.Events {
		require.NoError(t, err)
		e.Epoch = 0
		all = append(all, e)
	}
	return all
}

func TestARunTravelsFromAnyStoreToAnyOther(t *testing.T) {
	fresh := map[string]func() place{}
	for _, b := range backends {
		fresh[b.name] = b.fresh(t)
	}
	for from, source := range fresh {
		ctx, eng := engineOn(t, source().open, traveller)
		_, err := traveller.Start(ctx, "r", 2, durable.Attributes(map[string]string{"a": "b"}))
		require.NoError(t, err)
		require.NoError(t, durable.Signal(ctx, "r", "first", " one "))
		require.Eventually(t, func() bool {
			h, err := eng.Store().Load(ctx, "r", store.Cursor{NoEvents: true})
			return err == nil && h.Run.Status == store.Waiting && h.Run.Last.Type == store.WaitRequested && h.Run.Seen == 1
		}, patience, 5*time.Millisecond)
		var file bytes.Buffer
		require.NoError(t, operate.On(eng).Export(ctx, "r", &file))
		want := log(t, eng.Store(), "r")
		for to, target := range fresh {
			t.Run(from+" to "+to, func(t *testing.T) {
				ctx, eng := engineOn(t, target().open, traveller)
				_, err := operate.On(eng).Import(ctx, bytes.NewReader(file.Bytes()), operate.ImportOptions{})
				require.NoError(t, err)
				require.Equal(t, want, log(t, eng.Store(), "r"))
				v, err := operate.On(eng).Verify(ctx, "r")
				require.NoError(t, err)
				require.Empty(t, v.Findings)
				_, err = operate.On(eng).Import(ctx, bytes.NewReader(file.Bytes()), operate.ImportOptions{})
				require.ErrorIs(t, err, store.ErrExists)
				_, err = operate.On(eng).Resume(ctx, "r", operate.ResumeOptions{})
				require.NoError(t, err)
				require.NoError(t, durable.Signal(ctx, "r", "letter", "two"))
				h, err := traveller.Handle(ctx, "r")
				require.NoError(t, err)
				out, err := h.Wait(ctx)
				require.NoError(t, err)
				require.Equal(t, "50000 one two", out)

				// What has ended travels on, as it is.
				var ended bytes.Buffer
				require.NoError(t, operate.On(eng).Export(ctx, "r", &ended))
				n, err := operate.On(eng).Clean(ctx, operate.CleanOptions{All: true})
				require.NoError(t, err)
				require.Equal(t, 1, n.Runs)
				_, err = operate.On(eng).Import(ctx, &ended, operate.ImportOptions{})
				require.NoError(t, err)
				out, err = h.Wait(ctx)
				require.NoError(t, err)
				require.Equal(t, "50000 one two", out)
			})
		}
	}
}

// damages are statements that change one byte class of a run "r" in a file; %d is
// the place of its event 4.
var damages = map[string]string{
	"payload":               `UPDATE durable_events SET payload = CAST(CAST(payload AS TEXT) || 'x' AS BLOB) WHERE place = %d`,
	"envelope":              `UPDATE durable_events SET payload = CAST(replace(CAST(payload AS TEXT), 'hf1 json', 'hf1 jsom') AS BLOB) WHERE place = %d`,
	"key":                   `UPDATE durable_events SET key = key || '#9' WHERE place = %d`,
	"type":                  `UPDATE durable_events SET type = 'step_failed' WHERE place = %d`,
	"ordinal":               `UPDATE durable_events SET ordinal = ordinal + 1 WHERE place = %d`,
	"branch":                `UPDATE durable_events SET branch = 3 WHERE place = %d`,
	"at":                    `UPDATE durable_events SET at = at + 1 WHERE place = %d`,
	"sum":                   `UPDATE durable_events SET sum = sum + 1 WHERE place = %d`,
	"data":                  `UPDATE durable_events SET data = '{"input":"other"}' WHERE place = %d`,
	"missing":               `DELETE FROM durable_events WHERE place = %d`,
	"branch of the row":     `UPDATE durable_runs SET branch = 9 WHERE no = %d >> 28`,
	"generation of the row": `UPDATE durable_runs SET generation = 9 WHERE no = %d >> 28`,
	"status of the row":     `UPDATE durable_runs SET status = 'failed' WHERE no = %d >> 28`,
}

func TestDamageInAFileIsFoundNeverBelievedAndRepaired(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.db")
			open := func() *sqlite.Store {
				st, err := sqlite.OpenOptions(path, sqlite.Options{Synchronous: sqlite.Off})
				require.NoError(t, err)
				return st
			}
			block := true
			wf := durable.Define("w", func(ctx context.Context, in int) (string, error) {
				out := ""
				for i := range 3 {
					v, err := durable.Step(ctx, "s", func(context.Context) (string, error) { return fmt.Sprint(i), nil })
					if err != nil {
						return "", err
					}
					out += v
				}
				return out, durable.Do(ctx, "last", func(ctx context.Context) error {
					if block {
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				})
			})
			st := open()
			ctx, eng := engineOf(t, st, wf)
			ids := []string{"r", "well"}
			if name == "payload" { // what is beside it does not depend on the damage
				for i := range 48 {
					ids = append(ids, fmt.Sprintf("well-%d", i))
				}
			}
			for _, id := range ids {
				_, err := wf.Start(ctx, id, 1)
				require.NoError(t, err)
			}
			for _, id := range ids {
				require.Eventually(t, func() bool { return len(log(t, st, id)) == 5 }, patience, 2*time.Millisecond)
			}
			require.NoError(t, eng.Close())
			require.NoError(t, st.Close())
			block = false

			db, err := sql.Open("sqlite3", "file:"+path)
			require.NoError(t, err)
			var no int64
			require.NoError(t, db.QueryRow(`SELECT no FROM durable_runs WHERE id = 'r'`).Scan(&no))
			_, err = db.Exec(fmt.Sprintf(damage, no<<28|4))
			require.NoError(t, err)
			require.NoError(t, db.Close())

			st = open()
			defer func() { require.NoError(t, st.Close()) }()
			ctx, eng = engineOf(t, st, wf)
			v, err := operate.On(eng).Verify(ctx, "r")
			require.NoError(t, err)
			require.True(t, v.Corrupt(), "%v", v.Findings)
			v, err = operate.On(eng).Verify(ctx, "well")
			require.NoError(t, err)
			require.Empty(t, v.Findings)

			page, err := eng.List(ctx, store.Filter{})
			require.NoError(t, err)
			require.Len(t, page.Runs, len(ids), "the corrupt one is listed with the others")

			rep, err := operate.On(eng).Repair(ctx, "r", operate.RepairOptions{})
			require.NoError(t, err)
			require.NotEmpty(t, rep.Did)
			v, err = operate.On(eng).Verify(ctx, "r")
			require.NoError(t, err)
			require.True(t, v.Sound(), "%v", v.Findings)
			_, err = durable.Recover(ctx)
			require.NoError(t, err)
			if i, err := eng.Get(ctx, "r"); err == nil && i.Code == durable.CodeRepaired {
				_, err = operate.On(eng).Resume(ctx, "r", operate.ResumeOptions{})
				require.NoError(t, err)
			}
			for _, id := range ids {
				h, err := wf.Handle(ctx, id)
				require.NoError(t, err)
				out, err := h.Wait(ctx)
				require.NoError(t, err)
				require.Equal(t, "012", out)
			}
			require.NoError(t, eng.Close())
		})
	}
}

func TestWithRetentionAFileStopsGrowing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	st, err := sqlite.OpenOptions(path, sqlite.Options{Synchronous: sqlite.Off})
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	wf := durable.Define("w", func(ctx context.Context, in int) (string, error) {
		return durable.Step(ctx, "s", func(context.Context) (string, error) { return strings.Repeat(fmt.Sprint(in), 2000), nil })
	})
	ctx, eng := engineOf(t, st, wf)
	var sizes []int64
	for cycle := range 12 {
		for i := range 100 {
			_, err := wf.Run(ctx, fmt.Sprintf("%d-%d", cycle, i), i)
			require.NoError(t, err)
		}
		_, err := operate.On(eng).Clean(ctx, operate.CleanOptions{Retention: &durable.Retention{KeepCount: 50}})
		require.NoError(t, err)
		info, err := os.Stat(path)
		require.NoError(t, err)
		wal, err := os.Stat(path + "-wal")
		require.NoError(t, err)
		sizes = append(sizes, info.Size()+wal.Size())
	}
	// The first cycles fill it; from then on what is deleted makes room.
	require.LessOrEqual(t, sizes[11], sizes[4]+sizes[4]/10, "bytes after each cycle: %v", sizes)
	n, err := st.Count(ctx, store.Filter{}, "")
	require.NoError(t, err)
	require.Equal(t, int64(50), n[""])
	require.NoError(t, eng.Close())
}
