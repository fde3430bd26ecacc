package main_test

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTripIsBookedOrUndoneWhereverTheAgencyIsKilled(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "saga")
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
	t.Run("as told", func(t *testing.T) {
		t.Parallel()
		out, err := run(t)
		require.NoError(t, err, out)
		require.Contains(t, out, "Killed 3 times: nothing is left of trip-lisbon")
	})
	t.Run("at every act", func(t *testing.T) {
		t.Parallel()
		out, err := run(t, "-kill", "book flight,book hotel,book car,cancel car,cancel hotel,cancel flight")
		require.NoError(t, err, out)
		require.Contains(t, out, "Killed 6 times: nothing is left of trip-lisbon")
	})
	t.Run("at no act there is", func(t *testing.T) {
		for _, acts := range []string{"book boat", "sell car", "book car,book car"} {
			_, err := run(t, "-kill", acts)
			require.Error(t, err)
		}
	})
}
