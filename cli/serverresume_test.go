package cli_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/archive"
	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// resume knows the run by its id alone, and stays until the run ends or waits.
func TestResumeThroughAServerStaysUntilTheRunPausesOrEndsAndShowsTheResult(t *testing.T) {
	d := newDesk(t)
	p, url := served(d.with("SHOP_BANK=down", "SHOP_FAIL=add"))
	for _, line := range []string{"count --id sum --input 3", "checkout --id order-7 --input '{\"id\":\"order-7\"}'"} {
		require.Equal(t, 1, d.sh("durable run "+line+" --server "+url).code)
	}
	p.signal(9)
	p.wait()

	_, url = served(d) // and now it works
	to := " --server " + url
	a := d.ok("durable resume sum --reset-failures" + to)
	require.Equal(t, "Workflow sum resumed\nWorkflow sum completed: 3\n", a.out)

	a = d.ok("durable resume order-7 --reset-failures" + to)
	require.Equal(t, "Workflow order-7 resumed\norder-7 waits for a person. Answer it: durable approve order-7"+to+"\n", a.out)
	require.Equal(t, "Approved order-7: Ship order-7?\n", d.ok("durable approve order-7"+to).out)
	require.Contains(t, d.ok("durable watch order-7"+to).err, "Workflow order-7 completed")
}

// A run is archived, its process and its store are gone, and the history is there
// in the next one, at every door.
func TestArchivedRunsAreListedThroughTheServerOfTheNextProcess(t *testing.T) {
	d := newDesk(t)
	require.NoError(t, exec.Command("git", "init", "-q", d.dir).Run())
	double := durable.Define("double", func(ctx context.Context, n int) (int, error) {
		return durable.Step(ctx, "add", func(context.Context) (int, error) { return 2 * n, nil })
	})
	open := func() (*durable.Engine, *archive.History) {
		git, err := archive.OpenGit(t.Context(), d.dir, archive.GitOptions{})
		require.NoError(t, err)
		h := archive.Hydrate(t.Context(), git, nil)
		eng, err := durable.Open(t.Context(), memory.Open(), durable.Options{Workflows: []durable.Definition{double}, Archive: h, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		return eng, h
	}
	eng, _ := open()
	_, err := double.Run(durable.NewContext(t.Context(), eng), "double-1", 21)
	require.NoError(t, err)
	require.NoError(t, eng.Close()) // and its store, which was memory, is gone

	eng, h := open()
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	srv := httptest.NewServer(dashboard.Handler(eng, dashboard.Options{
		Archive: dashboard.ArchiveFrom("git", h.List),
	}))
	t.Cleanup(srv.Close)
	require.Regexp(t, `^double-1\tdouble\tcompleted\t\S+Z\t\S+\tgit\n$`, d.ok("durable history --server "+srv.URL).out)
	require.Empty(t, d.ok("durable history --status failed --server "+srv.URL).out)
	require.Equal(t, "No sessions.\n", d.ok("durable sessions ls --server "+srv.URL).err, "the store itself has nothing")
	resp, err := http.Get(srv.URL + "/runs/history")
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Regexp(t, `^{"runs":\[{.*"run_id":"double-1".*\],.*"source":"git"}\s*$`, string(body))
	require.Regexp(t, `^double-1\tdouble\tcompleted\t`, d.ok("durable history").out, "straight from git")
}

// What a server refuses is said in its words, whatever the reason; and what it
// does is done: resume ends with 0.
func TestResumeOverAServerIsRefusedInItsWordsAndEndsWithZeroWhenItIsDone(t *testing.T) {
	d := newDesk(t)
	p, url := served(d, "SHOP_BANK=down")
	begin := func(url, id string) *client.Client {
		t.Helper()
		c, err := client.New(url, client.Options{})
		require.NoError(t, err)
		_, err = c.Start(t.Context(), "checkout", client.StartRequest{ID: id, Input: json.RawMessage(`{"id":"` + id + `"}`), Exclusive: []string{"worktree:a"}})
		require.NoError(t, err)
		return c
	}
	until := func(c *client.Client, id, status string) {
		t.Helper()
		require.Eventually(t, func() bool {
			run, err := c.GetRun(t.Context(), id)
			return err == nil && run.Status == status
		}, 30*time.Second, 10*time.Millisecond, "%s %s", id, status)
	}
	until(begin(url, "order-42"), "order-42", "failed")
	require.Equal(t, 1, d.sh("durable run broken --id order-38 --input null --server "+url).code)
	p.signal(9)
	p.wait()

	_, url = served(d)
	profileOf(d, "profiles:\n  prod: {server: \""+url+"\"}\n")
	c := begin(url, "order-43")
	until(c, "order-43", "waiting")
	for id, want := range map[string]struct{ said, next string }{
		"order-42": {`its exclusive key "worktree:a" is held by run order-43`, "try again once the other run has ended"},
		"order-38": {"order-38 has no checkpoint", "Restart from its input: durable resume order-38 --force --profile prod"},
		"order-43": {"Session order-43 is not resumable (status: waiting)", "Answer it: durable approve order-43 --profile prod"},
	} {
		_, refused := c.Resume(t.Context(), id, client.ResumeOptions{})
		var e *client.Error
		require.ErrorAs(t, refused, &e, id)
		require.Equal(t, 409, e.Status, id)
		require.Contains(t, e.Message, want.said)
		if id == "order-43" {
			continue
		}
		require.Equal(t, answer{"", strings.Replace(e.Message, ". Force ", ". --force ", 1) + "\n" + want.next + "\n", 4}, d.sh("durable resume "+id+" --profile prod"), id)
	}
	// The terminal takes the route for a run that waits: it stays until the answer is due.
	require.Equal(t, answer{"Workflow order-43 resumed\norder-43 waits for a person. Answer it: durable approve order-43 --profile prod\n", "? Ship order-43?  Answer: durable approve order-43 --profile prod\n", 0}, d.sh("durable resume order-43 --profile prod"))
	until(c, "order-38", "failed")
	until(c, "order-42", "failed")
	require.Contains(t, d.ok("durable reject order-43 --profile prod").out, "order-43")
	until(c, "order-43", "failed")
	done := d.ok("durable resume order-42 --reset-failures --profile prod")
	require.Equal(t, "Workflow order-42 resumed\n", strings.SplitAfter(done.out, "\n")[0])
	until(c, "order-42", "waiting")
	d.ok("durable cancel order-42 --profile prod")
	require.Equal(t, "Workflow order-42 resumed\n", d.ok("durable resume order-42 --force --detach --profile prod").out)
}
