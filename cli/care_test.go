package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
)

// damage changes a byte of what is recorded of an attempt of a step of order-42.
func damage(d *desk, key string, attempt int) {
	d.t.Helper()
	db, err := sqlx.Open("sqlite3", filepath.Join(d.dir, "shop.db"))
	require.NoError(d.t, err)
	defer db.Close()
	r, err := db.Exec(`UPDATE durable_events SET data = replace(data, 'bank', 'tank') WHERE key = ? AND attempt = ? AND place >> 28 = (SELECT no FROM durable_runs WHERE id = 'order-42')`, key, attempt)
	require.NoError(d.t, err)
	n, err := r.RowsAffected()
	require.NoError(d.t, err)
	require.EqualValues(d.t, 1, n)
}

func TestADamagedCheckpointIsFoundNamedAndRepaired(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	require.Equal(t, answer{"", "6 ok, 0 corrupt, 0 incompatible.\n", 0}, d.ok("durable --store shop.db checkpoints validate order-42"))
	damage(d, "charge", 2)

	a := d.sh("durable --store shop.db checkpoints validate order-42")
	require.Equal(t, 6, a.code)
	require.Regexp(t, `(?m)^order-42\t5\tcharge attempt 2\tcorrupt: .*; newest valid: 4$`, a.out)
	require.Contains(t, a.err, "1 corrupt, 0 incompatible. Mend: durable checkpoints repair order-42 --store shop.db\n")
	require.Contains(t, d.ok("durable --store shop.db sessions ls").out, "order-42\tcheckout\tinterrupted")
	doctor := d.sh("durable --store shop.db doctor")
	require.Equal(t, 6, doctor.code)
	require.Contains(t, doctor.out, "problem\tintegrity\torder-42: 1 corrupt\tdurable checkpoints repair order-42 --store shop.db\n")

	dry := d.ok("durable --store shop.db checkpoints repair order-42 --dry-run")
	require.Contains(t, dry.out, "Dry run: nothing changed.")
	fixed := d.ok("durable --store shop.db checkpoints repair order-42 --yes")
	require.Regexp(t, `^Recovered workflow order-42: corrupt checkpoint 5\. Created branch 1 from event 3\nLeft on branch 0: 4, 5, 6\. Next: charge`, fixed.out)
	require.Zero(t, d.sh("durable --store shop.db checkpoints validate order-42").code)
	require.Contains(t, d.ok("durable --store shop.db checkpoints list order-42 --all").out, "left behind")

	s := d.terminal("shop durable resume order-42")
	s.until("? Ship order-42?")
	d.ok("shop durable approve order-42")
	require.Zero(t, s.end())
	require.Equal(t, 1, strings.Count(strings.Join(d.journal(), "\n"), "reserve"), "what was sound is not done again")
}

// A workflow that declares no steps has no next one to name: what was kept is said.
func TestARepairSaysBehindWhatTheRunGoesOn(t *testing.T) {
	d := newDesk(t)
	d.ok("shop durable run count --id order-42 --input 3")
	db, err := sqlx.Open("sqlite3", filepath.Join(d.dir, "shop.db"))
	require.NoError(t, err)
	defer db.Close()
	db.MustExec(`UPDATE durable_runs SET status = 'running', owner = 'gone', ended_at = 0 WHERE id = 'order-42'`)
	db.MustExec(`DELETE FROM durable_events WHERE type = 'workflow_completed'`)
	db.MustExec(`UPDATE durable_events SET data = '{"x":1}' WHERE key = 'add#3'`)
	fixed := d.ok("shop durable checkpoints repair order-42")
	require.Contains(t, fixed.out, "It goes on after add#2.")
	require.NotContains(t, fixed.out, "Next: add#2")
}

func TestCheckpointsAreListedAndShown(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	list := d.terminal("durable --store shop.db checkpoints list order-42")
	list.end()
	require.Regexp(t, `^ID +RUN +STEP +ATTEMPT +TIME +SIZE +VERSION +STATUS *\n3 +order-42 +reserve +1 +\S+ +\d+ B +1 +ok\n4 +order-42 +charge +1/5 failed `, plain(list.seen))
	require.Regexp(t, `"step":"charge","attempt":2,"max_attempts":5,"outcome":"failed"`, d.ok("shop durable checkpoints list order-42 --json").out)
	require.Regexp(t, `"step":"reserve","attempt":1,"outcome":"completed"`, d.ok("shop durable checkpoints list order-42 --json").out)
	require.Equal(t, d.ok("shop durable checkpoints list").out, d.ok("shop durable checkpoints list order-42").out, "without an id those of all runs are listed")
	var listed struct {
		Run, Step, Time, Status string
		ID, Size, Version       int
	}
	first, _, _ := strings.Cut(d.ok("shop durable checkpoints list order-42 --json").out, "\n")
	require.NoError(t, json.Unmarshal([]byte(first), &listed))
	db, err := sqlx.Open("sqlite3", filepath.Join(d.dir, "shop.db"))
	require.NoError(t, err)
	defer db.Close()
	var kept struct{ Size, At int64 }
	require.NoError(t, db.Get(&kept, `SELECT coalesce(length(data), 0) + coalesce(length(payload), 0) AS size, at FROM durable_events WHERE key = 'reserve'`))
	at, err := time.Parse(time.RFC3339Nano, listed.Time)
	require.NoError(t, err)
	require.Equal(t, []any{"order-42", "reserve", 3, int(kept.Size), 1, "ok"}, []any{listed.Run, listed.Step, listed.ID, listed.Size, listed.Version, listed.Status})
	require.WithinDuration(t, time.UnixMicro(kept.At), at, time.Second)
	require.Contains(t, plain(list.seen), " "+strconv.FormatInt(kept.Size, 10)+" B ")
	show := d.ok("shop durable checkpoints show order-42 5")
	require.Contains(t, show.out, "5  attempt_failed charge attempt 2: bank: timeout  ok")
	require.Equal(t, 3, d.sh("shop durable checkpoints show order-42 99").code)

	damage(d, "charge", 2)
	require.Regexp(t, `(?m)^5\torder-42\tcharge\t.*\tcorrupt$`, d.sh("durable --store shop.db checkpoints list order-42").out)
}

func TestAResultIsEditedByHandAndTheRunGoesOnWithIt(t *testing.T) {
	d := newDesk(t)
	s := d.terminal("shop durable run checkout --id order-42 " + order)
	s.until("? Ship order-42?")
	s.press(ctrlC)
	s.end()
	d.ok("shop durable pause order-42")
	unsaid := d.sh(`shop durable checkpoints edit order-42 charge --value '"p-7"'`)
	require.Equal(t, 2, unsaid.code, "without a terminal it is not asked: %s", unsaid.err)
	wrong := d.sh(`shop durable checkpoints edit order-42 charge --value '{"a":1}' --yes`)
	require.Equal(t, 4, wrong.code, wrong.err)

	require.NoError(t, os.WriteFile(filepath.Join(d.dir, "editor"), []byte("#!/bin/sh\necho '\"p-8\"' > \"$1\"\n"), 0o700))
	e := d.with("EDITOR=./editor").terminal(`shop durable checkpoints edit order-42 charge --reason "paid by hand"`)
	e.until("Replace the result of charge? [y/N]")
	e.press("y\n")
	require.Zero(t, e.end(), plain(e.seen))
	require.Contains(t, d.ok("shop durable checkpoints show order-42 charge").out, `"p-8"`)
	show := d.ok("shop durable sessions show order-42").out
	require.Contains(t, show, "Branch 1 from 5 on: edited charge, by ada: paid by hand\n")
}

func TestARunIsExportedImportedAndDeleted(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	d.ok("shop durable checkpoints export order-42 --output o.run")
	require.Equal(t, 4, d.sh("shop durable checkpoints export order-42 --output o.run").code, "a file is never written over")
	require.Equal(t, 4, d.sh("shop durable checkpoints import o.run").code)
	in := d.with("SHOP_DB=other.db")
	got := in.ok("shop durable checkpoints import o.run")
	require.Contains(t, got.out, "Imported order-42: interrupted")
	require.Contains(t, in.ok("shop durable resume --dry-run").out, "charge, attempt 3 of 5")
	lacks := "This program lacks the code of checkout: whether that code fits is seen by one that has it.\n"
	require.NotContains(t, in.ok("shop durable resume --dry-run").err, lacks)
	require.Equal(t, lacks, in.ok("durable --store shop.db resume order-42 --dry-run").err)

	require.Equal(t, 2, d.sh("shop durable checkpoints delete order-42").code)
	require.Contains(t, d.ok("shop durable checkpoints delete order-42 --dry-run").out, "Would delete order-42")
	d.ok("shop durable checkpoints delete order-42 --yes")
	require.Equal(t, "No sessions.\n", d.ok("shop durable sessions ls").err)
}

func TestCleanRemovesWhatIsOldAndNeverWhatRuns(t *testing.T) {
	d := newDesk(t)
	d.ok("shop durable run count --id old --input 1")
	interrupted(d)
	live := d.with("SHOP_HOLD=add").start("shop durable run count --id live --input 1")
	d.until("add 0")
	require.Equal(t, "Removed 0 sessions.\n", d.ok("durable --store shop.db sessions clean --yes").out, "nothing is a week old")
	require.Equal(t, "old\nDry run: nothing changed. 1 session would be removed.\n", d.ok("durable --store shop.db sessions clean --older-than 0d --dry-run").out)
	ask := d.sh("durable --store shop.db sessions clean --all")
	require.Equal(t, 2, ask.code)
	require.Contains(t, ask.err, "Look first with --dry-run; then say --yes.")
	require.Equal(t, "Removed 2 sessions.\n", d.ok("durable --store shop.db sessions clean --all --yes").out)
	require.Contains(t, d.ok("durable --store shop.db sessions ls").out, "live\t")
	live.signal(2)
	live.wait()
}

// approved runs a checkout of order-40, or a copy of it, to its end: somebody
// answers its question.
func (d *desk) approved(line, id string) {
	d.t.Helper()
	s := d.terminal(line)
	s.until("? Ship order-40?")
	d.ok("shop durable approve " + id)
	require.Zero(d.t, s.end())
}

func TestAForkAsksBeforeEffectsAreRepeated(t *testing.T) {
	d := newDesk(t)
	d.approved("shop durable run checkout --id order-40 --input '{\"id\":\"order-40\"}'", "order-40")
	require.Equal(t, 2, d.sh("durable --store shop.db fork order-40 --from 3 --id order-43").code)
	f := d.terminal("durable --store shop.db fork order-40 --from reserve --id order-43")
	f.until("Kept: reserve. Runs again with new idempotency keys: charge, approve, ship.")
	f.until("Continue? [y/N]")
	f.press("n\n")
	require.Equal(t, 2, f.end())
	require.Equal(t, 3, d.sh("durable --store shop.db sessions show order-43").code)
	made := d.ok("durable --store shop.db fork order-40 --from 3 --id order-43 --yes")
	require.Equal(t, "Forked to order-43. Resume with: shop durable run checkout --resume order-43\n", made.out)
	d.approved("shop durable run checkout --resume order-43", "order-43")
}

func TestTheSchemaIsSeenBackedUpAndRestored(t *testing.T) {
	d := newDesk(t)
	d.ok("shop durable run count --id before --input 1")
	require.Regexp(t, `^Schema \d+, as this program needs it\.\n$`, d.ok("shop durable schema status").out)
	require.Contains(t, d.ok("durable --store shop.db schema migrate --dry-run").out, "Dry run: nothing changed.")
	require.Contains(t, d.ok("durable --store shop.db checkpoints migrate --dry-run").out, "Dry run: nothing changed.")
	require.Contains(t, d.ok("durable --store shop.db schema backup copy.db").out, "durable schema restore copy.db --store shop.db")
	d.ok("shop durable run count --id after --input 1")
	require.Equal(t, 2, d.sh("durable --store shop.db schema restore copy.db").code)
	require.Contains(t, d.ok("durable --store shop.db schema restore copy.db --yes").out, "What was there is kept as ")
	require.NotContains(t, d.ok("shop durable sessions ls").out, "after")
}

func TestStuckNamesTheReasonAndTheNextCommand(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	p, _ := served(d, "SHOP_FRAUD=1")
	require.Eventually(t, func() bool {
		return strings.Contains(d.ok("shop durable sessions show order-42 --json").out, durable.CodeDefinitionChanged)
	}, 30*time.Second, 50*time.Millisecond)
	p.signal(9)
	p.wait()
	a := d.sh("durable --store shop.db stuck")
	require.Equal(t, 6, a.code)
	require.Regexp(t, `^order-42\t.*\tdurable resume order-42 --dry-run --store shop.db\n$`, a.out)
	require.NotContains(t, a.out, `\n`, "the reason has several lines, and a row one")
	require.NotContains(t, d.sh("SHOP_FRAUD=1 shop durable resume --all").err, `\n`)
	d.ok("shop durable pause order-42")
	require.Contains(t, d.sh("durable --store shop.db stuck").out, "durable unpause order-42 --store shop.db")
	require.Equal(t, 4, d.sh("shop durable resume order-42").code)
}

func TestHistoryIsReadStraightFromGit(t *testing.T) {
	d := newDesk(t)
	d.ok("shop durable run count --id n --input 2")
	require.NoError(t, exec.Command("git", "init", "-q", d.dir).Run())
	require.Equal(t, "No archived sessions.\n", d.ok("durable history").err)
	require.Equal(t, "Archived n (git).\n", d.ok("durable --store shop.db archive store n").out)
	require.Regexp(t, `^n\tcount\tcompleted\t\S+Z\t\S+\tgit\n$`, d.ok("durable history --status completed").out)
	require.Empty(t, d.ok("durable history --status failed").out)
	require.Contains(t, d.ok("durable archive show n").out, "Output   1")
	require.Equal(t, 3, d.sh("durable archive show nobody").code)
	d.ok("shop durable checkpoints delete n --yes")
	require.Contains(t, d.ok("durable --store shop.db archive restore n").out, "Imported n: completed")
	out := d.sh("cd / && durable history")
	require.Equal(t, 5, out.code, out.err)
}

func TestAValueOfAnotherKindIsRefusedInWords(t *testing.T) {
	d := newDesk(t)
	p := d.terminal("shop durable run checkout --id order-42 " + order)
	p.until("? Ship order-42?")
	p.press(ctrlC)
	require.Equal(t, 130, p.end(), plain(p.seen))
	edit := func(step, value string) answer {
		return d.sh("shop durable checkpoints edit order-42 " + step + " --dry-run --value '" + value + "'")
	}
	a := edit("reserve", "1")
	require.Equal(t, 4, a.code)
	require.Equal(t, "run order-42: the result of reserve cannot be edited: it is recorded without a value, and the value is a number\nWith --force it is replaced all the same\n", a.err)
	require.Equal(t, 0, d.sh("shop durable checkpoints edit order-42 reserve --dry-run --force --value 1").code)

	a = edit("charge", `{"paid":true}`)
	require.Equal(t, 4, a.code)
	require.Equal(t, "run order-42: step charge: the value cannot be kept: it is recorded as string, a string, and the value is an object. --force replaces it all the same\n", a.err)
	require.Equal(t, 0, edit("charge", `"by hand"`).code)
}

// A run whose very first checkpoint is damaged has not "no checkpoint".
func TestAFailedRunWithADamagedFirstCheckpointIsListedAndShownAsCorrupt(t *testing.T) {
	d := newDesk(t)
	require.Equal(t, 1, d.with("SHOP_BANK=down").sh("shop durable run checkout --id order-42 "+order).code)
	db, err := sqlx.Open("sqlite3", filepath.Join(d.dir, "shop.db"))
	require.NoError(t, err)
	_, err = db.Exec(`UPDATE durable_events SET sum = sum + 1 WHERE key = 'reserve'`)
	require.NoError(t, err)
	require.NoError(t, db.Close())

	require.Contains(t, d.ok("shop durable sessions ls").out, "order-42\tcheckout\tfailed (corrupt)\t")
	require.NotContains(t, d.sh("shop durable sessions ls --resumable").out, "order-42")
	require.Contains(t, d.ok("shop durable sessions ls --json").out, `"corrupt":true`)
	mend := "run order-42: event 3 is damaged: its checksum does not fit. Nothing after it is believed; the run stays as it is until it is repaired\nMend: shop durable checkpoints repair order-42 --dry-run\n"
	require.Contains(t, d.ok("shop durable sessions show order-42").out, mend)
	for _, force := range []string{"", " --force", " --dry-run"} {
		a := d.sh("shop durable resume order-42" + force)
		require.Equal(t, 4, a.code)
		require.Equal(t, mend, a.err)
	}
}

// A list reads the end of a history alone. It sees there that an event between two others is gone.
func TestARunThatLacksAnEventInTheMiddleIsListedAndShownAsCorrupt(t *testing.T) {
	d := newDesk(t)
	require.Equal(t, 1, d.with("SHOP_BANK=down").sh("shop durable run checkout --id order-42 "+order).code)
	db, err := sqlx.Open("sqlite3", filepath.Join(d.dir, "shop.db"))
	require.NoError(t, err)
	_, err = db.Exec(`DELETE FROM durable_events WHERE key = 'reserve'`)
	require.NoError(t, err)
	require.NoError(t, db.Close())

	require.Contains(t, d.ok("shop durable sessions ls").out, "order-42\tcheckout\tfailed (corrupt)\t")
	require.NotContains(t, d.sh("shop durable sessions ls --resumable").out, "order-42")
	says := "event 3 is damaged: it is missing between 2 and 4. Nothing after it is believed"
	require.Contains(t, d.ok("shop durable sessions show order-42").out, says)

	_, url := served(d)
	show := d.ok("durable sessions show order-42 --server " + url).out
	require.Contains(t, show, "order-42  checkout v1  failed (corrupt)")
	require.Contains(t, show, says)
	require.NotContains(t, show, "Resume with")
}
