package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTallyCountsReadsAndKills(t *testing.T) {
	got, err := tally("begun a\nbegun b\nbegun c\nrecorded a\nkilled\nbegun b\nbegun c\nrecorded b\nrecorded c\n")
	require.NoError(t, err)
	require.Equal(t, Tally{Kills: 1, Files: 3, Reads: 5, Again: 2, Flight: 2}, got)
}

// The checks must be able to say no.
func TestTallyFindsReadsThatShouldNotHaveBeen(t *testing.T) {
	var many strings.Builder
	for i := range atOnce + 1 {
		many.WriteString("begun " + string(rune('a'+i)) + "\n")
	}
	for book, want := range map[string]string{
		"begun a\nrecorded a\nkilled\nbegun a\n": "though its outcome was recorded",
		"begun a\nbegun a\n":                     "without a kill",
		"recorded a\n":                           "never read",
		"begun a\n":                              "never recorded",
		"begun a\nbeg":                           "nobody writes",
		many.String() + "killed\n":               "in flight",
	} {
		_, err := tally(book)
		require.ErrorContains(t, err, want)
	}
}

func TestVerdictRefusesAnotherReport(t *testing.T) {
	good := Tally{Kills: 2, Files: 3, Reads: 4, Again: 1}
	require.NoError(t, verdict(io.Discard, good, 3, 2, "x\ny\n", "x\ny\n"))
	require.ErrorContains(t, verdict(io.Discard, good, 3, 2, "x\nz\n", "x\ny\n"), "line 2")
	require.ErrorContains(t, verdict(io.Discard, good, 4, 2, "x\n", "x\n"), "3 files were recorded")
	require.ErrorContains(t, verdict(io.Discard, good, 3, 5, "x\n", "x\n"), "only 2 of 5 kills")
	bad := good
	bad.Reads = 5
	require.ErrorContains(t, verdict(io.Discard, bad, 3, 2, "x\n", "x\n"), "5 reads of 3 files")
}

func TestMeasureReadsAFile(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "src", "a", "b")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "testdata"), 0o700))
	const text = `package b

import "os"

func F() error {
	if _, err := os.Stat("x"); err != nil {
		return err
	}
	go func() {}()
	return nil
}

func g() {}
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.go"), []byte(text), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.s"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "testdata", "bad.go"), []byte("no Go"), 0o600))
	files, err := sources(root)
	require.NoError(t, err)
	require.Equal(t, []string{"a/b/x.go"}, files)
	got, err := measure(root, files[0])
	require.NoError(t, err)
	require.Equal(t, Figures{
		File: "a/b/x.go", Lines: 13, Funcs: 2, Gos: 1, ErrChecks: 1,
		Longest: Func{"F", 7}, Imports: []string{"os"},
	}, got)
}
