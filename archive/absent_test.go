package archive_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/archive"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// Whatever is wrong with the repository, or with git, the program starts, says so
// once, and executes its runs; what it could not archive the next one does.
func TestAProgramStartsWithoutItsRepositoryAndTheNextOneMakesUpForIt(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, dir string) archive.Archive{
		"never one": func(t *testing.T, _ string) archive.Archive {
			_, err := archive.OpenGit(t.Context(), t.TempDir(), archive.GitOptions{})
			require.Error(t, err)
			return archive.Unavailable(err)
		},
		"git is missing": func(t *testing.T, dir string) archive.Archive {
			t.Setenv("PATH", t.TempDir())
			_, err := archive.OpenGit(t.Context(), dir, archive.GitOptions{})
			require.ErrorContains(t, err, "git is not installed")
			return archive.Unavailable(err)
		},
		"gone since it was opened": func(t *testing.T, dir string) archive.Archive {
			g := openGit(t, dir)
			require.NoError(t, os.Rename(filepath.Join(dir, ".git"), filepath.Join(dir, "moved")))
			return g
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, later, st := repository(t), openGit(t, repository(t)), memory.Open()
			log := &logBook{}
			h := archive.Hydrate(t.Context(), spoil(t, dir), slog.New(slog.NewTextHandler(log, nil)))
			require.Empty(t, h.Runs())
			require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
			require.Contains(t, log.String(), `level=WARN msg="archive: the archive cannot be listed; the history of earlier processes is not shown"`)

			o := options()
			o.Archive = h
			p := boot(t, st.Handle(), o)
			out, err := checkout(&bodies{}).Run(p.ctx, "r", order{ID: "r"})
			require.NoError(t, err)
			require.Equal(t, "paid 0", out)
			require.NoError(t, p.Close())
			require.Contains(t, p.log.String(), "[durable] git-store write failed for r:")
			require.Zero(t, rowOf(t, boot(t, st.Handle(), options()), "r").ArchivedSeq)

			o.Archive = later
			p = boot(t, st.Handle(), o)
			archivedAs(t, later, "r", store.Completed)
			require.NoError(t, p.Close())
		})
	}
}

// A history without an archive keeps nothing, so nothing may be marked as kept:
// retention would delete it, and an archive that comes later would never get it.
func TestWithoutAnArchiveBelowItAHistoryTakesNothingForArchived(t *testing.T) {
	st := memory.Open()
	o := options()
	o.Archive = archive.Hydrate(t.Context(), nil, nil)
	p := boot(t, st.Handle(), o)
	_, err := checkout(&bodies{}).Run(p.ctx, "r", order{ID: "r"})
	require.NoError(t, err)
	_, err = operate.On(p.Engine).Clean(p.ctx, operate.CleanOptions{Retention: &durable.Retention{KeepFor: 1, OnlyArchived: true}})
	require.NoError(t, err)
	require.NoError(t, p.Close())
	require.NotContains(t, p.log.String(), "ERROR")
	require.ErrorIs(t, archive.Hydrate(t.Context(), nil, nil).Store(t.Context(), "r", nil), archive.ErrUnavailable)

	o.Archive = archive.Hydrate(t.Context(), openGit(t, repository(t)), nil)
	_ = boot(t, st.Handle(), o)
	archivedAs(t, o.Archive.(archive.Archive), "r", store.Completed)
}

// The line of a write that failed names the archive it was for, also below a history.
func TestADirectoryArchiveThatCannotBeWrittenIsNamedInTheLog(t *testing.T) {
	for _, hydrated := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "runs")
		d, err := archive.OpenDir(dir)
		require.NoError(t, err)
		o := options()
		o.Archive = d
		if hydrated {
			o.Archive = archive.Hydrate(t.Context(), d, nil)
		}
		require.NoError(t, os.RemoveAll(dir))
		require.NoError(t, os.WriteFile(dir, nil, 0o600))
		p := boot(t, memory.Open(), o)
		_, err = checkout(&bodies{}).Run(p.ctx, "r", order{ID: "r"})
		require.NoError(t, err)
		require.NoError(t, p.Close())
		require.Contains(t, p.log.String(), "[durable] directory-store write failed for r:")
		require.NotContains(t, p.log.String(), "git-store")
	}
}
