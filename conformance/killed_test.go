//go:build cgo

package conformance_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

func TestMain(m *testing.M) {
	conformance.Main(openPlace)
	os.Exit(m.Run())
}

// openPlace opens a store that is kept in a file, right or wrong.
func openPlace(place string) (store.Store, error) {
	how, path, _ := strings.Cut(place, ":")
	open := func(path string) (store.Store, error) {
		return sqlite.OpenOptions(path, sqlite.Options{Synchronous: sqlite.Off})
	}
	switch how {
	case "keeps nothing until Close":
		return openLate(path, open)
	case "answers before it commits":
		s, err := open(path)
		return altered{Store: s, commit: answersFirst}, err
	}
	return open(path)
}

// late works on a copy of the file, which Close puts in its place.
type late struct {
	store.Store
	path, copied string
}

func openLate(path string, open func(string) (store.Store, error)) (store.Store, error) {
	copied := path + ".open"
	for _, left := range []string{copied, copied + "-wal", copied + "-shm"} {
		if err := os.Remove(left); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if err := os.WriteFile(copied, b, 0o600); err != nil {
			return nil, err
		}
	}
	s, err := open(copied)
	return late{s, path, copied}, err
}

func (l late) Close() error {
	if err := l.Store.Close(); err != nil {
		return err
	}
	if err := os.Rename(l.copied, l.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil // it was closed before
}

// answersFirst commits a moment after it has said so.
func answersFirst(next store.Store, ctx context.Context, batch []store.Change) []error {
	time.AfterFunc(20*time.Millisecond, func() { next.Commit(context.WithoutCancel(ctx), batch) })
	return make([]error, len(batch))
}

func inFiles(how string) conformance.Harness {
	return conformance.Harness{
		New: func(t testing.TB) conformance.Data {
			place := how + ":" + filepath.Join(t.TempDir(), "app.db")
			return conformance.Data{Open: func() (store.Store, error) { return openPlace(place) }, Place: place}
		},
		Patience: 20 * time.Second,
	}
}

// S4 says that what was acknowledged survives the end of the process. Only a
// process that is killed can show it.
func TestAKillShowsWhatWasAcknowledgedAndNotKept(t *testing.T) {
	c := find(t, "what a process was told before it was killed")
	require.Contains(t, clausesOf(c), "S4")
	require.Empty(t, record(t, c.Title(), func(tb testing.TB) { c.Check(tb, inFiles("sound")) }))
	for _, how := range []string{"keeps nothing until Close", "answers before it commits"} {
		failures := record(t, c.Title(), func(tb testing.TB) { c.Check(tb, inFiles(how)) })
		require.NotEmpty(t, failures, how)
		require.Contains(t, failures[0], "broken: S4", how)
		t.Log(how, "\n\t", failures[0])
	}
}

func TestAStoreThatIsNotTriedByKillsIsReportedSo(t *testing.T) {
	require.Contains(t, find(t, "what a process was told").Missing(t, inMemory()), "not tried: no process of this store was killed")
}
