package cli_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A signal without a value would be a no to a wait for a yes or a no.
func TestASignalWithoutAValueIsSentOnlyToAWaitThatTakesNothing(t *testing.T) {
	d := newDesk(t)
	p := d.start("shop durable run two --id t --input '{}'")
	p.until("At what price?")
	p.until("Agree?")
	a := d.sh("durable --store shop.db signal t agree")
	require.Equal(t, answer{"", "agree has no value, and t waits for true or false.\nGive the value: durable signal t agree --value true --store shop.db, or durable signal t agree --value false --store shop.db\n", 2}, a)
	a = d.sh("durable --store shop.db signal t agree --value null")
	require.Equal(t, 2, a.code, "%s%s", a.out, a.err)
	require.Contains(t, a.err, "waits for true or false, and the signal is null")
	a = d.sh("durable --store shop.db signal t word")
	require.Equal(t, answer{"", "word has no value, and it is not known whether t takes it without one.\nGive the value: --value JSON, or send none: --value null\n", 2}, a)
	require.NotContains(t, p.text(), "rejected")
	p.signal(syscall.SIGINT)
	require.Equal(t, 130, p.wait())

	p = d.start("shop durable run opens --id o --input '{}'")
	p.until("Wait: open")
	require.Equal(t, answer{"Sent open to o\n", "", 0}, d.ok("durable --store shop.db signal o open"))
	require.Zero(t, p.wait(), p.text())
	require.Equal(t, 4, d.sh("durable --store shop.db signal o open").code, "it has ended")
}

// A name that is mistyped, or comes early, is told.
func TestASignalThatNoWaitIsForSaysThatItIsKeptAndWhatTheRunWaitsFor(t *testing.T) {
	d := newDesk(t)
	p := d.start("shop durable run two --id t --input '{}'")
	p.until("At what price?")
	p.until("Agree?")
	a := d.ok(`durable --store shop.db signal t agreed --value true`)
	require.Equal(t, answer{"Sent agreed to t\n", "t does not wait for agreed at the moment: the signal is kept until it does. Now it waits for agree and price.\n", 0}, a)
	require.JSONEq(t, `{"id":"t","signal":"agreed","awaited":false,"waits_for":["agree","price"]}`, d.ok(`durable --store shop.db signal t agreed --value true --json`).out)
	require.Contains(t, d.ok("durable --store shop.db show t").out, "It has 1 signal that it does not wait for: agreed\n", "whoever sent it, and whenever")
	require.Contains(t, d.ok("durable --store shop.db show t --json").out, `"kept_signals":["agreed"]`)
	require.Equal(t, answer{"", "Nothing is stuck.\nt waits for agree, price, and has 1 signal that it does not wait for: agreed\n", 0}, d.sh("durable --store shop.db stuck"), "it may come early, so it is told and no alarm")
	require.Equal(t, answer{"", "", 0}, d.sh("durable --store shop.db stuck --json"))
	require.Equal(t, answer{"Sent agree to t\n", "", 0}, d.ok(`durable --store shop.db signal t agree --value true`))
	p.signal(syscall.SIGINT)
	require.Equal(t, 130, p.wait())

	d.ok("shop many 1 early")
	a = d.ok("durable --store shop.db signal early word --value 1")
	require.Contains(t, a.err, "early does not wait for word at the moment: the signal is kept until it does. It waits for no signal now.\n")
}
