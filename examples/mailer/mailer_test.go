package main_test

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEachMailIsDeliveredOnceWithinAllLimitsWhoeverIsKilled(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "mailer")
	if runtime.GOOS == "windows" {
		bin += ".exe"
	}
	out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	run := func(t *testing.T, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), bin, args...)
		cmd.Env = append(cmd.Environ(), "TMPDIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		out, err := run(t, "-flood", "60", "-kills", "4")
		require.NoError(t, err, out)
		require.Contains(t, out, "on Send again: 0 mails are put in line, 60 were there")
		for _, night := range []string{"2025-03-29T01:00:00Z", "2025-03-30T01:00:00Z", "2025-03-31T00:00:00Z", "now-by-hand"} {
			require.Contains(t, out, "nightly-digest@"+night+" has sent 4 mails")
		}
		require.Contains(t, out, "and once more: 0 digests are started, 3 were there")
		require.Contains(t, out, "Killed 4 times: each of the 97 mails was delivered once")
	})
	t.Run("left alone", func(t *testing.T) {
		t.Parallel()
		out, err := run(t, "-flood", "20", "-kills", "0")
		require.NoError(t, err, out)
		require.Contains(t, out, "though 0 were handed over again")
	})
	t.Run("asked for what there is not", func(t *testing.T) {
		for _, args := range [][]string{{"-flood", "0"}, {"-kills", "-1"}, {"-seed", "x"}} {
			_, err := run(t, args...)
			require.Error(t, err)
		}
	})
}
