package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
)

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
	require.Equal(t, 1, d.sh("durable run broken --id order-38 --server "+url).code)
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
		require.Equal(t, answer{"", e.Message + "\n" + want.next + "\n", 4}, d.sh("durable resume "+id+" --profile prod"), id)
	}
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
