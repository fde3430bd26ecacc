package main_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/test/otlptest"
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
	requireIncreases(t, r.Points())
}

// requireIncreases holds what a backend computes from the counters: each series
// begins at zero, and the three processes are three.
func requireIncreases(t *testing.T, points []otlptest.Point) {
	type series struct{ instance, metric string }
	first, increase := map[series]float64{}, map[string]float64{}
	last := map[series]float64{}
	instances := map[any]bool{}
	for _, p := range points {
		instances[p.Resource["service.instance.id"]] = true
		if p.Kind != "sum" || !p.Monotonic {
			continue
		}
		s := series{fmt.Sprint(p.Resource["service.instance.id"]), p.Metric + " " + p.Attributes.String()}
		if _, known := first[s]; !known {
			first[s] = p.Value
			require.Zero(t, p.Value, "%s is exported before it counts", s.metric)
		}
		last[s] = p.Value
	}
	require.Len(t, instances, 3)
	for s, v := range last {
		increase[s.metric] += v - first[s]
	}
	// What the first two have counted since their last export died with them.
	require.Equal(t, 1.0, increase["durable.run.recovered durable.workflow.name=checkout"])
	require.Equal(t, 1.0, increase["durable.run.finished durable.run.status=completed durable.workflow.name=checkout"])
	require.Equal(t, 4.0, increase["durable.replay.steps durable.workflow.name=checkout"])
}
