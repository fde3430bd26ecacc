package main_test

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOrderSurvivesSIGKILLInThirdAttempt(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "quickstart")
	if runtime.GOOS == "windows" {
		bin += ".exe"
	}
	out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, string(out))

	cmd := exec.CommandContext(t.Context(), bin)
	cmd.Env = append(cmd.Environ(), "TMPDIR="+t.TempDir())
	out, err = cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "kill -9")
	require.Contains(t, string(out), "charged already, same payment")
	require.Contains(t, string(out), "nothing lost, nothing done twice")
}
