package cli_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/sqlite"
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

// A run that a program has started, and not a person at a terminal, has recorded no command. That
// nobody executes it is said all the same, to whom sends it what it waits for, and to whom looks
// why it does not go on.
func TestAMessageToARunThatNobodyExecutesSaysSoAlsoWithoutACommandForIt(t *testing.T) {
	d := newDesk(t)
	st, err := sqlite.Open(filepath.Join(d.dir, "shop.db"))
	require.NoError(t, err)
	billing := durable.Define("billing", func(ctx context.Context, _ int) (int, error) {
		_, err := durable.Await[bool](ctx, "paid")
		return 0, err
	})
	asking := durable.Define("asking", func(ctx context.Context, _ int) (int, error) {
		_, err := durable.Await[bool](ctx, "agree", durable.Prompt("Agree?"))
		return 0, err
	})
	eng, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{billing, asking}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx := durable.NewContext(t.Context(), eng)
	_, err = billing.Start(ctx, "b", 0)
	require.NoError(t, err)
	_, err = asking.Start(ctx, "a", 0)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		list := d.ok("durable --store shop.db ls --status waiting").out
		return strings.Count(list, "\n") == 2
	}, patience, pause)
	require.Equal(t, answer{"Sent other to b\n", "b does not wait for other at the moment: the signal is kept until it does. Now it waits for paid.\n", 0}, d.ok("durable --store shop.db signal b other --value true"), "its program lives")
	require.NoError(t, eng.Close())
	require.NoError(t, st.Close())
	require.NotContains(t, d.ok("durable --store shop.db show b").out, "It has its signal", "it waits for it")

	const nobody = "Nobody executes %s at the moment. Start the program that has its code.\n"
	require.Equal(t, answer{"Sent paid to b\n", fmt.Sprintf(nobody, "b"), 0}, d.ok("durable --store shop.db signal b paid --value true"))
	require.Equal(t, answer{"Approved a: Agree?\n", fmt.Sprintf(nobody, "a"), 0}, d.ok("durable --store shop.db approve a"))
	shown := d.ok("durable --store shop.db show b").out
	require.Contains(t, shown, "\nIt has its signal paid. Start the program that has its code.\n")
	require.Contains(t, shown, "It has 1 signal that it does not wait for: other\n")
	require.Contains(t, d.ok("durable --store shop.db show b --json").out, `"kept_signals":["other"],"arrived_signals":["paid"]`)
	require.Contains(t, d.ok("durable --store shop.db show a").out, "\nIt was answered. Start the program that has its code.\n")
	require.NotContains(t, d.ok("durable --store shop.db show a").out, "It has its signal", "it is said once")
}
