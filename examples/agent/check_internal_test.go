package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The demonstration's verdict must be able to be "no".
func TestCheckFindsWhatWentWrong(t *testing.T) {
	const questions = "asked ada 1\nasked ada 3\nasked ada 3\nasked ada 5\nasked bob 1\nasked bob 3\nasked bob 5\nasked cy 1\nasked cy 3\n"
	const refunds = "a-key 7 40 EUR\n"
	verdict := func(questions, refunds string) error {
		s := &stage{dir: t.TempDir()}
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, questionsName), []byte(questions), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, refundsName), []byte(refunds), 0o600))
		return s.check()
	}
	require.NoError(t, verdict(questions, refunds))
	require.ErrorContains(t, verdict(questions+"asked ada 1\n", refunds), `"ada 1" 2 times`)
	require.ErrorContains(t, verdict("asked ada 1\n", refunds), "1 questions, not 8")
	require.ErrorContains(t, verdict(questions, refunds+"another 7 40 EUR\n"), "the bank's book")
}
