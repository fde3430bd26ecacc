package main_test

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/otlptest"
)

func build(t *testing.T) string {
	bin := filepath.Join(t.TempDir(), "telemetry")
	if runtime.GOOS == "windows" {
		bin += ".exe"
	}
	out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	return bin
}

func TestARunOfThreeProcessesIsOneTraceWithEachAttemptOnce(t *testing.T) {
	bin := build(t)
	t.Run("with the receiver of the example", func(t *testing.T) { received(t, bin) })
	t.Run("with the endpoint of the environment", func(t *testing.T) { elsewhere(t, bin) })
}

func received(t *testing.T, bin string) {
	cmd := exec.CommandContext(t.Context(), bin)
	cmd.Env = append(cmd.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT=", "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "was killed")
	require.Contains(t, string(out), "Resuming from step 2 of 4: charge, attempt 2 of 5\n  skipped      reserve\n  re-executed  charge\n  to run       parcels, ship\n")
	require.Contains(t, string(out), "each attempt of the history is in it, once")
	require.Contains(t, string(out), "durable.step.attempt=3  durable.outcome=ok")
	require.Contains(t, string(out), "POST /charges")
	require.Contains(t, string(out), "durable.run.recovered: true")
}

func elsewhere(t *testing.T, bin string) {
	r, err := otlptest.Listen("127.0.0.1:0")
	require.NoError(t, err)
	defer r.Close()
	cmd := exec.CommandContext(t.Context(), bin, "-data", t.TempDir())
	cmd.Env = append(cmd.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT="+r.URL())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), r.URL())
	names := map[string]bool{}
	for _, s := range r.Spans() {
		names[s.Name] = true
		require.Equal(t, "shop", s.Resource["service.name"])
	}
	require.Subset(t, names, map[string]bool{"start checkout": true, "segment checkout": true, "attempt charge": true, "end checkout": true})
	require.NotEmpty(t, r.Points())
}
