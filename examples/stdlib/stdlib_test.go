package main_test

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReportSurvivesKills(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "stdlib")
	if runtime.GOOS == "windows" {
		bin += ".exe"
	}
	out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, string(out))

	cmd := exec.CommandContext(t.Context(), bin, "-kills", "6")
	cmd.Env = append(cmd.Environ(), "TMPDIR="+t.TempDir())
	out, err = cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Regexp(t, `kills +6\n`, string(out))
	require.Contains(t, string(out), "identical to the one computed without the library")
}
