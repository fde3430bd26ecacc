package docs_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What docs/guides/changing-data.md tells people to write is compiled and run.
func TestChangingDataShowsTheExamples(t *testing.T) {
	blocks := goBlock.FindAllStringSubmatch(read(t, "docs/guides/changing-data.md"), -1)
	require.Len(t, blocks, 2)
	examples := read(t, "durable/example_data_test.go")
	for _, b := range blocks {
		require.True(t, strings.Contains(examples, b[1]), "this block of docs/guides/changing-data.md is not in durable/example_data_test.go:\n%s", b[1])
	}
}

// What docs/care.md tells people to write is code that is compiled and run.
func TestCareShowsTheExamples(t *testing.T) {
	blocks := goBlock.FindAllStringSubmatch(read(t, "docs/care.md"), -1)
	require.Len(t, blocks, 6)
	examples := read(t, "operate/example_care_test.go") + read(t, "operate/example_clean_test.go")
	for _, b := range blocks {
		require.True(t, strings.Contains(examples, b[1]), "this block of docs/care.md is in no example:\n%s", b[1])
	}
}
