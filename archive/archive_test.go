package archive_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/archive"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func emptyStore() store.Store { return memory.Open() }

func options() durable.Options {
	return durable.Options{Workflows: []durable.Definition{checkout(&bodies{})}}
}

// archives are one of each kind, empty.
func archives(t *testing.T) map[string]archive.Archive {
	t.Helper()
	bare := t.TempDir()
	git(t, bare, "init", "-q", "--bare")
	d, err := archive.OpenDir(filepath.Join(t.TempDir(), "new", "folder"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return map[string]archive.Archive{"git": openGit(t, bare), "dir": d}
}

func eachArchive(t *testing.T, test func(t *testing.T, a archive.Archive)) {
	for name, a := range archives(t) {
		t.Run(name, func(t *testing.T) { test(t, a) })
	}
}

// copyAs returns the file of a copy of a run under another id.
func copyAs(t *testing.T, p *process, file []byte, id string, n int) []byte {
	t.Helper()
	if page, err := p.List(p.ctx, store.Filter{IDs: []string{id}}); err == nil && len(page.Runs) == 0 {
		_, err := operate.On(p.Engine).Import(p.ctx, bytes.NewReader(file), operate.ImportOptions{NewID: id})
		require.NoError(t, err, "copy %d", n)
	}
	return exported(t, p, id)
}

// states returns the files of a run while it waits and when it has completed.
func states(t *testing.T, id string) (waiting, completed []byte) {
	t.Helper()
	p := boot(t, memory.Open(), options())
	run, err := checkout(&bodies{}).Start(p.ctx, id, order{ID: id, Total: 5})
	require.NoError(t, err)
	eventually(t, "it waits", func() bool { return rowOf(t, p, id).Status == store.Waiting })
	waiting = exported(t, p, id)
	require.NoError(t, durable.Signal(p.ctx, id, "approve", "ann"))
	_, err = run.Wait(p.ctx)
	require.NoError(t, err)
	return waiting, exported(t, p, id)
}

func TestALaterStateReplacesAnEarlierOneAndNeverTheOtherWayRound(t *testing.T) {
	waiting, completed := states(t, "r")
	eachArchive(t, func(t *testing.T, a archive.Archive) {
		for _, file := range [][]byte{waiting, completed, completed, waiting} {
			require.NoError(t, a.Store(t.Context(), "r", file))
		}
		e, err := a.Get(t.Context(), "r")
		require.NoError(t, err)
		require.Equal(t, completed, e.File)
		require.Equal(t, store.Completed, e.Status)
		require.Empty(t, e.Prompt)
		require.JSONEq(t, `"paid 5, shipped by ann"`, string(e.Output))
	})
}

func TestAStoreThatWasPutBackAndWentAnotherWayIsBelieved(t *testing.T) {
	waiting, completed := states(t, "r")
	p := boot(t, memory.Open(), options())
	_, err := operate.On(p.Engine).Import(p.ctx, bytes.NewReader(waiting), operate.ImportOptions{})
	require.NoError(t, err)
	_, err = operate.On(p.Engine).Resume(p.ctx, "r", operate.ResumeOptions{})
	require.NoError(t, err)
	eventually(t, "it waits again", func() bool { return rowOf(t, p, "r").Status == store.Waiting })
	other := exported(t, p, "r")
	eachArchive(t, func(t *testing.T, a archive.Archive) {
		require.NoError(t, a.Store(t.Context(), "r", completed))
		before, err := a.Get(t.Context(), "r")
		require.NoError(t, err)
		require.NoError(t, a.Store(t.Context(), "r", other))
		e, err := a.Get(t.Context(), "r")
		require.NoError(t, err)
		require.Equal(t, other, e.File)
		require.Less(t, e.Seq, before.Seq, "though it is shorter")
	})
}

func TestManyWritersOfTheSameRunsLeaveTheLatestStates(t *testing.T) {
	waiting, completed := states(t, "shared")
	eachArchive(t, func(t *testing.T, a archive.Archive) {
		var work sync.WaitGroup
		errs := make(chan error, 100)
		for i := range 8 {
			work.Go(func() {
				for n, file := range [][]byte{waiting, completed, waiting} {
					if err := a.Store(t.Context(), "shared", file); err != nil {
						errs <- fmt.Errorf("writer %d, write %d: %w", i, n, err)
					}
				}
			})
		}
		work.Wait()
		close(errs)
		for err := range errs {
			require.NoError(t, err)
		}
		e, err := a.Get(t.Context(), "shared")
		require.NoError(t, err)
		require.Equal(t, completed, e.File)
		require.Equal(t, []string{"shared"}, listed(t, a))
	})
}

func TestWhatIsNoFileOfTheRunIsRefused(t *testing.T) {
	file := export(t, "r", 0)
	eachArchive(t, func(t *testing.T, a archive.Archive) {
		for name, bad := range map[string][]byte{
			"nothing": nil, "half": file[:len(file)/2], "changed": bytes.Replace(file, []byte("paid"), []byte("stole"), 1), "junk": []byte("{}\n"),
		} {
			require.ErrorIs(t, a.Store(t.Context(), "r", bad), archive.ErrBadFile, name)
		}
		require.ErrorIs(t, a.Store(t.Context(), "s", file), archive.ErrBadFile, "of another run")
		require.ErrorIs(t, a.Store(t.Context(), "", file), store.ErrInvalid)
		_, err := a.Trace(t.Context(), "r")
		require.ErrorIs(t, err, archive.ErrNotFound)
		require.Empty(t, listed(t, a))
	})
}

type oneKey struct{}

func (oneKey) Current() string            { return "k1" }
func (oneKey) Key(string) ([]byte, error) { return bytes.Repeat([]byte{7}, durable.KeySize), nil }

func TestWhatIsEncryptedInTheStoreIsEncryptedInTheArchive(t *testing.T) {
	o := options()
	o.Encrypt = oneKey{}
	p := boot(t, memory.Open(), o)
	_, err := checkout(&bodies{}).Run(p.ctx, "r", order{ID: "canary-in-the-input", Total: 0})
	require.NoError(t, err)
	file := exported(t, p, "r")
	eachArchive(t, func(t *testing.T, a archive.Archive) {
		require.NoError(t, a.Store(t.Context(), "r", file))
		e, err := a.Get(t.Context(), "r")
		require.NoError(t, err)
		require.Empty(t, e.Input)
		require.Empty(t, e.Output)
		require.Equal(t, "encrypted with key k1", e.Hidden)
		trace, err := a.Trace(t.Context(), "r")
		require.NoError(t, err)
		require.NotContains(t, fmt.Sprintf("%s %+v", e.File, trace), "canary")
	})
}
