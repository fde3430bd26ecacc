package everystore_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A deduplication key that another run has by now refuses each act that would take it: the
// error names the holder, and says that trying again at once is of no use.
func TestAnActThatNeedsAKeyOfAnotherRunSaysWhoHasIt(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		wf := durable.Define("queued", func(ctx context.Context, n int) (int, error) {
			got, err := durable.Step(ctx, "a", func(context.Context) (int, error) { return n, nil })
			switch {
			case err != nil:
				return 0, err
			case got == 0:
				return 0, durable.Permanent(errors.New("none"))
			}
			return durable.Await[int](ctx, "go")
		})
		options := durable.Options{Workflows: []durable.Definition{wf}, Lease: longLease, Logger: slog.New(slog.DiscardHandler)}
		open := func(o durable.Options) program {
			st, err := d.open()
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, st.Close()) })
			return runProgram(t, st, o)
		}
		p := open(options)
		op := operate.On(p.eng)
		start := func(id string, n int, s store.Status) {
			_, err := wf.Start(p, id, n, durable.OnQueue("q"), durable.Dedup("k"))
			require.NoError(t, err)
			d.awaits(t, id, s)
		}
		start("failed", 0, store.Failed)
		start("waits", 1, store.Waiting)
		var file bytes.Buffer
		require.NoError(t, op.Export(p, "waits", &file))
		_, err := op.Import(p, bytes.NewReader(file.Bytes()), operate.ImportOptions{})
		require.ErrorIs(t, err, store.ErrExists)
		require.NotErrorIs(t, err, durable.ErrUnavailable)
		require.NoError(t, p.eng.Cancel(p, "waits", ""))
		d.awaits(t, "waits", store.Cancelled)
		_, err = op.Clean(p, operate.CleanOptions{All: true, Statuses: []store.Status{store.Cancelled}})
		require.NoError(t, err)
		start("holder", 1, store.Waiting)

		refused := func(what string, err error) {
			t.Helper()
			require.Error(t, err, what)
			require.NotErrorIs(t, err, durable.ErrUnavailable, what)
			require.ErrorIs(t, err, durable.ErrOccupied, what)
			require.ErrorContains(t, err, `its deduplication key "k" is held by run holder`, what)
		}
		_, err = op.Import(p, bytes.NewReader(file.Bytes()), operate.ImportOptions{})
		refused("import", err)
		_, err = p.eng.Get(p, "waits")
		require.ErrorIs(t, err, durable.ErrNotFound)
		_, err = op.Jump(p, "failed", 1, operate.JumpOptions{})
		refused("jump", err)
		var not *durable.NotResumableError
		_, err = op.Resume(p, "failed", operate.ResumeOptions{})
		require.ErrorAs(t, err, &not)
		require.Contains(t, not.Reason, "holder")
		_, err = op.Edit(p, "failed", "a", 1, operate.EditOptions{})
		refused("edit", err)

		got, err := op.Import(p, bytes.NewReader(file.Bytes()), operate.ImportOptions{NewID: "copy"})
		require.NoError(t, err, "a copy has no key")
		require.Equal(t, "copy", got.RunID)
		require.NoError(t, durable.Signal(p, "holder", "go", 1))
		d.awaits(t, "holder", store.Completed)
		_, err = op.Import(p, bytes.NewReader(file.Bytes()), operate.ImportOptions{})
		require.NoError(t, err)
		_, err = wf.Start(p, "late", 1, durable.OnQueue("q"), durable.Dedup("k"))
		var taken *durable.ConflictError
		require.ErrorAs(t, err, &taken, "the imported run has its key again")
		require.Equal(t, "waits", taken.Holder)
	})
}
