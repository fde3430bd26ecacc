package cli_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	patience = 20 * time.Second
	pause    = 20 * time.Millisecond
)

func TestOfSeveralQuestionsOneIsNamedAndAnAnswerThatDoesNotFitIsRefused(t *testing.T) {
	d := newDesk(t)
	p := d.start("shop durable run two --id r --input '{}'")
	p.until("Agree?")
	p.until("At what price?")
	which := d.sh("durable --store shop.db approve r")
	require.Equal(t, 2, which.code)
	require.Regexp(t, `^r asks 2 things: .*left/agree.*\nSay which: --wait left/agree\n`, which.err)
	require.Equal(t, 3, d.sh("durable --store shop.db approve r --wait nothing").code)

	needs := d.sh("durable --store shop.db approve r --wait right/price")
	require.Equal(t, 2, needs.code)
	require.Contains(t, needs.err, "right/price does not wait for yes or no.\nGive the whole answer: --value 0\n")
	require.Contains(t, d.ok("durable --store shop.db sessions show r").out, "asks: At what price?", "the wait is still open")

	require.Equal(t, "Approved r: Agree?\n", d.ok("durable --store shop.db approve r --wait left/agree").out)
	require.Equal(t, "Approved r: At what price?\n", d.ok("durable --store shop.db approve r --value 42").out)
	p.until("word")
	require.Equal(t, "Sent word to r\n", d.ok(`durable --store shop.db signal r word --value '"go"'`).out)
	require.Zero(t, p.wait(), p.text())
	require.Contains(t, p.text(), `Workflow r completed: "true 42 go"`)
	require.Equal(t, 4, d.sh("durable --store shop.db signal r word").code, "it has ended")
}

// What is printed is not refused when it is pasted: not once the answer is there, and not where the
// run asks several things.
func TestShowSaysHowARunIsAnsweredOrWhoGoesOnOnceItWas(t *testing.T) {
	d := newDesk(t)
	p := d.start("shop durable run two --id r --input '{}'")
	p.until("  Answer: shop durable approve r --wait ") // of the second question
	shown := d.ok("durable --store shop.db show r").out
	require.Contains(t, shown, "\nAnswer it: durable approve r --wait left/agree --store shop.db\n")
	require.Contains(t, shown, "\nAnswer it: durable approve r --wait right/price --store shop.db\n")
	p.signal(15)
	require.Equal(t, 143, p.wait(), p.text())

	p = d.start("shop durable run checkout --id order-42 " + order)
	p.until("? Ship")
	p.signal(15)
	require.Equal(t, 143, p.wait(), p.text())
	require.Contains(t, d.ok("shop durable show order-42").out, "\nAnswer it: shop durable approve order-42\n")
	d.ok("shop durable approve order-42")
	shown = d.ok("shop durable show order-42").out
	require.NotContains(t, shown, "approve order-42", "it would be refused")
	require.Contains(t, shown, "\nIt was answered. Nobody executes it at the moment. Go on with: shop durable run checkout --resume order-42\n")
	require.Regexp(t, `(?m)^order-42\tnobody alive runs checkout\tshop durable run checkout --resume order-42$`, d.sh("durable --store shop.db stuck").out, "at once: somebody has to take the answer up")
	refused := d.sh("shop durable resume order-42")
	require.Equal(t, 4, refused.code)
	require.Contains(t, refused.err, "\nExecute it: shop durable run checkout --resume order-42\n")
	require.Contains(t, d.ok("shop durable run checkout --resume order-42").out, "Workflow order-42 completed")
}

// What a bad deploy has stopped is understood where it is shown, also by a program without the code.
func TestShowOfARunThatOtherCodeHasStoppedHasBothSidesAndNoSecondCommand(t *testing.T) {
	d := newDesk(t)
	p := d.start("shop durable run checkout --id order-42 " + order)
	p.until("? Ship")
	p.signal(15)
	require.Equal(t, 143, p.wait(), p.text())
	d.ok("shop durable approve order-42")
	d.with("SHOP_FRAUD=1").sh("shop durable run checkout --resume order-42")
	shown := d.ok("durable --store shop.db show order-42").out
	require.Regexp(t, `(?m)^Parked: Definition changed: order-42 \(checkout\) stopped at call 2, still resumable. … It goes on when .*
      recorded   code now
    1 reserve    reserve
  > 2 charge     check-fraud   .*$`, shown)
	require.Contains(t, shown, "\nIt was answered. It takes the answer once it goes on.\nResume with: shop durable run checkout --resume order-42\n")
	require.NotContains(t, shown, "Nobody executes it")
}

func TestABackupThatExistsIsRefusedWithTheWayOut(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	d.ok("durable --store shop.db schema backup b.db")
	a := d.sh("durable --store shop.db schema backup b.db")
	require.Equal(t, 2, a.code)
	require.Regexp(t, `b\.db exists already; give another name, or remove it\n$`, a.err)
}

func TestPauseHoldsARunUntilUnpauseAndCancelEndsIt(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	require.Equal(t, "Workflow order-42 paused\n", d.ok("durable --store shop.db pause order-42 --reason lunch").out)
	a := d.sh("shop durable resume order-42")
	require.Equal(t, 4, a.code)
	require.Equal(t, "Session order-42 is not resumable (status: interrupted): it is paused\nLet it go on: shop durable unpause order-42\n", a.err)
	require.NotContains(t, d.ok("shop durable sessions ls").out, "resumable")
	require.Equal(t, 4, d.sh("shop durable unpause nobody || durable --store shop.db unpause order-42 && durable --store shop.db unpause order-42").code)
	require.Contains(t, d.ok("durable --store shop.db cancel order-42").out, "Workflow order-42 is interrupted (cancelling)")
	d.sh("shop durable run checkout --resume order-42") // whoever has the code carries it out
	require.Regexp(t, `(?m)^order-42\tcheckout\tcancelled\t`, d.ok("shop durable sessions ls").out)
	require.Equal(t, 3, d.sh("shop durable cancel nobody").code)
}

func TestResumeCanBeHandedToAProgramThatServesTheWorkflow(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	p, _ := served(d) // it recovers, and has taken the run up by itself
	require.Eventually(t, func() bool { return d.sh("durable --store shop.db approve order-42").code == 0 }, patience, pause)
	watch := d.ok("durable --store shop.db watch order-42")
	require.Contains(t, watch.err, "Workflow order-42 completed")

	require.Equal(t, 1, d.with("SHOP_BANK=down").sh("shop durable run checkout --id order-43 "+order).code)
	resumed := d.ok("durable --store shop.db resume order-43 --reset-failures --detach")
	require.Equal(t, "Workflow order-43 resumed\n", resumed.out)
	require.Eventually(t, func() bool { return d.sh("durable --store shop.db approve order-43").code == 0 }, patience, pause)
	require.Contains(t, d.ok("durable --store shop.db watch order-43").err, "Workflow order-43 completed")
	p.signal(15)
}
