package cli_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const order = `--input '{"id":"order-42","total":4200}'`

// interrupted leaves order-42 interrupted in the third attempt of charge, as
// Ctrl-C does.
func interrupted(d *desk) {
	d.t.Helper()
	s := d.with("SHOP_HOLD=charge").terminal("shop durable run checkout --id order-42 " + order)
	s.until("attempt 2 of 5: bank: timeout")
	d.until("charge order-42")
	s.press(ctrlC)
	require.Equal(d.t, 130, s.end(), plain(s.seen))
}

// The user's scenario of the design, with a real SIGINT in a real terminal: start,
// interrupt, list, show, paste the printed command, answer, done.
func TestAUserInterruptsAndResumesWithTheCommandThatWasPrinted(t *testing.T) {
	d := newDesk(t)
	s := d.with("SHOP_HOLD=charge", "SHOP_PAUSE=100ms").terminal("shop durable run checkout --id order-42 " + order)
	s.until("🔄 Starting session: order-42")
	s.until("Executing step 1/4: reserve")
	s.until("Executing step 2/4: charge")
	s.until("✗ attempt 1 of 5: bank: 503 (next in 0.1s)")
	s.until("✗ attempt 2 of 5: bank: timeout")
	s.until("… attempt 3 of 5")
	d.until("charge order-42")
	s.press(ctrlC)
	s.until("Saving a checkpoint (100ms at most; Ctrl-C again quits)")
	require.Equal(t, 130, s.end())
	require.Contains(t, plain(s.seen), "Session interrupted. Resume with: shop durable run checkout --resume order-42\n")

	ls := d.terminal("shop durable sessions ls")
	require.Zero(t, ls.end())
	require.Equal(t, "  ID        WORKFLOW  STATUS       STEP            STARTED   LAST CHECKPOINT\n"+
		"▸ order-42  checkout  interrupted  2/4 charge 3/5  TIME  TIME\n"+
		"1 of 1 resumable: shop durable resume ID\n", timeless(plain(ls.seen)))

	show := d.ok("shop durable sessions show order-42")
	printed := regexp.MustCompile(`Resume with: (.*)\n`).FindStringSubmatch(show.out)
	require.NotNil(t, printed, show.out)
	require.Equal(t, "shop durable run checkout --resume order-42", printed[1])

	again := d.terminal(printed[1])
	again.until("Resuming from step 2 of 4: charge, attempt 3 of 5")
	again.until("? Ship order-42?  Answer: shop durable approve order-42")
	require.Equal(t, "Approved order-42: Ship order-42?\n", d.ok("shop durable approve order-42").out)
	require.Zero(t, again.end())
	text := plain(again.seen)
	for _, line := range []string{"Workflow order-42 resumed\n", "  skipped      reserve\n", "  re-executed  charge\n", "  to run       approve, ship\n", "✓ attempt 3 of 5", "✓ approved", "Executing step 4/4: ship", `Workflow order-42 completed: {"tracking":"H-7"}`} {
		require.Contains(t, text, line)
	}
	require.Equal(t, []string{"reserve order-42", "charge order-42", "charge order-42", "ship order-42"}, d.journal(), "reserve is not done again; the interrupted attempt is")
	require.Contains(t, d.ok("shop durable sessions ls").out, "completed\t4/4")
}

func TestASecondCtrlCQuitsAtOnceAndTheRunGoesOnLater(t *testing.T) {
	d := newDesk(t)
	s := d.with("SHOP_HOLD=charge", "SHOP_STUBBORN=1", "SHOP_GRACE=1h").terminal("shop durable run checkout --id order-42 " + order)
	d.until("charge order-42")
	s.press(ctrlC)
	s.until("Saving a checkpoint (1h0m0s at most; Ctrl-C again quits)")
	s.pressAgain()
	require.Equal(t, 130, s.end())
	require.Contains(t, plain(s.seen), "Quit. charge attempt 3 has no outcome; it runs again.\nSession interrupted. Resume with: shop durable run checkout --resume order-42\n")
	require.Contains(t, d.ok("shop durable resume order-42 --dry-run").out, "Resuming from step 2 of 4: charge, attempt 3 of 5")
}

func TestSIGTERMSavesTheRunAndSaysSo(t *testing.T) {
	d := newDesk(t)
	p := d.with("SHOP_HOLD=charge").start("shop durable run checkout --id order-42 " + order)
	p.until("attempt 2 of 5: bank: timeout")
	d.until("charge order-42")
	p.signal(syscall.SIGTERM)
	require.Equal(t, 143, p.wait())
	require.Contains(t, p.text(), "Session interrupted. Resume with: shop durable run checkout --resume order-42")
	require.Contains(t, d.ok("shop durable sessions ls").out, "interrupted")
}

func TestARunWhoseProcessWasKilledIsListedAsResumableAndGoesOn(t *testing.T) {
	d := newDesk(t)
	p := d.with("SHOP_HOLD=charge").start("shop durable run checkout --id order-42 " + order)
	p.until("attempt 2 of 5: bank: timeout")
	d.until("charge order-42")
	p.signal(syscall.SIGKILL)
	p.wait()
	require.Regexp(t, `(?m)^order-42\tcheckout\trunning\t2/4\tcharge\t3/5\t.*\tresumable$`, d.ok("durable --store shop.db sessions ls --resumable").out)
	require.Contains(t, d.sh("shop durable resume-last --dry-run").err, "Last interrupted session: order-42 (checkout, ")

	s := d.terminal("shop durable resume order-42")
	s.until("Resuming from step 2 of 4: charge, attempt 3 of 5")
	s.until("? Ship order-42?")
	d.ok("shop durable approve order-42")
	require.Zero(t, s.end(), plain(s.seen))
	require.Equal(t, []string{"reserve order-42", "charge order-42", "charge order-42", "ship order-42"}, d.journal())
}

func TestAnInterruptedRunIsOnlySuggestedWhenANewOneStarts(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	s := d.with("SHOP_HOLD=reserve").terminal("shop durable run checkout --input '{\"id\":\"new\"}'")
	s.until("order-42 was interrupted. Resume with: shop durable run checkout --resume order-42\n")
	s.until("🔄 Starting session: checkout-")
	s.press(ctrlC)
	require.Equal(t, 130, s.end())
	require.Regexp(t, `Starting session: checkout-\d{4}-\d\d-\d\d-\w{4}`, plain(s.seen))
	require.Contains(t, d.ok("shop durable sessions ls --workflow checkout").out, "order-42\tcheckout\tinterrupted\t2/4\tcharge\t3/5")
}

func TestAWaitingRunIsExecutedAgainByTheCommandThatItsInterruptPrinted(t *testing.T) {
	d := newDesk(t)
	s := d.terminal("shop durable run checkout --id order-42 " + order)
	s.until("? Ship order-42?")
	s.press(ctrlC)
	require.Equal(t, 130, s.end())
	refusal := d.sh("shop durable resume order-42")
	require.Equal(t, 4, refusal.code)
	require.Equal(t, "Session order-42 is not resumable (status: waiting)\nAnswer it: shop durable approve order-42\n", refusal.err)

	reject := d.ok(`shop durable reject order-42 --reason "no stock"`)
	require.Equal(t, "Rejected order-42: Ship order-42?\n", reject.out)
	require.Equal(t, "Nobody executes order-42 at the moment. Go on with: shop durable run checkout --resume order-42\n", reject.err)
	again := d.sh("shop durable approve order-42")
	require.Equal(t, 4, again.code, again.err)

	done := d.sh("shop durable run checkout --resume order-42")
	require.Equal(t, 1, done.code)
	require.Contains(t, done.out, "Workflow order-42 resumed")
	require.Contains(t, done.err, "Workflow order-42 failed: not shipped: no stock")
}

func TestResumeWithoutAnIDTakesTheLastInterruptedOneOrSaysThatThereIsNone(t *testing.T) {
	d := newDesk(t)
	for _, line := range []string{"shop durable resume", "shop durable resume-last", "shop durable run checkout --resume-last"} {
		a := d.sh(line)
		require.Equal(t, 3, a.code)
		require.Equal(t, "Nothing to resume. List: shop durable sessions ls\n", a.err)
	}
	interrupted(d)
	for _, line := range []string{"resume", "resume-last"} {
		a := d.ok("shop durable " + line + " --dry-run")
		require.Equal(t, "Last interrupted session: order-42 (checkout, TIME)\n", timeless(a.err))
		require.Equal(t, "Resuming from step 2 of 4: charge, attempt 3 of 5\n  skipped      reserve\n  re-executed  charge\n  to run       approve, ship\nDry run: nothing changed, nothing ran.\n", a.out)
	}
}

func TestADryRunChangesNothingAndRunsNothing(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	before := d.ok("durable --store shop.db checkpoints export order-42").out
	ran := d.journal()
	d.ok("shop durable resume order-42 --dry-run --reset-failures --verbose")
	d.ok("shop durable resume order-42 --dry-run --from-checkpoint reserve")
	require.Equal(t, before, d.ok("durable --store shop.db checkpoints export order-42").out)
	require.Equal(t, ran, d.journal())
}

func TestFromCheckpointGoesBackOnANewBranchAndResetFailuresGivesAllAttemptsAgain(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	plan := d.ok("shop durable resume order-42 --dry-run --from-checkpoint 1").out
	require.Contains(t, plan, "Resuming from step 1 of 4: reserve")
	require.Contains(t, d.ok("shop durable resume order-42 --dry-run --reset-failures").out, "charge, attempt 1")

	s := d.terminal("shop durable resume order-42 --from-checkpoint 1")
	s.until("? Ship order-42?")
	s.press(ctrlC)
	require.Equal(t, 130, s.end())
	require.Equal(t, 2, strings.Count(strings.Join(d.journal(), "\n"), "reserve order-42"))
	require.Regexp(t, `(?m)^1\t0\t1\t`, d.ok("shop durable branches order-42").out)

	a := d.sh("shop durable resume order-42 --from-checkpoint nothing")
	require.Equal(t, 4, a.code, "it waits: %s", a.err)
}

func TestRefusalsSayWhatHappenedAndWhatToDoAndChangeNothing(t *testing.T) {
	d := newDesk(t)
	a := d.sh("shop durable resume order-99")
	require.Equal(t, answer{"", "Session not found: order-99\nList: shop durable sessions ls\n", 3}, a)

	d.with("SHOP_FAIL=reserve").sh("shop durable run count --id counted --input 0")
	done := d.sh("shop durable resume counted")
	require.Equal(t, answer{"", "Session counted is not resumable (status: completed)\nCopy it: shop durable fork counted --from 1\n", 4}, done)

	s := d.terminal("shop durable run checkout --id called-off " + order)
	s.until("? Ship order-42?")
	d.ok("durable --store shop.db cancel called-off")
	require.Equal(t, 1, s.end(), plain(s.seen))
	off := d.sh("durable --store shop.db resume called-off")
	require.Equal(t, answer{"", "Session called-off is not resumable (status: cancelled)\nTake the cancel back: durable resume called-off --force --store shop.db\n", 4}, off)
	s = d.terminal("shop durable resume called-off --force")
	s.until("? Ship order-42?")
	d.ok("shop durable approve called-off")
	require.Equal(t, 0, s.end(), plain(s.seen))

	wrong := d.sh("shop durable run count --id bad --input '\"no number\"'")
	require.Equal(t, 2, wrong.code, "an input that is none starts nothing: %s", wrong.err)
	require.Equal(t, 3, d.sh("shop durable sessions show bad").code)

	live := d.with("SHOP_HOLD=reserve").start("shop durable run checkout --id live " + order)
	live.until("Executing step 1/4: reserve")
	busy := d.sh("durable --store shop.db resume live")
	require.Equal(t, 4, busy.code)
	require.Regexp(t, `^live is already in progress \(pid \d+ on [^)]+\)\.\nFollow it: durable watch live --store shop.db\n$`, busy.err)
	live.signal(syscall.SIGINT)
	live.wait()

	lacks := d.sh("durable --store shop.db resume live")
	require.Equal(t, answer{"", "Nobody alive runs checkout; this program lacks its code.\nRun: shop durable run checkout --resume live\n", 4}, lacks)

	twice := d.sh("shop durable run checkout --id live " + order)
	require.Equal(t, answer{"", "Session live exists already (status: interrupted)\nResume with: shop durable run checkout --resume live\n", 4}, twice)
}

func TestARunWithoutACheckpointIsRestartedFromItsInputOnlyByForce(t *testing.T) {
	d := newDesk(t)
	require.Equal(t, 1, d.sh("shop durable run broken --id order-38").code)
	a := d.with("SHOP_MENDED=1").sh("shop durable resume order-38")
	require.Equal(t, answer{"", "Workflow order-38 has no checkpoint.\nRestart from its input: shop durable resume order-38 --force\n", 4}, a)
	require.Contains(t, d.ok("shop durable sessions ls").out, "order-38\tbroken\tfailed\t")
	require.Contains(t, d.with("SHOP_MENDED=1").ok("shop durable resume order-38 --force").out, `Workflow order-38 completed: "mended"`)
}

func TestVerboseSaysOfEachStepWhatIsRestoredAndShowHidesSecrets(t *testing.T) {
	d := newDesk(t).with("BANK_KEY=s3cret")
	interrupted(d)
	require.NotContains(t, d.ok("shop durable resume --dry-run").out, "skipped reserve")
	require.Regexp(t, `(?m)^    skip\S* +reserve`, d.ok("shop durable resume --dry-run --verbose").out)
	show := d.ok("shop durable sessions show order-42")
	require.Contains(t, show.out, "Environment dir "+d.dir+", program shop, BANK_KEY=[redacted]\n")
	require.NotContains(t, show.out, "s3cret")
}

func TestChangedCodeIsShownSideBySideAndForceMatchesByName(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	a := d.with("SHOP_FRAUD=1").sh("shop durable resume order-42")
	require.Equal(t, 4, a.code, a.out+a.err)
	require.Empty(t, a.out, "nothing was resumed")
	require.NotContains(t, a.err, "Resuming from step")
	for _, part := range []string{"Definition changed: order-42", "> 2 charge     check-fraud", "main.go:", `durable.Patched(ctx, "check-fraud")`, "Or match by name: shop durable resume order-42 --force\n"} {
		require.Contains(t, a.err, part)
	}
	s := d.with("SHOP_FRAUD=1").terminal("shop durable resume order-42 --force")
	s.until("Forced:")
	s.until("? Ship order-42?")
	d.ok("shop durable approve order-42")
	require.Zero(t, s.end())
}

func TestJSONIsOneObjectOrOneALineAndSoAreErrors(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	for _, line := range []string{
		"sessions ls", "sessions show order-42", "resume order-42 --dry-run", "checkpoints list order-42", "checkpoints validate order-42", "checkpoints show order-42 reserve",
		"branches order-42", "stuck", "doctor", "schema status", "sessions clean --dry-run", "fork order-42 --dry-run", "pause order-42", "unpause order-42",
	} {
		a := d.sh("shop durable " + line + " --json")
		require.Contains(t, []int{0, 6}, a.code, "%s: %s", line, a.err)
		for _, one := range strings.Split(strings.TrimSpace(a.out), "\n") {
			if one != "" {
				require.True(t, json.Valid([]byte(one)) && one[0] == '{', "%s printed %s", line, one)
			}
		}
	}
	a := d.sh("shop durable resume order-99 --json")
	require.JSONEq(t, `{"error":{"code":"not_found","message":"Session not found: order-99","next":"List: shop durable sessions ls"}}`, a.err)
	require.Empty(t, a.out)

	var s struct {
		Status      string
		Step, Steps int
		Iteration   int
		Resume      string `json:"resume_command"`
		Rows        []struct {
			Key      string
			Attempts []struct{ Error string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(d.ok("shop durable runs show order-42 --json").out), &s))
	require.Equal(t, "shop durable run checkout --resume order-42", s.Resume)
	require.Equal(t, []any{"interrupted", 2, 4, 1}, []any{s.Status, s.Step, s.Steps, s.Iteration}, "it stands at the second of its four steps, in the first iteration")
	require.Equal(t, "charge", s.Rows[1].Key)
	require.Equal(t, "bank: timeout", s.Rows[1].Attempts[1].Error)
}

func TestRunWithJSONEndsInOneObject(t *testing.T) {
	d := newDesk(t)
	a := d.ok("shop durable run count --id n --input 4 --json")
	var r struct {
		ID, Status string
		Output     int
	}
	require.NoError(t, json.Unmarshal([]byte(a.out), &r))
	require.Equal(t, "n", r.ID)
	require.Equal(t, 6, r.Output)
	require.Empty(t, a.err)
}

func TestAnEmptyStoreListsNoSessionsAndExitsZero(t *testing.T) {
	d := newDesk(t)
	a := d.ok("shop durable sessions ls")
	require.Equal(t, answer{"", "No sessions.\n", 0}, a)
	require.Equal(t, answer{"", "Nothing is stuck.\n", 0}, d.ok("shop durable stuck"))
}
