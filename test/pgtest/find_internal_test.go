//go:build linux

package pgtest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNewerServersComeFirst(t *testing.T) {
	dirs := []string{"/usr/lib/postgresql/9.6/bin", "/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/13/bin"}
	slices.SortFunc(dirs, newestFirst)
	require.Equal(t, []string{"/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/13/bin", "/usr/lib/postgresql/9.6/bin"}, dirs)
}

// bare makes a machine on which no server program can be found.
func bare(t *testing.T) (bin string) {
	bin = t.TempDir()
	t.Setenv("PATH", bin)
	globs := binGlobs
	binGlobs = []string{filepath.Join(t.TempDir(), "*", "bin")}
	t.Cleanup(func() { binGlobs = globs })
	return bin
}

func script(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755))
}

func TestWithoutServerProgramsTheErrorSaysWhatToDo(t *testing.T) {
	bare(t)
	_, err := binaries()
	require.ErrorContains(t, err, "apt-get install postgresql")
	require.ErrorContains(t, err, EnvDSN)
	require.ErrorContains(t, err, EnvSkip+"=required")
}

// A machine without a server runs all other tests, and is told how to have these.
func TestWithoutAServerItsTestsAreLeftOutUnlessTheyAreRequired(t *testing.T) {
	bare(t)
	t.Setenv(EnvDSN, "")
	t.Setenv(EnvSkip, "")
	line, err := LeftOut()
	require.NoError(t, err)
	require.Contains(t, line, "the tests on PostgreSQL were left out: no PostgreSQL server programs")
	require.Contains(t, line, "apt-get install postgresql")

	t.Setenv(EnvSkip, "required")
	_, err = LeftOut()
	require.ErrorContains(t, err, "no PostgreSQL server programs")

	t.Setenv(EnvSkip, "skip")
	line, err = LeftOut()
	require.NoError(t, err)
	require.Contains(t, line, EnvSkip+"=skip")

	t.Setenv(EnvSkip, "")
	t.Setenv(EnvDSN, "postgres://a.server")
	line, err = LeftOut()
	require.NoError(t, err)
	require.Empty(t, line)
}

func TestServerProgramsAreFoundBehindALinkOnPath(t *testing.T) {
	bin, real := bare(t), t.TempDir()
	script(t, filepath.Join(real, "postgres"), "")
	script(t, filepath.Join(real, "initdb"), "")
	require.NoError(t, os.Symlink(filepath.Join(real, "postgres"), filepath.Join(bin, "postgres")))
	dir, err := binaries()
	require.NoError(t, err)
	require.Equal(t, real, dir)
}

func TestThePackageIsInstalledOnlyWhereThatIsAllowed(t *testing.T) {
	bin := bare(t)
	place := filepath.Join(filepath.Dir(filepath.Dir(binGlobs[0])), "15", "bin")
	// A stand-in for the package manager that installs what it is asked for.
	script(t, filepath.Join(bin, "apt-get"), `[ "$1" = install ] && for p in postgres initdb; do /bin/mkdir -p `+place+
		` && : >`+place+`/$p && /bin/chmod 755 `+place+`/$p; done; exit 0`)
	t.Setenv("TMPDIR", t.TempDir())

	t.Setenv(EnvInstall, "0")
	_, err := binaries()
	require.ErrorContains(t, err, EnvInstall+" forbids it")

	t.Setenv(EnvInstall, "1")
	if os.Geteuid() != 0 {
		_, err = binaries()
		require.ErrorContains(t, err, "needs root")
		return
	}
	dir, err := binaries()
	require.NoError(t, err)
	require.Equal(t, place, dir)
}
