package pgtest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/test/syspackage"
)

// Where packages put the server programs when PATH does not have them. Debian
// and its family, Red Hat, Alpine and Arch, Homebrew on both processors,
// MacPorts, Postgres.app, the BSDs.
var binGlobs = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/libexec/postgresql*",
	"/usr/lib/postgresql*/bin",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
	"/opt/local/lib/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/usr/local/pgsql/bin",
	"/usr/local/bin",
	"/usr/local/lib/postgresql*/bin",
}

// binaries returns a directory that holds postgres and initdb, installing the
// system package if there is none and that is possible.
func binaries() (string, error) {
	if dir := find(); dir != "" {
		return dir, nil
	}
	why := installable()
	if why == "" {
		if err := install("postgresql", func() bool { return find() != "" }); err != nil {
			return "", fmt.Errorf("%w, and installing them failed: %w; %s", errNoPrograms, err, remedy)
		}
		if dir := find(); dir != "" {
			return dir, nil
		}
		why = "the package was installed but its programs are not where they are expected"
	}
	return "", fmt.Errorf("%w; not installed because %s; %s", errNoPrograms, why, remedy)
}

var errNoPrograms = errors.New("no PostgreSQL server programs (postgres, initdb) found")

// LeftOut returns what to say where the tests that need a server are left out, which
// is an error if they are required, or "".
func LeftOut() (line string, err error) {
	switch {
	case os.Getenv(EnvSkip) == "skip":
		return leftOut + EnvSkip + "=skip", nil
	case os.Getenv(EnvDSN) != "":
		return "", nil
	}
	_, err = binaries()
	if missing(err) {
		return leftOut + err.Error(), nil
	}
	return "", err
}

const leftOut = "the tests on PostgreSQL were left out: "

// missing reports whether err says that the machine has no server, and nobody
// requires one.
func missing(err error) bool {
	return errors.Is(err, errNoPrograms) && os.Getenv(EnvSkip) != "required"
}

// Programs returns the directory of PostgreSQL's programs: pg_dump and others.
func Programs(t testing.TB) string {
	t.Helper()
	skip(t)
	dir, err := binaries()
	if missing(err) {
		t.Skip(leftOut, err)
	}
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return dir
}

const remedy = "install PostgreSQL 13 or later (Debian, Ubuntu: apt-get install postgresql; macOS: brew install postgresql), " +
	"or set " + EnvDSN + " to a server the tests may create databases on, and set " + EnvSkip + "=required to make a missing server an error"

func find() string {
	var dirs []string
	if p, err := exec.LookPath("postgres"); err == nil {
		// A link on PATH points to the directory that has the other programs.
		if real, err := filepath.EvalSymlinks(p); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
		dirs = append(dirs, filepath.Dir(p))
	}
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, g := range binGlobs {
		found, _ := filepath.Glob(g) // the patterns are constants and well formed
		slices.SortFunc(found, newestFirst)
		dirs = append(dirs, found...)
	}
	for _, d := range dirs {
		if executable(filepath.Join(d, "postgres")) && executable(filepath.Join(d, "initdb")) {
			return d
		}
	}
	return ""
}

// newestFirst orders directories by the version in their names: 15 before 9.6.
func newestFirst(a, b string) int {
	if c := slices.Compare(numbers(b), numbers(a)); c != 0 {
		return c
	}
	return cmp.Compare(a, b)
}

func numbers(s string) (ns []int) {
	for _, f := range strings.FieldsFunc(s, func(r rune) bool { return r < '0' || r > '9' }) {
		n, _ := strconv.Atoi(f)
		ns = append(ns, n)
	}
	return ns
}

func executable(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0
}

// installable returns why the system package cannot be installed, or "".
func installable() string { return syspackage.Refused(EnvInstall) }

// install installs a system package.
func install(name string, there func() bool) error {
	return syspackage.Install("pgtest", name, EnvInstall, there)
}
