package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What is wrong with a checkpoint is said with the run, the checkpoint and the
// command to run next, and that command works when it is pasted.
func TestAProblemWithACheckpointNamesItTheRunAndTheNextCommand(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	store := "durable --store shop.db "
	for _, c := range []struct{ line, message, next string }{
		{"shop durable resume order-42 --from-checkpoint 99", "run order-42 has no checkpoint 99:", "List: shop durable checkpoints list order-42"},
		{"shop durable resume order-42 --from-checkpoint ship", "run order-42 has no checkpoint ship:", "List: shop durable checkpoints list order-42"},
		{store + "checkpoints show order-42 99", "checkpoint 99", "durable checkpoints list order-42 --store shop.db"},
	} {
		a := d.sh(c.line)
		require.NotZero(t, a.code, c.line)
		require.Contains(t, a.err, c.message, c.line)
		require.Contains(t, a.err, "order-42", c.line)
		require.Contains(t, a.err, c.next, c.line)
	}

	damage(d, "charge", 2)
	a := d.sh(store + "checkpoints export order-42")
	require.Equal(t, 4, a.code, a.err)
	require.Contains(t, a.err, "run order-42: event 5 is damaged: ")
	require.Contains(t, a.err, "\nMend: durable checkpoints repair order-42 --dry-run --store shop.db\n")
	require.Contains(t, d.ok("durable checkpoints repair order-42 --dry-run --store shop.db").out, "Dry run: nothing changed.")
}

// The ordinary commands know what an interrupted run is, and print the id and the
// command that go on with it.
func TestTheOrdinaryCommandsKnowInterruptedRuns(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	const resume = "Resume with: shop durable run checkout --resume order-42\n"
	require.Regexp(t, `(?m)^order-42\tcheckout\tinterrupted\t`, d.ok("shop durable sessions ls --resumable").out)
	require.Contains(t, d.ok("shop durable sessions show order-42").out, resume)
	again := d.sh("shop durable run checkout --id order-42 " + order)
	require.Equal(t, 4, again.code, again.err)
	require.Equal(t, "Session order-42 exists already (status: interrupted)\n"+resume, again.err)
	watch := d.sh("shop durable watch order-42")
	require.Contains(t, watch.err, "Nobody executes order-42 (interrupted")
	require.Contains(t, watch.err, resume)

	require.Contains(t, d.ok(`shop durable cancel order-42 --reason "changed my mind"`).out, "Workflow order-42 is interrupted (cancelling)")
	ran := d.journal()
	d.sh("shop durable run checkout --resume order-42") // whoever has the code carries it out, compensations included
	require.Regexp(t, `(?m)^order-42\tcheckout\tcancelled\t`, d.ok("shop durable sessions ls").out)
	require.Equal(t, ran, d.journal(), "no further body began")
	require.Empty(t, d.ok("shop durable sessions ls --resumable").out)
	require.NotContains(t, d.ok("shop durable sessions show order-42").out, resume)
	require.Equal(t, 3, d.sh("shop durable resume").code, "there is nothing to resume any more")
}

// Where the history of a run was cut, and what was left behind there, stays to be
// seen.
func TestBranchesShowWhereAHistoryWasCutAndWhatItLeftBehind(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	damage(d, "charge", 2)
	d.ok("durable --store shop.db checkpoints repair order-42")
	branches := d.ok("durable --store shop.db branches order-42").out
	require.Equal(t, "0\t-\t-\t6\t-\t-\t-\t-\n"+
		"1\t0\t3\t1\t3\t-\trepair: the history is sound up to event 3 and damaged from event 5\tcurrent\n", branches,
		"cut behind event 3 of branch 0, three events left behind, and why")
	list := d.ok("durable --store shop.db checkpoints list order-42 --all").out
	for _, seq := range []string{"4", "5", "6"} {
		require.Regexp(t, `(?m)^`+seq+`\torder-42\t.*(left behind|corrupt)`, list)
	}
	require.Regexp(t, `(?m)^3\torder-42\treserve\t.*\tok$`, list)
}
