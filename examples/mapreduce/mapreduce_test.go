package main_test

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReportOfEveryFileSurvivesKills(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "mapreduce")
	if runtime.GOOS == "windows" {
		bin += ".exe"
	}
	out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, string(out))

	cmd := exec.CommandContext(t.Context(), bin, "-kills", "5")
	cmd.Env = append(cmd.Environ(), "TMPDIR="+t.TempDir())
	out, err = cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Regexp(t, `kills +5\n`, string(out))
	require.Regexp(t, `files +[5-9]\d{3} recorded of`, string(out))
	require.Contains(t, string(out), "the same as computed without the library")
}
