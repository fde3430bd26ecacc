package archive_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/archive"
)

func TestAPrefixIsCheckedAndUsed(t *testing.T) {
	dir := repository(t)
	for _, bad := range []string{"heads/x", "refs", "refs/", "refs/heads/x", "refs/HEADS/x", "refs/tags", "refs/remotes/o", "refs/a..b", "refs/a b", "refs/-x", "refs//x", "../refs/x", "refs/x.lock", "refs/" + strings.Repeat("x", 300)} {
		_, err := archive.OpenGit(t.Context(), dir, archive.GitOptions{Prefix: bad})
		require.Error(t, err, bad)
	}
	g, err := archive.OpenGit(t.Context(), dir, archive.GitOptions{Prefix: "refs/runbook/runs"})
	require.NoError(t, err)
	require.NoError(t, g.Store(t.Context(), "r", export(t, "r", 0)))
	require.Equal(t, "refs/runbook/runs/r", git(t, dir, "for-each-ref", "--format=%(refname)", "refs/runbook", "refs/durable"))
	require.Empty(t, listed(t, openGit(t, dir)), "other prefixes are other archives")
}

func TestWhereThereIsNoRepositoryItSaysSo(t *testing.T) {
	inside := filepath.Join(repository(t), "folder")
	require.NoError(t, os.Mkdir(inside, 0o700))
	for name, dir := range map[string]string{"plain": t.TempDir(), "missing": "/does/not/exist", "inside of one": inside} {
		_, err := archive.OpenGit(t.Context(), dir, archive.GitOptions{})
		require.ErrorIs(t, err, archive.ErrUnavailable, name)
		if name != "inside of one" {
			require.ErrorContains(t, err, "`git init --bare "+dir+"` makes one", name)
		}
	}
	t.Setenv("PATH", t.TempDir())
	_, err := archive.OpenGit(t.Context(), t.TempDir(), archive.GitOptions{})
	require.ErrorIs(t, err, archive.ErrUnavailable)
	require.ErrorContains(t, err, "git is not installed, or not in PATH")
}

// asNobody makes git run as a user that may read everything and write nothing of
// ours, if the test runs as root, whom no permission stops.
func asNobody(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	real, err := exec.LookPath("git")
	require.NoError(t, err)
	bin := t.TempDir()
	script := "#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups " + real + " -c 'safe.directory=*' \"$@\"\n"
	require.NoError(t, os.WriteFile(bin+"/git", []byte(script), 0o755))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
}

func TestAReadOnlyRepositoryIsReadAndRefusesToBeWritten(t *testing.T) {
	dir := repository(t)
	require.NoError(t, openGit(t, dir).Store(t.Context(), "old", export(t, "old", 0)))
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			err = exec.Command("chmod", "a+rX,a-w", path).Run()
		}
		return err
	}))
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+w", dir).Run() })
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	asNobody(t)
	g := openGit(t, dir)
	require.Equal(t, []string{"old"}, listed(t, g))
	_, err := g.Get(t.Context(), "old")
	require.NoError(t, err)
	err = g.Store(t.Context(), "new", export(t, "new", 0))
	require.ErrorIs(t, err, archive.ErrUnavailable)
	require.ErrorContains(t, err, "git hash-object")
	require.Equal(t, []string{"old"}, listed(t, g))
}

func TestASymbolicRefLeadsToNoBranch(t *testing.T) {
	dir := repository(t)
	main := git(t, dir, "rev-parse", "main")
	git(t, dir, "symbolic-ref", "refs/durable/runs/r", "refs/heads/main")
	require.NoError(t, openGit(t, dir).Store(t.Context(), "r", export(t, "r", 0)))
	require.Equal(t, main, git(t, dir, "rev-parse", "main"))
	require.Equal(t, []string{"r"}, listed(t, openGit(t, dir)))
}

func TestARefThatHoldsAnotherRunIsNotOverwritten(t *testing.T) {
	dir := repository(t)
	g := openGit(t, dir)
	require.NoError(t, g.Store(t.Context(), "Order", export(t, "Order", 0)))
	// As it is on a file system that takes both names for the same.
	git(t, dir, "update-ref", "refs/durable/runs/order", "refs/durable/runs/Order")
	err := g.Store(t.Context(), "order", export(t, "order", 0))
	var collision *archive.CollisionError
	require.ErrorAs(t, err, &collision)
	require.Equal(t, "Order", collision.Other)
}

func TestOneUnreadableEntryDoesNotHideTheOthers(t *testing.T) {
	dir := repository(t)
	g := openGit(t, dir)
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		require.NoError(t, g.Store(t.Context(), id, export(t, id, 0)))
	}
	// A commit of something else, a name that is no run's, a lost blob, a damaged one.
	git(t, dir, "update-ref", "refs/durable/runs/a", "main")
	git(t, dir, "update-ref", "refs/durable/runs/x+y", "main")
	object := func(id, file string) string {
		oid := git(t, dir, "rev-parse", "refs/durable/runs/"+id+":"+file)
		return filepath.Join(dir, ".git/objects", oid[:2], oid[2:])
	}
	require.NoError(t, os.Remove(object("b", "run.json")))
	damaged := object("c", "run.json")
	require.NoError(t, os.Chmod(damaged, 0o600))
	require.NoError(t, os.WriteFile(damaged, []byte("junk"), 0o600))
	require.NoError(t, os.Remove(object("d", "run.hfrun")))

	var good, bad []string
	for run, err := range g.List(t.Context()) {
		if err != nil {
			require.ErrorIs(t, err, archive.ErrUnreadable)
			bad = append(bad, run.ID)
			continue
		}
		good = append(good, run.ID)
	}
	require.Equal(t, []string{"d", "e"}, good)
	require.ElementsMatch(t, []string{"a", "b", "c", ""}, bad)
	_, err := g.Get(t.Context(), "d")
	require.ErrorIs(t, err, archive.ErrUnreadable)
	for _, id := range []string{"a", "b", "d"} { // and it is mended by the next write
		require.NoError(t, g.Store(t.Context(), id, export(t, id, 0)))
		_, err := g.Get(t.Context(), id)
		require.NoError(t, err)
	}
}

func TestALockThatAKilledProcessHasLeftIsBroken(t *testing.T) {
	dir := repository(t)
	g := openGit(t, dir)
	file := export(t, "r", 0)
	lock := filepath.Join(dir, ".git/refs/durable/runs/r.lock")
	require.NoError(t, os.MkdirAll(filepath.Dir(lock), 0o700))
	require.NoError(t, os.WriteFile(lock, nil, 0o600))
	short, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	require.ErrorIs(t, g.Store(short, "r", file), archive.ErrUnavailable, "somebody may hold it")
	long := time.Now().Add(-2 * time.Minute)
	require.NoError(t, os.Chtimes(lock, long, long))
	require.NoError(t, g.Store(t.Context(), "r", file))
	require.NoFileExists(t, lock)
}

// writeForever is the process of a test that writes until it is killed.
func writeForever(dir, waiting, completed string) {
	a, _ := os.ReadFile(waiting)
	b, _ := os.ReadFile(completed)
	g, err := archive.OpenGit(context.Background(), dir, archive.GitOptions{})
	if err != nil {
		panic(err)
	}
	d, err := archive.OpenDir(dir + "-dir")
	if err != nil {
		panic(err)
	}
	for {
		for _, file := range [][]byte{a, b} {
			_ = g.Store(context.Background(), "r", file)
			_ = d.Store(context.Background(), "r", file)
		}
		// So that there is something to write again.
		cmd := exec.Command("git", "update-ref", "-d", "refs/durable/runs/r")
		cmd.Dir = dir
		_ = cmd.Run()
		_ = os.Remove(dir + "-dir/r.json")
	}
}

func TestManyProcessesMayWriteTheSameRef(t *testing.T) {
	dir := repository(t)
	waiting, completed := states(t, "r")
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			g, err := archive.OpenGit(context.Background(), dir, archive.GitOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			for _, file := range [][]byte{waiting, completed} {
				if err := g.Store(context.Background(), "r", file); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	e, err := openGit(t, dir).Get(t.Context(), "r")
	require.NoError(t, err)
	require.Equal(t, completed, e.File)
	git(t, dir, "fsck", "--strict", "--no-dangling")
}
