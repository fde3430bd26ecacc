package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// childEnv names the directory of a process that the test starts and kills.
const childEnv = "HOLDFAST_DASHBOARD_CHILD"

// child is a program as its author would write it: a store, an engine, recovery,
// a server. It writes its address to a file, and runs until it is killed.
func child(dir string) int {
	err := func() error {
		ctx := context.Background()
		st, err := sqlite.Open(filepath.Join(dir, "runs.db"))
		if err != nil {
			return err
		}
		s := new(shop)
		if os.Getenv("SLOW") != "" {
			s.slow = make(chan struct{}) // for ever
		}
		eng, err := durable.Open(ctx, st, durable.Options{
			Workflows: []durable.Definition{s.workflow()}, OnBoot: durable.FailOnBoot, Lease: time.Second, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return err
		}
		if _, err := eng.Recover(ctx); err != nil {
			return err
		}
		l, err := dashboard.Listen(ctx, "127.0.0.1:0", dashboard.Options{})
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "address.new"), []byte("http://"+l.Addr().String()), 0o600); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(dir, "address.new"), filepath.Join(dir, "address")); err != nil {
			return err
		}
		return dashboard.Serve(ctx, l, eng, dashboard.Options{})
	}()
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// boot starts the program and returns a client of it, and what kills it.
func boot(t *testing.T, dir string, env ...string) (c *client.Client, kill func()) {
	t.Helper()
	address := filepath.Join(dir, "address")
	require.NoError(t, os.RemoveAll(address))
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "-test.run=^$")
	cmd.Env = append(append(os.Environ(), childEnv+"="+dir), env...)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	dead := false
	kill = func() {
		if !dead {
			dead = true
			_ = cmd.Process.Kill() // SIGKILL: nothing is cleaned up
			_ = cmd.Wait()
		}
	}
	t.Cleanup(kill)
	var url []byte
	require.Eventually(t, func() bool {
		url, err = os.ReadFile(address)
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	c, err = client.New(string(url), client.Options{HTTPClient: &http.Client{Transport: &checked{t: t}}})
	require.NoError(t, err)
	return c, kill
}

func waitFor(t *testing.T, c *client.Client, id, status string) client.Run {
	t.Helper()
	var run client.Run
	require.Eventually(t, func() bool {
		var err error
		run, err = c.GetRun(t.Context(), id)
		return err == nil && run.Status == status
	}, 20*time.Second, 10*time.Millisecond, "%s: %s", id, run.Status)
	return run
}

func TestTheWholeFlowOverHTTPWhileItsProcessIsKilled(t *testing.T) {
	dir := t.TempDir()
	c, kill := boot(t, dir)
	_, err := c.Start(t.Context(), "checkout", client.StartRequest{ID: "order-42", Input: json.RawMessage(`{"ID":"order-42","Total":7}`)})
	require.NoError(t, err)
	before := waitFor(t, c, "order-42", "waiting")
	kill()
	_, err = c.GetRun(t.Context(), "order-42")
	require.ErrorIs(t, err, client.ErrUnreachable)
	require.True(t, strings.HasPrefix(err.Error(), "Server not running"))

	c, _ = boot(t, dir)
	again := waitFor(t, c, "order-42", "waiting")
	require.Equal(t, before.Approvals, again.Approvals, "it asks what it asked, as it was")
	done, err := c.ResumeRun(t.Context(), "checkout", "order-42")
	require.NoError(t, err)
	require.Equal(t, "order-42", done.RunID)
	_, err = c.Answer(t.Context(), "order-42", client.Answer{Wait: again.Approvals[0].ID, Value: json.RawMessage(`true`)})
	require.NoError(t, err)
	waitFor(t, c, "order-42", "completed")
	steps := map[string]int{}
	for e, err := range c.History(t.Context(), "order-42", client.EventsOptions{}) {
		require.NoError(t, err)
		if e.Type == "step_completed" {
			steps[e.Key]++
		}
	}
	require.Equal(t, map[string]int{"reserve": 1, "charge": 1, "ship": 1}, steps, "nothing was done twice")
}

func TestARunThatARestartHasFailedIsResumedOverHTTP(t *testing.T) {
	dir := t.TempDir()
	c, kill := boot(t, dir, "SLOW=1")
	_, err := c.Start(t.Context(), "checkout", client.StartRequest{ID: "r", Input: json.RawMessage(`{"ID":"r","Total":7}`)})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		run, err := c.GetRun(t.Context(), "r")
		return err == nil && run.Steps == 1
	}, 20*time.Second, 10*time.Millisecond)
	kill() // in the middle of charge
	c, _ = boot(t, dir)
	run := waitFor(t, c, "r", "failed")
	require.True(t, run.Recoverable)
	require.Equal(t, "Server restarted while workflow was running", run.Reason)
	resumed, err := c.Resume(t.Context(), "r", client.ResumeOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"reserve"}, resumed.Plan.Skipped)
	waitFor(t, c, "r", "waiting")
	_, err = c.Approve(t.Context(), "r", "", "")
	require.NoError(t, err)
	waitFor(t, c, "r", "completed")
}
