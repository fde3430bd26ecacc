package cli_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mailer is a desk with three mails in line, two of them of one customer, that nobody
// executes.
func mailer(t *testing.T) *desk {
	d := newDesk(t, "SHOP_QUEUE=1")
	d.ok("shop boot")
	d.ok("shop enqueue mail-1 acme")
	d.ok("shop enqueue mail-2 acme")
	d.ok("shop enqueue mail-3 globex")
	return d
}

func TestQueuesAreListedShownPausedAndResumed(t *testing.T) {
	d := mailer(t)
	ago := regexp.MustCompile(`\t\d+ s\t`)
	ls := func() string { return ago.ReplaceAllString(d.ok("durable --store shop.db queues ls").out, "\tAGE\t") }
	require.Equal(t, "emails\t0 of 2\t3\tAGE\t0\t0\t100 in 1 min\tno live process serves them\n", ls())

	require.Equal(t, "Queue emails paused\n", d.ok(`durable --store shop.db queues pause emails --reason "the provider is down"`).out)
	require.Equal(t, "emails\t0 of 2\t3\tAGE\t0\t0\t100 in 1 min\tthe queue is paused: “the provider is down”\n", ls())
	show := timeless(d.ok("durable --store shop.db queues show emails").out)
	require.Equal(t, `emails  paused: the provider is down
Running     0 of 2, 1 of each partition at most
In line     3, the oldest since TIME
  3         the queue is paused: “the provider is down”
Later       0
Rate        100 in TOOK; 0 in the last one
Failed      0
acme	0	2
globex	0	1
Let it go on: durable queues resume emails --store shop.db
`, show)
	run := d.ok("durable --store shop.db runs show mail-2")
	require.Contains(t, run.out, "2nd in line of emails, partition acme")
	require.Contains(t, run.out, "the queue is paused: “the provider is down”")

	require.Equal(t, "Queue emails resumed\n", d.ok("durable --store shop.db queues resume emails").out)
	require.Contains(t, ls(), "no live process serves them")

	s := d.terminal("durable --store shop.db queues ls")
	require.Zero(t, s.end())
	require.Equal(t, `QUEUE   RUNNING  IN LINE  OLDEST  LATER  FAILED  RATE          WHY
emails  0 of 2   3        TOOK     0      0       100 in TOOK  no live process serves them
`, strings.ReplaceAll(timeless(plain(s.seen)), "TOOK   ", "TOOK   "))

	var q map[string]any
	require.NoError(t, json.Unmarshal([]byte(d.ok("durable --store shop.db queues show emails --json").out), &q))
	require.EqualValues(t, 3, q["in_line"])
	require.EqualValues(t, 60_000, q["per_ms"])
	require.Equal(t, "unserved", q["waits"].([]any)[0].(map[string]any)["reason"])

	lost := d.sh("durable --store shop.db queues pause emial")
	require.Equal(t, answer{"", "There is no queue emial\nList: durable queues ls --store shop.db\n", 3}, lost)
	require.Equal(t, answer{"", "No queues.\n", 0}, newDesk(t).sh("shop durable queues ls"))
	require.Contains(t, d.ok("shop __complete durable queues pause ''").out, "emails\n")
}

// drained waits until nothing of the queue is in line or holds a place.
func (d *desk) drained(where string) {
	d.t.Helper()
	require.Eventually(d.t, func() bool {
		return regexp.MustCompile(`^emails\t0 of 2\t0\t`).MatchString(d.ok("durable queues ls " + where).out)
	}, 30*time.Second, 50*time.Millisecond)
}

func TestDeadLettersAreListedAndRetriedOnAStoreAndThroughAServer(t *testing.T) {
	d := mailer(t)
	broken, _ := served(d.with("SHOP_FAIL=send"))
	d.drained("--store shop.db")
	require.NoError(t, broken.cmd.Process.Kill())
	_ = broken.wait()

	dead := d.ok("durable --store shop.db queues dead emails")
	require.Regexp(t, `(?m)\Amail-1\tmail\tacme\t\S+\tstep send: send is out of order$`, dead.out)
	require.Len(t, strings.Split(strings.TrimSpace(dead.out), "\n"), 3)
	require.Equal(t, "mail-1\nmail-2\nmail-3\nDry run: nothing changed. 3 runs would get in line of emails again.\n", timeless(d.ok("durable --store shop.db queues retry emails --all --dry-run").out))
	one := d.ok("durable --store shop.db queues retry emails mail-1 --dry-run")
	require.Contains(t, one.out, "skipped      render")
	require.Contains(t, one.out, "Dry run: nothing changed, nothing ran.")
	require.Equal(t, "Workflow mail-1 is in line of emails again\n", d.ok("durable --store shop.db queues retry emails mail-1").out)
	no := d.sh("durable --store shop.db queues retry emails mail-1")
	require.Equal(t, 4, no.code)
	require.Contains(t, no.err, "it has not failed")
	require.Equal(t, 2, d.sh("durable --store shop.db queues retry emails").code, "one, or all")
	require.Equal(t, 2, d.sh("durable --store shop.db queues retry emails mail-2 --all").code)

	_, url := served(d)
	profileOf(d, "profiles:\n  prod: {server: \""+url+"\"}\n")
	d.drained("--profile prod")
	require.Contains(t, d.ok("durable queues dead emails --profile prod").out, "mail-2\tmail\tacme\t")
	require.Equal(t, "mail-2\nmail-3\n2 runs in line of emails again.\n", d.ok("durable queues retry emails --all --profile prod").out)
	d.drained("--profile prod")
	require.Contains(t, d.ok("durable runs show mail-2 --profile prod").out, "completed")
	require.Equal(t, 3, strings.Count(strings.Join(d.journal(), "\n"), "render "), "what was done is not done again")
	require.Equal(t, answer{"", "No run of emails has failed.\n", 0}, d.sh("durable queues dead emails --profile prod"))

	require.Equal(t, "Queue emails paused\n", d.ok("durable queues pause emails --reason deploy --profile prod").out)
	d.ok("shop enqueue mail-4 acme")
	require.Contains(t, d.ok("durable runs show mail-4 --profile prod").out, "1st in line of emails, partition acme; the queue is paused: “deploy”")
	require.Equal(t, answer{"", "There is no queue nosuch\nList: durable queues ls --profile prod\n", 3}, d.sh("durable queues show nosuch --profile prod"))
	require.Equal(t, "Queue emails resumed\n", d.ok("durable queues resume emails --profile prod").out)
	d.drained("--profile prod")
}
