package docs_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/test/tried"
)

func TestTheTableOfTheProofIsMadeOfWhatTheTestsSaid(t *testing.T) {
	lines, err := os.Open("../tried/testdata/soak.txt")
	require.NoError(t, err)
	defer lines.Close()
	table, err := tried.Table(lines)
	require.NoError(t, err)
	page, err := os.ReadFile("../../docs/proof.md")
	require.NoError(t, err)
	want, err := tried.Insert(string(page), table)
	require.NoError(t, err)
	require.Equal(t, want, string(page), "go run ./test/tried/cmd/report <test/tried/testdata/soak.txt")
}
