package main_test

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/test/pgtest"
)

func TestMoneyIsMovedOnceHoweverOftenTheWorkerIsKilledOrCutOff(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "transfer")
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
	t.Run("killed on SQLite", func(t *testing.T) {
		out, err := run(t, "-kills", "15", "-transfers", "100")
		require.NoError(t, err, out)
		require.Contains(t, out, "Killed 15 times: the accounts hold 10000 as they did")
	})
	t.Run("killed on PostgreSQL", func(t *testing.T) {
		out, err := run(t, "-kills", "4", "-transfers", "40", "-dsn", pgtest.DSN(t))
		require.NoError(t, err, out)
		require.Contains(t, out, "Killed 4 times: the accounts hold 10000 as they did")
	})
	t.Run("cut off at COMMIT", func(t *testing.T) {
		out, err := run(t, "-cuts", "30", "-transfers", "40", "-dsn", pgtest.DSN(t))
		require.NoError(t, err, out)
		require.Contains(t, out, "cut 30 times at COMMIT: the accounts hold 10000 as they did")
	})
	t.Run("asked for what there is not", func(t *testing.T) {
		for _, args := range [][]string{{"-store", "mysql"}, {"-kills", "-1"}, {"-transfers", "0"}} {
			_, err := run(t, args...)
			require.Error(t, err)
		}
	})
}
