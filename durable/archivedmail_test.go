package durable_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/runfile"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// inbox returns the names of the signals in the copy of a run.
func (s *shelf) inbox(t *testing.T, id string) (names []string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[id] == nil {
		return nil
	}
	f, err := runfile.Read(bytes.NewReader(s.files[id]), 1<<30)
	require.NoError(t, err)
	for i := range f.Inbox {
		names = append(names, f.Inbox[i].Name)
	}
	return names
}

// unarchived is whether the store says that a run is to be archived.
func (w *world) unarchived(id string) bool {
	w.t.Helper()
	page, err := w.data.List(context.Background(), store.Filter{IDs: []string{id}, Unarchived: true})
	require.NoError(w.t, err)
	return len(page.Runs) == 1
}

func TestASignalThatNobodyHasTakenIsArchivedWithItsRun(t *testing.T) {
	t.Run("while the run waits here", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			s := newShelf()
			w.boot(t, durable.Options{Workflows: []durable.Definition{asking()}, Archive: s})
			_, err := asking().Start(w.ctx(), "r", 1)
			require.NoError(t, err)
			pass(time.Second)
			require.False(t, w.unarchived("r"))
			require.NoError(t, durable.Signal(w.ctx(), "r", "for later", 1))
			pass(2 * durable.DefaultLease)
			require.Equal(t, []string{"for later"}, s.inbox(t, "r"))
			require.False(t, w.unarchived("r"))
		})
	})
	t.Run("while nobody has the run", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			s := newShelf()
			o := durable.Options{Workflows: []durable.Definition{asking()}, Archive: s}
			w.boot(t, o)
			_, err := asking().Start(w.ctx(), "r", 1)
			require.NoError(t, err)
			pass(time.Second)
			w.crash()
			w.expire()
			w.boot(t, durable.Options{}) // a program that serves nothing and archives nothing
			require.NoError(t, durable.Signal(w.ctx(), "r", "for later", 1))
			require.True(t, w.unarchived("r"), "it does not count as archived")
			w.crash()
			w.expire()
			w.boot(t, o)
			pass(time.Second)
			require.Equal(t, []string{"for later"}, s.inbox(t, "r"))
			require.False(t, w.unarchived("r"))
		})
	})
	t.Run("between the copy and its mark", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			s := newShelf()
			w.open(t, durable.Options{})
			other := w.eng
			w.boot(t, durable.Options{Workflows: []durable.Definition{asking()}, Archive: s})
			sent := false
			w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
				if c := &batch[0]; !sent && c.Row != nil && c.Row.ArchivedSeq != nil {
					sent = true
					require.NoError(t, other.Signal(context.Background(), "r", "for later", 1))
				}
				return forward()
			})
			_, err := asking().Start(w.ctx(), "r", 1)
			require.NoError(t, err)
			pass(2 * durable.DefaultLease)
			require.True(t, sent)
			require.Equal(t, []string{"for later"}, s.inbox(t, "r"))
			require.False(t, w.unarchived("r"))
		})
	})
}

// An archive keeps the copies of runs that are deleted. One that says that its run
// waits would bring it back.
func TestCleanKeepsARunThatTheArchiveWouldBringBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := newShelf()
		with := durable.Options{Workflows: []durable.Definition{asking()}, Archive: s}
		without := durable.Options{Workflows: []durable.Definition{asking()}}
		w.boot(t, with)
		for _, id := range []string{"waits", "ends"} {
			_, err := asking().Start(w.ctx(), id, 1)
			require.NoError(t, err)
		}
		pass(time.Second)
		require.Equal(t, store.Waiting, s.status(t, "ends"))
		w.crash()
		w.expire()
		w.boot(t, without)
		require.NoError(t, durable.Signal(w.ctx(), "ends", "answer-0", 1))
		w.eventually("ends", store.Completed)
		_, err := asking().Run(w.ctx(), "never archived", 0)
		require.NoError(t, err)
		w.crash()
		w.expire()

		w.boot(t, durable.Options{})
		got, err := operate.On(w.eng).Clean(w.ctx(), operate.CleanOptions{All: true, Idle: true})
		require.NoError(t, err)
		require.Equal(t, operate.Cleaned{Runs: 1, Kept: 2, Unarchived: 2}, got)
		w.boot(t, with)
		pass(time.Second)
		require.Equal(t, store.Completed, s.status(t, "ends"))
		require.NoError(t, w.eng.Cancel(w.ctx(), "waits", "not needed any more"))
		pass(time.Minute)
		require.Equal(t, store.Cancelled, s.status(t, "waits"), "it brings nothing back")
		got, err = operate.On(w.eng).Clean(w.ctx(), operate.CleanOptions{All: true, Idle: true})
		require.NoError(t, err)
		require.Equal(t, operate.Cleaned{Runs: 2}, got)
	})
	t.Run("unless it is forced", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.boot(t, durable.Options{Workflows: []durable.Definition{asking()}, Archive: newShelf()})
			_, err := asking().Start(w.ctx(), "r", 1)
			require.NoError(t, err)
			pass(time.Second)
			w.crash()
			w.expire()
			w.boot(t, durable.Options{})
			got, err := operate.On(w.eng).Clean(w.ctx(), operate.CleanOptions{All: true, Idle: true, Force: true})
			require.NoError(t, err)
			require.Equal(t, operate.Cleaned{Runs: 1}, got)
		})
	})
}

// Where the store has the run, the file is not looked at, whatever is in it.
func TestAStartFromAnExportOfARunThatIsThereLooksAtNoFile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(t, asking())
		for _, id := range []string{"r", "other"} {
			_, err := asking().Start(w.ctx(), id, 1)
			require.NoError(t, err)
		}
		pass(time.Second)
		other := export(t, w, "other")
		w.crash()
		w.data = memory.Open()
		w.boot(t, durable.Options{Workflows: []durable.Definition{asking()}})
		_, err := asking().Start(w.ctx(), "r", 1)
		require.NoError(t, err)
		for name, file := range map[string][]byte{"of another run": other, "damaged": other[:len(other)/2], "nothing": {}} {
			h, err := asking().Start(w.ctx(), "r", 1, operate.FromExport(file))
			require.NoError(t, err, name)
			require.Equal(t, "r", h.ID())
			_, err = w.eng.Get(w.ctx(), "other")
			require.ErrorIs(t, err, durable.ErrNotFound, "%s: nothing is imported under another name", name)
		}
		_, err = asking().Start(w.ctx(), "r", 2, operate.FromExport(other))
		var conflict *durable.ConflictError
		require.ErrorAs(t, err, &conflict, "the store's run has another input")
	})
}
