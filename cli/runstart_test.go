package cli_test

import (
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"
)

// A function that takes an input would run with its zero value.
func TestARunIsNotStartedWithAnInputThatNobodyHasGiven(t *testing.T) {
	d := newDesk(t)
	for workflow, like := range map[string]string{"checkout": `'{"id":"","total":0}'`, "count": "0"} {
		a := d.sh("shop durable run " + workflow + " --id new")
		require.Equal(t, answer{"", workflow + " takes an input, and none is given\nGive it: --input " + like + " (with your values), or --input null for its zero value\n", 2}, a)
	}
	require.Equal(t, 3, d.sh("shop durable show new").code)
	d.ok("shop durable run count --id zero --input null")
	require.Equal(t, 1, d.sh("shop durable run broken --id none").code, "it takes no input, and runs")

	p, url := served(d)
	for _, place := range []string{"--store shop.db", "--server " + url} {
		a := d.sh("durable " + place + " run broken --id new")
		require.Equal(t, answer{"", "no input is given, and it is not known here whether broken takes one\nGive it: --input JSON (with your values), or --input null for its zero value\n", 2}, a)
		require.Equal(t, 3, d.sh("durable "+place+" show new").code)
		d.ok("durable " + place + " run count --input null")
	}
	require.NoError(t, p.cmd.Process.Kill())
	_ = p.wait()
}

func TestAnInputOfAnotherTypeIsRefusedWhereTheCodeIs(t *testing.T) {
	d := newDesk(t)
	served(d)
	for _, detach := range []string{"", " --detach"} {
		for _, input := range []string{`"two"`, `{"total":"x"}`, `{"totl":1}`} {
			a := d.sh("shop durable run checkout --id new --input '" + input + "'" + detach)
			require.Equal(t, 2, a.code, "%s%s", a.out, a.err)
			require.Contains(t, a.err, "the input is no main.Order: ")
			require.NotContains(t, a.err, "invalid argument")
			require.Contains(t, a.err, "\nIt is like --input '{\"id\":\"\",\"total\":0}'\n")
		}
	}
	require.Equal(t, 3, d.sh("shop durable show new").code)
}

func TestARunIsPutInLineByTheTerminal(t *testing.T) {
	d := newDesk(t, "SHOP_QUEUE=1")
	d.ok("shop boot")
	line := "run mail --input '\"m\"' --queue emails --partition acme --priority 2 --dedup m --attribute tenant=acme"
	a := d.ok("shop durable " + line + " --id mail-1")
	require.Equal(t, "mail-1\n", a.out)
	require.Contains(t, a.err, "No live program takes runs of mail: they go on when one starts and calls durable.Recover.\n")
	require.Contains(t, d.ok("shop durable show mail-1").out, "of emails, partition acme")
	require.Equal(t, 2, priority(d, "mail-1"))
	require.Empty(t, d.journal(), "it is for a program that serves the queue")

	a = d.sh("shop durable " + line + " --id mail-2")
	require.Equal(t, 4, a.code)
	require.Contains(t, a.err, "mail-1")
	require.Contains(t, a.err, "Show it: shop durable sessions show mail-1\n")
	a = d.sh("shop durable run mail --input '\"m\"' --partition acme --id mail-2")
	require.Equal(t, 2, a.code, a.err)
	require.Equal(t, 2, d.sh("shop durable run mail --resume mail-1 --queue emails").code)

	d.ok("shop durable run mail --input '\"m\"' --delay 1h --id later")
	require.Contains(t, d.ok("shop durable ls --status pending").out, "later\t")
	a = d.sh("shop durable run mail --resume later")
	require.Equal(t, 4, a.code)
	require.Contains(t, a.err, "it may begin at ")
	require.NotContains(t, a.err, "Execute it: ", "that is what was tried")

	_, url := served(d)
	b := d.ok("durable --server " + url + " run mail --input '\"m\"' --queue emails --partition acme --priority 3 --id mail-3")
	require.Contains(t, b.out+b.err, "mail-3")
	require.Equal(t, 3, priority(d, "mail-3"))
	d.ok("durable --store shop.db run mail --input '\"m\"' --queue emails --id mail-4")
	require.Contains(t, d.ok("shop durable show mail-4").out, "completed")
}

// priority returns what is recorded of a run.
func priority(d *desk, id string) (n int) {
	d.t.Helper()
	db, err := sqlx.Open("sqlite3", filepath.Join(d.dir, "shop.db"))
	require.NoError(d.t, err)
	defer db.Close()
	require.NoError(d.t, db.Get(&n, "SELECT priority FROM durable_runs WHERE id = ?", id))
	return n
}
