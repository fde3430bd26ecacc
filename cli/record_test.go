package cli_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// object reads the JSON object that a command has printed.
func object(t *testing.T, a answer) map[string]any {
	t.Helper()
	var m map[string]any
	require.NoError(t, json.Unmarshal([]byte(a.out), &m), a.out)
	return m
}

func TestShowTellsTheWholeSessionAndWhenItWasSavedLast(t *testing.T) {
	d := newDesk(t, "BANK_KEY=s3cret", "SHOP_PAUSE=600ms") // between its checkpoints a second passes
	interrupted(d)
	show := timeless(d.ok("shop durable sessions show order-42").out)
	for _, line := range []string{
		`order-42  checkout v1  interrupted`,
		`Steps       1 of 4 done, iteration 1`,
		`Started     TIME, active .*, resumed 0 times`,
		`Checkpoint  6 at TIME`,
		`Environment dir ` + regexp.QuoteMeta(d.dir) + `, program shop, BANK_KEY=\[redacted\]`,
		`  ✓ reserve  .*`,
		`  ▸ charge   attempt 3 of 5  next.*`,
		`        1  TIME  .*  bank: 503`,
		`        2  TIME  .*  bank: timeout`,
		`  · approve`,
		`  · ship`,
		`Resume with: shop durable run checkout --resume order-42`,
	} {
		require.Regexp(t, `(?m)^`+line+`$`, show)
	}

	saved := func() string {
		s := object(t, d.ok("durable --store shop.db sessions show order-42 --json"))
		lines := strings.Split(strings.TrimSpace(d.ok("durable --store shop.db checkpoints list order-42 --all --json").out), "\n")
		last := object(t, answer{out: lines[len(lines)-1]})
		require.Equal(t, last["id"], s["checkpoint"], "of the last checkpoint")
		require.Equal(t, last["time"], s["last_checkpoint"])
		require.Contains(t, d.ok("durable --store shop.db sessions ls --json").out, `"last_checkpoint":"`+s["last_checkpoint"].(string)+`"`)
		return s["last_checkpoint"].(string)
	}
	s := object(t, d.ok("shop durable sessions show order-42 --json"))
	for field, want := range map[string]any{
		"id": "order-42", "workflow": "checkout", "version": "1", "status": "interrupted", "step": 2.0, "steps": 4.0, "steps_done": 1.0, "iteration": 1.0,
		"key": "charge", "attempt": 3.0, "max_attempts": 5.0, "resumable": true,
		"environment": map[string]any{"dir": d.dir, "program": "shop", "env": map[string]any{"BANK_KEY": "[redacted]"}},
	} {
		require.Equal(t, want, s[field], field)
	}
	require.NotEmpty(t, s["started_at"])
	first := saved()
	require.GreaterOrEqual(t, first, s["started_at"])
	began := object(t, d.ok("shop durable checkpoints show order-42 1 --json"))
	require.Equal(t, map[string]any{"id": "order-42", "total": 4200.0}, began["payload"].(map[string]any)["value"], "the input")

	again := d.terminal("shop durable resume order-42")
	again.until("? Ship order-42?")
	again.press(ctrlC)
	require.Equal(t, 130, again.end())
	saved()
	paid := object(t, d.ok("shop durable checkpoints show order-42 charge --json"))
	require.Equal(t, "paid", paid["payload"].(map[string]any)["value"], "the result of a step")
}

func TestUnderAResumeNothingIsEverStartedAfresh(t *testing.T) {
	d := newDesk(t, "SHOP_BANK=down") // what is started all the same ends
	d.ok("shop durable run count --id done --input 1")
	d.with("SHOP_FAIL=add").sh("shop durable run count --id broken --input 1")
	ran := d.journal()
	for line, want := range map[string]answer{
		"run checkout --resume nobody": {"", "Session not found: nobody\nList: shop durable sessions ls\n", 3},
		"run count --resume done":      {"", "Session done is not resumable (status: completed)\nCopy it: shop durable fork done --from 3\n", 4},
		"run checkout --resume broken": {"", "broken is a run of count, not of checkout.\nResume with: shop durable run count --resume broken\n", 4},
		"run checkout --resume-last":   {"", "Nothing to resume. List: shop durable sessions ls\n", 3},
	} {
		require.Equal(t, want, d.sh("shop durable "+line), line)
	}
	require.Equal(t, ran, d.journal(), "no step ran")
	require.Len(t, strings.Split(strings.TrimSpace(d.ok("shop durable sessions ls").out), "\n"), 2, "and no run was made")
}

func TestResumeLastContinuesTheOneThatWasInterruptedLatest(t *testing.T) {
	d := newDesk(t)
	interrupt := func(line, step string) {
		p := d.with("SHOP_HOLD=" + strings.Fields(step)[0]).start(line)
		d.until(step)
		p.signal(syscall.SIGINT)
		require.Equal(t, 130, p.wait(), p.text())
	}
	// The id that sorts last, and the run that was started first, is interrupted last.
	interrupt(`shop durable run checkout --id z --input '{"id":"z"}'`, "charge z")
	interrupt(`shop durable run checkout --id a --input '{"id":"a"}'`, "charge a")
	interrupt("shop durable run count --id other --input 1", "add 0")
	require.Regexp(t, `^Last interrupted session: other \(count, `, d.ok("shop durable resume --dry-run").err, "of any workflow")
	p := d.with("SHOP_HOLD=ship").start("shop durable run checkout --resume z")
	p.until("? Ship z?")
	d.ok("shop durable approve z")
	d.until("ship z")
	p.signal(syscall.SIGINT)
	require.Equal(t, 130, p.wait(), p.text())

	last := d.terminal("shop durable run checkout --resume-last")
	last.until("Last interrupted session: z (checkout, ")
	last.until("Workflow z resumed\n")
	last.until(`Workflow z completed: {"tracking":"H-7"}`)
	require.Zero(t, last.end())
	require.Equal(t, 1, strings.Count(strings.Join(d.journal(), "\n"), "reserve z"), "it was continued")
	require.Regexp(t, `^Last interrupted session: a `, d.terminalErr("shop durable run checkout --resume-last", "? Ship a?"))
}

// terminalErr runs a line until it shows text, interrupts it, and returns all that
// it showed.
func (d *desk) terminalErr(line, text string) string {
	d.t.Helper()
	s := d.terminal(line)
	s.until(text)
	s.press(ctrlC)
	require.Equal(d.t, 130, s.end())
	return plain(s.seen)
}

func TestOnlyResumableSessionsAreListedWhenThatIsAsked(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	d.ok("shop durable run count --id done --input 1")
	require.Equal(t, 1, d.sh("shop durable run broken --id empty").code)
	require.Contains(t, d.terminalErr(`shop durable run checkout --id waits --input '{"id":"waits"}'`, "? Ship waits?"), "interrupted")

	all := d.ok("shop durable sessions ls").out
	for id, marked := range map[string]bool{"order-42": true, "done": false, "empty": false, "waits": false} {
		line := regexp.MustCompile(`(?m)^` + id + `\t.*$`).FindString(all)
		require.NotEmpty(t, line, id)
		require.Equal(t, marked, strings.HasSuffix(line, "\tresumable"), line)
	}
	only := d.ok("shop durable sessions ls --resumable").out
	require.Contains(t, only, "order-42\t")
	require.Len(t, strings.Split(strings.TrimSpace(only), "\n"), 1, only)
	require.Equal(t, 3, d.sh("shop durable sessions show nobody").code)
}

// A session without any state has nothing to be resumed from. It says so, and how to
// start it afresh; it is listed, and cleaned by hand.
func TestASessionWithoutStateIsNotResumableButListedAndCleaned(t *testing.T) {
	d := newDesk(t)
	require.Equal(t, 1, d.sh("shop durable run broken --id failed").code)
	p := d.with("SHOP_HOLD=reserve").start("shop durable run checkout --id killed " + order)
	d.until("reserve order-42")
	p.signal(syscall.SIGKILL)
	p.wait()
	kept := d.with("SHOP_HOLD=charge").start("shop durable run checkout --id kept --input '{\"id\":\"kept\"}'")
	d.until("charge kept")
	kept.signal(syscall.SIGKILL)
	kept.wait()

	for _, id := range []string{"failed", "killed"} {
		a := d.sh("shop durable resume " + id)
		require.Equal(t, answer{"", "Workflow " + id + " has no checkpoint.\nRestart from its input: shop durable resume " + id + " --force\n", 4}, a)
		show := d.ok("shop durable sessions show " + id)
		require.Contains(t, show.out, "It has no checkpoint. Restart from its input: shop durable resume "+id+" --force\n")
		require.NotContains(t, show.out, "Resume with:")
		require.Equal(t, false, object(t, d.ok("shop durable sessions show "+id+" --json"))["resumable"])
	}
	begins := "Start the program that has its code; durable.Recover restarts it there, too.\n"
	require.Contains(t, d.ok("shop durable sessions show killed").out, begins)
	require.NotContains(t, d.ok("shop durable sessions show failed").out, begins, "it has ended")
	require.Contains(t, d.ok("shop durable sessions show kept").out, "Resume with: shop durable run checkout --resume kept\n")
	list := d.ok("shop durable sessions ls").out
	require.Regexp(t, `(?m)^failed\tbroken\tfailed\t.*Z\t-\t-$`, list)
	require.Regexp(t, `(?m)^killed\tcheckout\trunning\t.*Z\t-\t-$`, list)
	require.Regexp(t, `^kept\t.*resumable\n$`, d.ok("shop durable sessions ls --resumable").out)
	require.Equal(t, "Removed 1 session.\n", d.ok("shop durable sessions clean --older-than 0d --yes").out, "what has ended")
	require.Equal(t, "Removed 2 sessions.\n", d.ok("shop durable sessions clean --all --yes").out)
	require.Equal(t, "No sessions.\n", d.ok("shop durable sessions ls").err)
}

func TestIdsOfAnyStyleAreShownAndResumed(t *testing.T) {
	d := newDesk(t)
	for _, id := range []string{"cook-1757231340", "session-8f14e45f-ceea-467f-a0e6-6c0e1b2d3f4a", "checkout-2026-03-14-k7m2", "Order 42/ä"} {
		require.Equal(t, 1, d.with("SHOP_FAIL=add").sh("shop durable run count --input 1 --id '"+id+"'").code)
		require.Contains(t, d.ok("shop durable sessions show '"+id+"'").out, id+"  count v1  failed")
		require.Contains(t, d.ok("shop durable resume --reset-failures '"+id+"'").out, "Workflow "+id+" completed: 0")
	}
}
