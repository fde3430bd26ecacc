package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAProgramThatTakesNoRunsFromAQueueIsNotTakenForOneThatExecutesThem(t *testing.T) {
	d := mailer(t)
	broken, _ := served(d.with("SHOP_FAIL=send"))
	d.drained("--store shop.db")
	require.NoError(t, broken.cmd.Process.Kill())
	_ = broken.wait()
	d.ok("shop enqueue mail-4 acme")
	_, url := served(d.with("SHOP_SERVES=others"))
	profileOf(d, "profiles:\n  prod: {server: \""+url+"\"}\n")

	for _, where := range []string{"--store shop.db", "--profile prod"} {
		require.Contains(t, d.ok("durable runs show mail-4 "+where).out, "no live process serves mail v1 from queue emails", where)
	}
	watch := d.ok("durable --store shop.db watch mail-4")
	require.Contains(t, watch.err, "Nobody executes mail-4 (pending).", "otherwise it would wait for ever")

	no := d.sh("durable --store shop.db resume mail-4")
	require.Equal(t, 4, no.code)
	require.Equal(t, "Session mail-4 is not resumable (status: pending): nobody alive who serves workflow mail takes runs from queue emails\n"+
		"Start a program that has its code and takes runs from emails. Follow it: durable watch mail-4 --store shop.db\n", no.err)
	no = d.sh("durable --store shop.db resume mail-1")
	require.Equal(t, 4, no.code)
	require.Contains(t, no.err, "Nobody alive who serves workflow mail takes runs from queue emails; this program lacks its code.")
	no = d.with("SHOP_SERVES=others").sh("shop durable resume mail-1")
	require.Equal(t, 4, no.code)
	require.Contains(t, no.err, "Nobody alive who serves workflow mail takes runs from queue emails; nor does this program.")

	d.ok("durable --store shop.db resume mail-1 --detach")
	_, _ = served(d.with("SHOP_SERVES=emails"))
	d.drained("--profile prod")
	require.Contains(t, d.ok("durable runs show mail-1 --profile prod").out, "completed")
}
