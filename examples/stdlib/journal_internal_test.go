package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTallyCountsBodiesAndKills(t *testing.T) {
	got, err := tally("begun a\nrecorded a\nbegun b\nbegun c\nkilled 1\nrecorded a\nbegun b\nrecorded b\nbegun c\nrecorded c\n")
	require.NoError(t, err)
	require.Equal(t, Tally{Kills: 1, Packages: 3, Bodies: 5, Again: 2}, got)
}

// The checks must be able to say no.
func TestTallyFindsBodiesThatShouldNotHaveRun(t *testing.T) {
	for journal, want := range map[string]string{
		"begun a\nrecorded a\nkilled 1\nbegun a\n": "though its outcome was recorded",
		"begun a\nbegun a\n":                       "without a kill",
		"recorded a\n":                             "never ran",
		"begun a\nbeg":                             "nobody writes",
	} {
		_, err := tally(journal)
		require.ErrorContains(t, err, want)
	}
}

func TestVerdictRefusesAnotherReport(t *testing.T) {
	tally := Tally{Kills: 2, Packages: 3, Bodies: 4, Again: 1}
	require.NoError(t, verdict(io.Discard, tally, 3, 2, "x\ny\n", "x\ny\n"))
	require.ErrorContains(t, verdict(io.Discard, tally, 3, 2, "x\nz\n", "x\ny\n"), "line 2")
	require.ErrorContains(t, verdict(io.Discard, tally, 4, 2, "x\n", "x\n"), "3 packages were recorded")
	require.ErrorContains(t, verdict(io.Discard, tally, 3, 5, "x\n", "x\n"), "only 2 of 5 kills")
}

func TestMeasureReadsAPackage(t *testing.T) {
	root := t.TempDir()
	writePackage(t, root, "a/b", map[string]string{
		"x.go": `// Package b is small.
package b

import "fmt"

// F prints.
func F() {
	fmt.Println()
}

func g() {}

type T struct{}

func (T) M() {}

var A, b = 1, 2
`,
		"x_test.go": "package b\n\nfunc Helper() {}\n",
	})
	pkgs, err := packages(root)
	require.NoError(t, err)
	require.Equal(t, []string{"a/b"}, pkgs)
	got, err := measure(root, "a/b")
	require.NoError(t, err)
	require.Equal(t, Figures{
		Package: "a/b", Files: 2, Tests: 1, Lines: 20, CommentLines: 2, Funcs: 3, Exported: 4, Imports: 1,
		LongestFunc: "F", LongestLines: 3,
	}, got)
}
