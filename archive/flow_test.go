package archive_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/archive"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// archivedAs waits until an archive has a run in a status.
func archivedAs(t *testing.T, a archive.Archive, id string, s store.Status) *archive.Entry {
	t.Helper()
	var e *archive.Entry
	eventually(t, "it is archived as "+string(s), func() bool {
		var err error
		e, err = a.Get(t.Context(), id)
		return err == nil && e.Status == s
	})
	return e
}

func TestARunWhoseStoreIsLostGoesOnFromTheArchiveAlone(t *testing.T) {
	for name, restore := range map[string]func(t *testing.T, p *process, h *archive.History){
		"restore all": func(t *testing.T, p *process, h *archive.History) {
			got, err := archive.RestoreWaiting(p.ctx, p.Engine, h)
			require.NoError(t, err)
			require.Equal(t, archive.Restored{Runs: []string{"order-1"}, Failed: map[string]error{}}, got)
			again, err := archive.RestoreWaiting(p.ctx, p.Engine, h)
			require.NoError(t, err)
			require.Empty(t, again.Runs, "the store is the truth by now")
			require.Empty(t, again.Failed)
		},
		"start from the snapshot": func(t *testing.T, p *process, h *archive.History) {
			e, err := h.Get(p.ctx, "order-1")
			require.NoError(t, err)
			_, err = checkout(nil).Start(p.ctx, "order-1", order{ID: "order-1", Total: 5}, archive.BuildSnapshot(e).Option())
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := repository(t)
			b := &bodies{}
			defs := []durable.Definition{checkout(b)}
			p := boot(t, memory.Open(), durable.Options{Workflows: defs, Archive: openGit(t, dir)})
			_, err := checkout(b).Start(p.ctx, "order-1", order{ID: "order-1", Total: 5})
			require.NoError(t, err)
			_, err = checkout(b).Run(p.ctx, "order-0", order{ID: "order-0"})
			require.NoError(t, err)
			before := archivedAs(t, openGit(t, dir), "order-1", store.Waiting)
			archivedAs(t, openGit(t, dir), "order-0", store.Completed)
			require.NoError(t, p.Close()) // and its store, which was memory, is gone

			h := archive.Hydrate(t.Context(), openGit(t, dir), nil)
			require.Len(t, h.Runs(), 2, "the history is there at once")
			p = boot(t, memory.Open(), durable.Options{Workflows: defs, Archive: h})
			restore(t, p, h)
			eventually(t, "it waits again", func() bool { return rowOf(t, p, "order-1").Status == store.Waiting })
			open, err := operate.On(p.Engine).Approvals(p.ctx)
			require.NoError(t, err)
			require.Len(t, open, 1)
			require.Equal(t, "Ship order-1?", open[0].Prompt)

			require.NoError(t, durable.Signal(p.ctx, "order-1", "approve", "ann"))
			run, err := checkout(b).Handle(p.ctx, "order-1")
			require.NoError(t, err)
			out, err := run.Wait(p.ctx)
			require.NoError(t, err)
			require.Equal(t, "paid 5, shipped by ann", out)
			require.Equal(t, map[string]int{"charge": 2, "ship": 1}, b.n, "charged once for each order, and not again")

			after := archivedAs(t, openGit(t, dir), "order-1", store.Completed)
			require.Equal(t, before.Trace, after.Trace[:len(before.Trace)], "its former events, and new ones behind them")
			live, err := h.Beside(p.ctx, p.Engine)
			require.NoError(t, err)
			require.Len(t, live, 2)
			require.NoError(t, p.Close())
		})
	}
}

func TestASnapshotHoldsTheStepsAndTheLastWait(t *testing.T) {
	git := openGit(t, repository(t))
	waiting, completed := states(t, "r")
	for file, last := range map[string]string{string(waiting): "charge", string(completed): "ship"} {
		require.NoError(t, git.Store(t.Context(), "r", []byte(file)))
		e, err := git.Get(t.Context(), "r")
		require.NoError(t, err)
		s := archive.BuildSnapshot(e)
		require.Equal(t, "r", s.RunID)
		require.Equal(t, "checkout", s.WorkflowID)
		require.JSONEq(t, `{"ID":"r","Total":5}`, string(s.Input))
		require.Equal(t, "approve", s.ResumeAt)
		require.Equal(t, "Ship r?", s.Prompt)
		require.JSONEq(t, `"paid 5"`, string(s.CompletedSteps["charge"]))
		require.Contains(t, s.CompletedSteps, last)
		require.Equal(t, e.Trace, s.Trace)
	}
	require.NoError(t, git.Store(t.Context(), "s", export(t, "s", 0)))
	e, err := git.Get(t.Context(), "s")
	require.NoError(t, err)
	require.Nil(t, archive.BuildSnapshot(e), "it never waited")
}

// fake is an archive whose failures are chosen.
type fake struct {
	archive.Archive
	list, trace error
	bad         string
}

func (f *fake) List(ctx context.Context) iter.Seq2[archive.Run, error] {
	return func(yield func(archive.Run, error) bool) {
		if f.list != nil {
			yield(archive.Run{}, f.list)
			return
		}
		for run, err := range f.Archive.List(ctx) {
			if run.ID == f.bad {
				err = &archive.UnreadableError{RunID: run.ID, Err: errors.New("junk")}
			}
			if !yield(run, err) {
				return
			}
		}
	}
}

func (f *fake) Trace(ctx context.Context, id string) ([]archive.Event, error) {
	if id == "b" && f.trace != nil {
		return nil, f.trace
	}
	return f.Archive.Trace(ctx, id)
}

func TestTheHistoryOfEarlierProcessesIsThereAtBootAndItsFaultsAreWarnings(t *testing.T) {
	a := openGit(t, repository(t))
	for _, id := range []string{"a", "b", "c"} {
		require.NoError(t, a.Store(t.Context(), id, export(t, id, 0)))
	}
	ids := func(h *archive.History) (ids []string) {
		for _, r := range h.Runs() {
			ids = append(ids, r.ID)
		}
		return ids
	}
	for name, c := range map[string]struct {
		f        *fake
		want     []string
		warnings int
	}{
		"all is well":            {&fake{Archive: a}, []string{"c", "b", "a"}, 0},
		"it cannot be listed":    {&fake{Archive: a, list: archive.ErrUnavailable}, nil, 1},
		"one cannot be read":     {&fake{Archive: a, bad: "a"}, []string{"c", "b"}, 1},
		"one trace is not there": {&fake{Archive: a, trace: archive.ErrUnreadable}, []string{"c", "a"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			log := &logBook{}
			h := archive.Hydrate(t.Context(), c.f, slog.New(slog.NewTextHandler(log, nil)))
			require.Equal(t, c.want, ids(h))
			require.Equal(t, c.warnings, strings.Count(log.String(), "level=WARN"), log.String())
			p := boot(t, memory.Open(), durable.Options{Archive: h}) // and the program starts all the same
			require.NoError(t, p.Close())
			for _, id := range c.want {
				trace, err := h.Trace(t.Context(), id)
				require.NoError(t, err)
				require.NotEmpty(t, trace)
			}
		})
	}
	none := archive.Hydrate(t.Context(), nil, nil)
	require.Empty(t, none.Runs(), "no archive is an empty history")
	_, err := none.Trace(t.Context(), "a")
	require.ErrorIs(t, err, archive.ErrNotFound)
}

func TestTheStoreIsBelievedBeforeTheArchive(t *testing.T) {
	waiting, _ := states(t, "r")
	a := openGit(t, repository(t))
	require.NoError(t, a.Store(t.Context(), "r", waiting))
	require.NoError(t, a.Store(t.Context(), "old", export(t, "old", 0)))
	h := archive.Hydrate(t.Context(), a, nil)

	p := boot(t, memory.Open(), options())
	_, err := checkout(&bodies{}).Run(p.ctx, "r", order{ID: "r"}) // the id was used again
	require.NoError(t, err)
	runs, err := h.Beside(p.ctx, p.Engine)
	require.NoError(t, err)
	byID := map[string]archive.Run{}
	for _, r := range runs {
		byID[r.ID] = r
	}
	require.True(t, byID["r"].Live)
	require.Equal(t, store.Completed, byID["r"].Status)
	require.Empty(t, byID["r"].Prompt)
	require.False(t, byID["old"].Live)

	_, err = archive.Restore(p.ctx, p.Engine, h, "r")
	require.ErrorIs(t, err, store.ErrExists)
	_, err = archive.Restore(p.ctx, p.Engine, h, "nobody")
	require.ErrorIs(t, err, archive.ErrNotFound)
	require.NoError(t, h.Store(t.Context(), "r", exported(t, p, "r")))
	run, ok := h.Run("r")
	require.True(t, ok)
	require.Equal(t, store.Completed, run.Status)
	h.Refresh(t.Context())
	run, _ = h.Run("r")
	require.Equal(t, store.Completed, run.Status)
}

// The store that lives on may have another run with the key of an archived one.
func TestARunThatCannotBeRestoredBecauseOfItsKeyIsNamed(t *testing.T) {
	b := &bodies{}
	wf := checkout(b)
	d, err := archive.OpenDir(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	p := boot(t, memory.Open(), durable.Options{Workflows: []durable.Definition{wf}, Archive: d})
	_, err = wf.Start(p.ctx, "order-1", order{ID: "order-1", Total: 5}, durable.Dedup("ann"))
	require.NoError(t, err)
	archivedAs(t, d, "order-1", store.Waiting)

	p = boot(t, memory.Open(), durable.Options{Workflows: []durable.Definition{wf}})
	_, err = wf.Start(p.ctx, "order-2", order{ID: "order-2", Total: 5}, durable.Dedup("ann"))
	require.NoError(t, err)
	got, err := archive.RestoreWaiting(p.ctx, p.Engine, d)
	require.NoError(t, err)
	require.Empty(t, got.Runs)
	require.ErrorIs(t, got.Failed["order-1"], durable.ErrOccupied)
	require.ErrorContains(t, got.Failed["order-1"], "order-2")
}

// cutStore fails once it has taken a number of changes with events.
type cutStore struct {
	store.Store
	left int
}

func (s *cutStore) Commit(ctx context.Context, batch []store.Change) []error {
	if len(batch[0].Events) > 0 {
		if s.left--; s.left < 0 {
			return slices.Repeat([]error{store.ErrClosed}, len(batch))
		}
	}
	return s.Store.Commit(ctx, batch)
}

// Nobody goes on with half a run, and the import of the copy cannot finish that of another file.
func TestARunOfWhichAnotherFileIsHalfImportedIsNamed(t *testing.T) {
	d, err := archive.OpenDir(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	older := export(t, "order-1", 5)
	require.NoError(t, d.Store(t.Context(), "order-1", export(t, "order-1", 5)))
	data := memory.Open()
	p := boot(t, &cutStore{data, 1}, durable.Options{})
	_, err = operate.On(p.Engine).Import(p.ctx, bytes.NewReader(older), operate.ImportOptions{})
	require.Error(t, err)

	p = boot(t, data, durable.Options{Workflows: []durable.Definition{checkout(&bodies{})}})
	require.Equal(t, durable.CodeImporting, rowOf(t, p, "order-1").Code)
	got, err := archive.RestoreWaiting(p.ctx, p.Engine, d)
	require.NoError(t, err)
	require.Empty(t, got.Runs)
	require.ErrorIs(t, got.Failed["order-1"], durable.ErrNotResumable)
	require.ErrorContains(t, got.Failed["order-1"], "delete it first")
}
