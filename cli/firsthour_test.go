package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a person did wrong in the first hour is answered with what to do.

func TestAValueThatIsNoFlagIsAnsweredWithTheCommandThatSendsIt(t *testing.T) {
	d := newDesk(t)
	a := d.sh("shop durable signal order-42 approve true")
	require.Equal(t, 2, a.code)
	require.Contains(t, a.err, "The value is a flag: shop durable signal order-42 approve --value true\n")
	a = d.sh("shop durable signal order-42 note fine")
	require.Contains(t, a.err, `--value '"fine"'`)
}

func TestADetachedRunThatNobodyServesIsNotSaidToLackCode(t *testing.T) {
	d := newDesk(t)
	a := d.sh("shop durable run checkout --id order-42 --input '\"order-42\"' --detach")
	require.Equal(t, 4, a.code)
	require.Equal(t, "No live process runs checkout, and with --detach this one does not either.\nLeave out --detach to execute it here, or start the program that serves it.\n", a.err)
	require.Equal(t, 3, d.sh("shop durable show order-42").code, "nothing was started")
}

func TestResumeWithoutAnIDSaysThatRunsHaveFailed(t *testing.T) {
	d := newDesk(t, "SHOP_FAIL=add")
	require.Equal(t, 1, d.sh("shop durable run count --id sum --input 2").code)
	require.Regexp(t, `^sum\tcount\tfailed\t1\tadd\t-\t\S+\t\S+\tresumable\n$`, d.ok("shop durable ls --status failed").out, "it failed in its first step")
	a := d.sh("shop durable resume")
	require.Equal(t, 3, a.code)
	require.Contains(t, a.err, "Nothing to resume.")
	require.Contains(t, a.err, "No run was interrupted; 1 run failed. Name one: shop durable ls --status failed\n")
	require.NotContains(t, newDesk(t).sh("shop durable resume").err, "failed")
}

func TestAnEditOfAnotherTypeIsAnsweredWithTheCommandThatEditsItAgain(t *testing.T) {
	d := newDesk(t, "SHOP_FAIL=add")
	require.Equal(t, 1, d.sh("shop durable run count --id sum --input 2").code)
	d.ok(`shop durable checkpoints edit sum add --value '"x"' --yes`) // a failed step has no result to compare it with
	a := d.sh("shop durable resume sum")
	require.Equal(t, 4, a.code)
	require.Contains(t, a.err, "If an edit gave it, give one of type int: shop durable checkpoints edit sum add --value JSON\n")
	d.ok("shop durable checkpoints edit sum add --value 5 --yes")
	d.with("SHOP_FAIL=").ok("shop durable resume sum")
}

func TestShowNamesTheCommandThatPrintsTheStackOfAPanic(t *testing.T) {
	d := newDesk(t, "SHOP_PANIC=add")
	require.Equal(t, 1, d.sh("shop durable run count --id sum --input 2").code)
	require.Contains(t, d.ok("shop durable show sum").out, "Where it panicked: shop durable checkpoints show sum add\n")
	require.Regexp(t, `\n  main\.\S+\n    \S+main\.go:\d+`, d.ok("shop durable checkpoints show sum add").out)
}

func TestTheProgramThatRetriesDeadLettersDoesNotExecuteThem(t *testing.T) {
	d := mailer(t)
	broken, _ := served(d.with("SHOP_FAIL=send"))
	d.drained("--store shop.db")
	require.NoError(t, broken.cmd.Process.Kill())
	_ = broken.wait()
	before := len(d.journal())

	told := "No live program takes runs of mail: they go on when one starts and calls durable.Recover.\n"
	one := d.ok("shop durable queues retry emails mail-1")
	require.Equal(t, answer{"Workflow mail-1 is in line of emails again\n", told, 0}, one)
	all := d.ok("shop durable queues retry emails --all")
	require.Equal(t, answer{"mail-2\nmail-3\n2 runs in line of emails again.\n", told, 0}, all)
	require.Equal(t, 3, strings.Count(d.ok("shop durable ls --queue emails").out, "\n"))
	require.Empty(t, d.ok("shop durable ls --queue others").out)
	require.Contains(t, d.sh("shop durable history mail-1").err, "Did you mean: shop durable show mail-1\n")
	require.Len(t, d.journal(), before, "nothing is executed in a program that ends at once")
	a := d.sh("shop durable queues retry mail-1")
	require.Equal(t, 2, a.code)
	require.Contains(t, a.err, "Did you mean: shop durable queues retry emails mail-1\n")
}

func TestAnAnswerIsNotTakenTwiceNorWithAMisspeltField(t *testing.T) {
	d := newDesk(t)
	p := d.start("shop durable run checkout --id order-42 --input '{\"id\":\"order-42\"}'")
	p.until("? Ship order-42?")
	for _, command := range []string{"signal order-42 approve", "approve order-42"} {
		a := d.sh("shop durable " + command + ` --value '{"aproved":true}'`)
		require.Equal(t, 2, a.code, "%s%s", a.out, a.err)
		require.Contains(t, a.err, "which has no field aproved.\nDid you mean: shop durable "+command)
		require.Contains(t, a.err, `{"approved":true}`)
	}
	p.signal(syscall.SIGINT)
	require.Equal(t, 130, p.wait())

	d.ok("shop durable approve order-42")
	a := d.sh("shop durable approve order-42")
	require.Equal(t, 4, a.code)
	require.Equal(t, "order-42 has its answer already\nNobody executes it at the moment. Go on with: shop durable run checkout --resume order-42\n", a.err)
	d.ok("shop durable run checkout --resume order-42")
}

func TestAWaitThatAResumedRunHadBegunIsNotCalledAStep(t *testing.T) {
	d := newDesk(t)
	p := d.start("shop durable run opens --id o --input '{}'")
	p.until("Wait: open")
	p.signal(syscall.SIGINT)
	require.Equal(t, 130, p.wait())
	d.ok("shop durable signal o open")
	run := d.ok("shop durable run opens --resume o")
	require.Contains(t, run.err, "Wait: open\n")
	require.NotContains(t, run.err, "Executing step")
}

func TestATerminalWithoutCodeIsNotNamedAsTheProgramThatResumes(t *testing.T) {
	d := newDesk(t)
	p, _ := served(d)
	d.ok("durable --store shop.db run count --id sum --input '\"two\"' --detach")
	require.Eventually(t, func() bool { return strings.Contains(d.ok("durable --store shop.db show sum").out, "Parked") }, 30*time.Second, 50*time.Millisecond)
	show := d.ok("durable --store shop.db show sum").out
	require.NotContains(t, show, "durable run count")
	require.NotContains(t, show, "Resume with")
	require.Contains(t, show, "a resume alone does not help")
	cancel := "durable cancel sum --store shop.db"
	require.Contains(t, show, "Start another run with an input that fits, and end this one: "+cancel+"\n")
	require.Contains(t, d.sh("durable --store shop.db stuck").out, "\t"+cancel+"\n")
	d.ok(cancel)
	require.NoError(t, p.cmd.Process.Kill())
	_ = p.wait()
}

func TestARunThatIsThereIsNotRestoredAndTheAdviceIsAboutThatRun(t *testing.T) {
	d := newDesk(t)
	d.ok("shop durable run count --id sum --input 2")
	require.NoError(t, os.Mkdir(filepath.Join(d.dir, "kept"), 0o700))
	d.ok("durable --store shop.db archive store sum --dir kept")
	a := d.sh("durable --store shop.db archive restore sum --dir kept")
	require.Equal(t, answer{"", "Session sum exists already.\nShow it: durable sessions show sum --store shop.db\nPut the archived one in its place once it is deleted: durable checkpoints delete sum --dry-run --store shop.db\n", 4}, a)
	d.ok("durable checkpoints delete sum --store shop.db --yes")
	d.ok("durable --store shop.db archive restore sum --dir kept")

	d.ok("durable --store shop.db checkpoints export sum -o sum.run")
	a = d.sh("durable --store shop.db checkpoints import sum.run")
	require.Equal(t, 4, a.code)
	require.Contains(t, a.err, "Make a copy: durable checkpoints import sum.run --id NEW --store shop.db\n")
	a = d.sh("durable --store shop.db checkpoints import kept")
	require.Equal(t, 2, a.code)
	require.Contains(t, a.err, "kept is a directory, and import reads one file that export has written\n")
}
