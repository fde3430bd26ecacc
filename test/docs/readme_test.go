package docs_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// The README shows code of the quickstart, which is compiled and run; it may not
// drift from it.
func TestREADMEShowsTheQuickstart(t *testing.T) {
	blocks := goBlock.FindAllStringSubmatch(read(t, "README.md"), -1)
	require.NotEmpty(t, blocks)
	checkout := read(t, "examples/quickstart/checkout.go")
	for _, b := range blocks {
		require.True(t, strings.Contains(checkout, b[1]), "this block of README.md is not in examples/quickstart/checkout.go:\n%s", b[1])
	}
}

var command = regexp.MustCompile(`(?m)^(?:go run (\./\S+)|make ([a-z]+))`)

func TestREADMECommandsExist(t *testing.T) {
	makefile := read(t, "Makefile")
	found := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(read(t, "README.md"), -1) {
		for _, m := range command.FindAllStringSubmatch(block[1], -1) {
			found++
			require.Empty(t, checkShown(m[0], nil, makefile), m[0])
		}
	}
	require.Equal(t, 2, found)
}

// The page that a newcomer begins with has the program as it is compiled and run.
func TestTheProgramOfTheGuideIsTheExample(t *testing.T) {
	blocks := goBlock.FindAllStringSubmatch(read(t, "docs/guides/program.md"), -1)
	require.Len(t, blocks, 1)
	require.True(t, strings.HasSuffix(read(t, "examples/program/main.go"), "\n"+blocks[0][1]))
}
