package docs_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// The program of README.md is one that is compiled, and run twice.
func TestREADMEShowsAProgram(t *testing.T) {
	blocks := goBlock.FindAllStringSubmatch(read(t, "README.md"), -1)
	require.Len(t, blocks, 1)
	require.True(t, strings.HasSuffix(read(t, "examples/hello/main.go"), "\n"+blocks[0][1]))
	play(t, "./examples/hello", "$ go run .\nwelcome, ada@example.com\naccount of ada@example.com\n$ go run .\naccount of ada@example.com\n")
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

// The page on deploying has the program as it is compiled and run.
func TestTheProgramOfTheGuideIsTheExample(t *testing.T) {
	blocks := goBlock.FindAllStringSubmatch(read(t, "docs/guides/deploying.md"), -1)
	require.Len(t, blocks, 1)
	require.True(t, strings.HasSuffix(read(t, "examples/program/main.go"), "\n"+blocks[0][1]))
}
