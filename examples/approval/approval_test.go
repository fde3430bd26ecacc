package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "approval")
	if runtime.GOOS == "windows" {
		bin += ".exe"
	}
	out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	return bin
}

func TestDeploymentGoesOnThoughEveryProcessThatAskedWasKilled(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), build(t))
	cmd.Env = append(cmd.Environ(), "TMPDIR="+t.TempDir())
	b, err := cmd.CombinedOutput()
	out := string(b)
	require.NoError(t, err, out)
	require.Regexp(t, `(?s)kill -9.*serve 2  durable.Recover found an open question.*kill -9.*says yes.*\(done\) shop:1.4.2 is in production`, out)
	require.Regexp(t, `(?s)says no.*\(done\) shop:1.5.0 stays out of production`, out)
	require.Contains(t, out, "nothing lost, nothing done twice")
}

func TestCommandsByHand(t *testing.T) {
	bin, dir := build(t), t.TempDir()
	run := func(args ...string) (string, error) {
		b, err := exec.CommandContext(t.Context(), bin, append([]string{"-dir", dir, "-as", "ada"}, args...)...).CombinedOutput()
		return string(b), err
	}
	out, err := run("list")
	require.NoError(t, err, out)
	require.Contains(t, out, "nothing waits")
	out, err = run("approve", "shop-1")
	require.Error(t, err)
	require.Contains(t, out, "shop-1")
	for range 2 { // idempotent by id
		out, err = run("start", "shop", "1")
		require.NoError(t, err, out)
	}
	out, err = run("approve", "shop-1") // before it was asked for
	require.NoError(t, err, out)

	serve := exec.CommandContext(t.Context(), bin, "-dir", dir, "serve")
	require.NoError(t, serve.Start())
	defer func() {
		_ = serve.Process.Kill()
		_ = serve.Wait()
	}()
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(filepath.Join(dir, "acts.txt"))
		return err == nil && string(b) == "build shop:1\ninstall shop:1 staging\ninstall shop:1 production\n"
	}, 20*time.Second, 20*time.Millisecond)
	require.Eventually(t, func() bool {
		out, err = run("reject", "shop-1", "too late")
		return err != nil
	}, 20*time.Second, 20*time.Millisecond)
	require.Contains(t, out, "has ended (completed)")

	for _, args := range [][]string{{"start", "shop"}, {"dance"}} {
		out, err = run(args...)
		require.Error(t, err)
		require.NotContains(t, out, "panic")
	}
}
