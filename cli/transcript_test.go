package cli_test

import (
	"context"
	"log/slog"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// A scene is a command and what a person sees of it, line by line. Where it differs
// from the transcripts of the design, a comment says why ours is meant.
type scene struct {
	name string
	env  []string
	// before brings about what the scene is about.
	before func(d *desk)
	line   string
	pipe   bool // not in a terminal: both streams, one behind the other
	// play acts while the command runs; d is where somebody else acts from.
	play func(d *desk, s *screen)
	want string
	code int
}

// shown makes what differs from time to time and place to place equal.
func (d *desk) shown(s string) string {
	s = strings.ReplaceAll(s, d.dir, "DIR")
	for _, r := range [][2]string{
		{`pid \d+ on [^\s)]+`, "pid PID on HOST"}, {`http://\S+`, "URL"}, {`\b\d+ B +`, "N B  "},
		{`(checkout)-\d{4}-\d\d-\d\d-\w{4}`, "$1-DATE-NAME"}, {`[^\s"]*/(main\.go):\d+`, "$1:LINE"}, {`just now|\d+ \w+ ago`, "WHEN"},
	} {
		s = regexp.MustCompile(r[0]).ReplaceAllString(s, r[1])
	}
	return timeless(s)
}

// starts begins a run that holds cart:7, as a program does; nobody executes it yet.
func (d *desk) starts(id string) {
	d.t.Helper()
	st, err := sqlite.Open(filepath.Join(d.dir, "shop.db"))
	require.NoError(d.t, err)
	defer func() { require.NoError(d.t, st.Close()) }()
	eng, err := durable.Open(context.Background(), st, durable.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(d.t, err)
	defer func() { require.NoError(d.t, eng.Close()) }()
	_, err = durable.Ref[map[string]any, any]("checkout").Start(durable.NewContext(context.Background(), eng), id, map[string]any{"id": id}, durable.Exclusive("cart:7"))
	require.NoError(d.t, err)
}

// old makes all runs look as if nobody had touched them for a while.
func (d *desk) old() {
	d.t.Helper()
	db, err := sqlx.Open("sqlite3", filepath.Join(d.dir, "shop.db"))
	require.NoError(d.t, err)
	defer db.Close()
	_, err = db.Exec(`UPDATE durable_runs SET updated_at = ?`, time.Now().Add(-630*time.Second).UnixMicro())
	require.NoError(d.t, err)
}

func approves(id string) func(d *desk, s *screen) {
	return func(d *desk, s *screen) {
		s.until("Answer:")
		d.ok("shop durable approve " + id)
	}
}

// fiveSessions are those of the transcripts.
func fiveSessions(d *desk) {
	d.t.Helper()
	ends := func(s *screen, play func(*desk, *screen), id string, code int) {
		d.t.Helper()
		approves(id)(d, s)
		require.Equal(d.t, code, s.end(), plain(s.seen))
	}
	d.sh("shop durable run broken --id order-38")
	d.starts("order-39")
	ends(d.with("SHOP_FAIL=ship").terminal("shop durable run checkout --resume order-39"), nil, "order-39", 1)
	ends(d.terminal(`shop durable run checkout --id order-40 --input '{"id":"order-40"}'`), nil, "order-40", 0)
	d.starts("order-41")
	s := d.terminal("shop durable run checkout --resume order-41")
	s.until("Answer:")
	s.press(ctrlC)
	require.Equal(d.t, 130, s.end())
}

// The first command that is printed here leaves order-42 interrupted; the others
// go on from what those before them have left.
var scenes = []scene{
	{
		name: "an empty store", line: "durable sessions ls", before: func(d *desk) { d.ok("shop durable sessions ls") },
		want: "No sessions.\n",
	},
	{
		name: "run and Ctrl-C", env: []string{"SHOP_HOLD=charge"}, line: `shop durable run checkout --id order-42 --input '{"id":"order-42"}'`,
		before: fiveSessions,
		play: func(d *desk, s *screen) {
			s.until("… attempt 3 of 5")
			require.Eventually(d.t, func() bool { return strings.Count(strings.Join(d.journal(), "\n"), "charge order-42") == 1 }, 30*time.Second, 5*time.Millisecond)
			s.press(ctrlC)
		},
		// The terminal itself prints ^C, in the line of the attempt that was under way.
		want: `🔄 Starting session: order-42
Executing step 1/4: reserve
  ✓ TOOK
Executing step 2/4: charge
  ✗ attempt 1 of 5: bank: 503 (next in TOOK)
  ✗ attempt 2 of 5: bank: timeout (next in TOOK)
  … attempt 3 of 5

Saving a checkpoint (TOOK at most; Ctrl-C again quits)
Session interrupted. Resume with: shop durable run checkout --resume order-42
`, code: 130,
	},
	{
		name: "a new run only suggests", env: []string{"SHOP_FAIL=reserve"}, line: "shop durable run checkout --input '{}'",
		want: `order-42 was interrupted. Resume with: shop durable run checkout --resume order-42
🔄 Starting session: checkout-DATE-NAME
Executing step 1/4: reserve
  ✗ reserve is out of order
Workflow checkout-DATE-NAME failed: step reserve: reserve is out of order
Show it: shop durable sessions show checkout-DATE-NAME
`, code: 1,
	},
	{
		name: "dry run", line: "durable resume order-42 --dry-run",
		before: func(d *desk) {
			id := regexp.MustCompile(`checkout-\S+`).FindString(d.ok("durable sessions ls --status failed").out)
			d.ok("shop durable checkpoints delete " + id + " --yes") // the list below has five
		},
		want: `Resuming from step 2 of 4: charge, attempt 3 of 5
  skipped      reserve
  re-executed  charge
  to run       approve, ship
Dry run: nothing changed, nothing ran.
This program lacks the code of checkout: whether that code fits is seen by one that has it.
`,
	},
	{
		name: "completed is not resumable", line: "durable resume order-40",
		// A checkpoint's number is its event's: the first result is the third event.
		want: `Session order-40 is not resumable (status: completed)
Copy it: durable fork order-40 --from 3
`, code: 4,
	},
	{
		name: "no checkpoint", line: "durable resume order-38",
		want: `Workflow order-38 has no checkpoint.
Restart from its input: durable resume order-38 --force
`, code: 4,
	},
	{
		name: "occupied", line: "shop durable resume order-39",
		want: `cart:7 is occupied by order-41 (waiting).
Answer it: shop durable approve order-41
`, code: 4,
	},
	{
		name: "nobody has the code", line: "durable resume order-42",
		want: `Nobody alive runs checkout; this program lacks its code.
Run: shop durable run checkout --resume order-42
`, code: 4,
	},
	{
		name: "no such session", line: "durable resume order-99",
		want: `Session not found: order-99
List: durable sessions ls
`, code: 3,
	},
	{
		name: "sessions ls", line: "durable sessions ls",
		// order-38 is of a workflow that declares no steps, and has nothing to be
		// resumed from; order-39 has failed for good, and is resumed all the same.
		want: `  ID        WORKFLOW  STATUS       STEP            STARTED   LAST CHECKPOINT
▸ order-42  checkout  interrupted  2/4 charge 3/5  TIME  TIME
  order-41  checkout  waiting      3/4 approve     TIME  TIME
  order-40  checkout  completed    4/4             TIME  TIME
▸ order-39  checkout  failed       4/4 ship        TIME  TIME
  order-38  broken    failed       0               TIME  -
2 of 5 resumable: durable resume ID
`,
	},
	{
		name: "sessions ls in a pipe", line: "durable sessions ls --resumable | head -1", pipe: true,
		want: "order-42\tcheckout\tinterrupted\t2/4\tcharge\t3/5\tTIME\tTIME\tresumable\n",
	},
	{
		name: "sessions show", line: "durable sessions show order-42",
		// The sentence, and which program it was, are more than the transcript has.
		want: `order-42  checkout v1  interrupted
Stopped in good order WHEN before attempt 3 of 5 of charge. No live process serves checkout v1.
Steps       1 of 4 done, iteration 1
Started     TIME, active TOOK, resumed 0 times
Checkpoint  6 at TIME
Environment dir DIR, program shop, BANK_KEY=[redacted]
  ✓ reserve  TOOK
  ▸ charge   attempt 3 of 5  next
        1  TIME  TOOK  bank: 503
        2  TIME  TOOK  bank: timeout
  · approve
  · ship
Resume with: shop durable run checkout --resume order-42
`,
	},
	{
		name: "checkpoints list", line: "durable checkpoints list order-42",
		want: `ID  RUN       STEP     ATTEMPT     TIME      SIZE  VERSION  STATUS
3   order-42  reserve  1           TIME  N B  1        ok
4   order-42  charge   1/5 failed  TIME  N B  1        ok
5   order-42  charge   2/5 failed  TIME  N B  1        ok
6   order-42  -        -           TIME  N B  1        ok
`,
	},
	{
		name: "stuck", line: "durable stuck", before: func(d *desk) { d.old() },
		want: `ID        FOR     REASON                      NEXT
order-41  TOOK  nobody alive runs checkout  Start the program that has its code
order-42  TOOK  nobody alive runs checkout  shop durable run checkout --resume order-42
`, code: 6,
	},
	{
		name: "watch of a run that nobody executes", line: "durable watch order-42",
		want: `order-42  interrupted  1 of 4  ██░░░░░░░░  TOOK  nobody executes it
  ✓ reserve  TOOK
  ▸ charge   attempt 3 of 5  (2 failed: bank: timeout)
  · approve
  · ship
Nobody executes order-42 (interrupted). Resume with: shop durable run checkout --resume order-42
`,
	},
	{
		name: "doctor", line: "durable doctor", code: 6,
		want: `✓ schema     4
✓ store      sqlite, presence by file lock, 5 runs
✓ executors  0 live
! stuck      2 runs cannot go on            durable stuck
✓ integrity  5 runs sound
0 problems, 1 warning
`,
	},
	{
		name: "schema status", line: "durable schema status",
		want: "Schema 4, as this program needs it.\n",
	},
	{
		name: "schema migrate", line: "durable schema migrate --dry-run",
		want: `Schema 4, as this program needs it.
Dry run: nothing changed.
`,
	},
	{
		name: "changed code", env: []string{"SHOP_FRAUD=1"}, line: "shop durable resume order-42",
		// The source has its directory, to be opened.
		want: `Definition changed: order-42 (checkout) stopped at call 2, still resumable.
    recorded   code now
  1 reserve    reserve
> 2 charge     check-fraud   main.go:LINE
check-fraud stands where charge was recorded: it was inserted. Make it legal:
  if durable.Patched(ctx, "check-fraud") { … check-fraud }, and charge after it
Or run this with the code it was started with. The code that is here says version 1, too: name changed code durable.Version(…), and keep the old function beside it for the runs that began with it.
Or match by name: shop durable resume order-42 --force
`, code: 4,
	},
	{
		name: "in progress", env: []string{"SHOP_HOLD=charge"}, line: "shop durable resume order-42",
		play: func(d *desk, s *screen) {
			s.until("… attempt 3 of 5")
			a := d.sh("durable resume order-42")
			require.Equal(d.t, 4, a.code)
			require.Equal(d.t, "order-42 is already in progress (pid PID on HOST).\nFollow it: durable watch order-42\n", d.shown(a.err))
			w := d.terminal("durable watch order-42")
			w.until("· ship")
			w.press("q")
			require.Zero(d.t, w.end())
			require.Regexp(d.t, `^order-42  running  1 of 4  ██░░░░░░░░  TOOK  pid PID on HOST
  ✓ reserve  TOOK
  ▸ charge   attempt 3 of 5  \(2 failed: bank: timeout\)
  · approve
  · ship
`, d.shown(rendered(w.seen)))
			s.press(ctrlC)
		},
		want: `Workflow order-42 resumed
Resuming from step 2 of 4: charge, attempt 3 of 5
  skipped      reserve
  re-executed  charge
  to run       approve, ship
Executing step 2/4: charge
  … attempt 3 of 5

Saving a checkpoint (TOOK at most; Ctrl-C again quits)
Session interrupted. Resume with: shop durable run checkout --resume order-42
`, code: 130,
	},
	{
		name: "a damaged checkpoint", line: "durable checkpoints validate order-42", before: func(d *desk) { damage(d, "charge", 2) },
		want: `5  charge attempt 2  corrupt: its checksum does not fit: it, or the event before it, was changed; newest valid: 4
7 ok, 1 corrupt, 0 incompatible. Mend: durable checkpoints repair order-42
`, code: 6,
	},
	{
		name: "doctor of a damaged store", line: "durable doctor", before: func(d *desk) { d.old() },
		want: `✓ schema     4
✓ store      sqlite, presence by file lock, 5 runs
✓ executors  0 live
! stuck      2 runs cannot go on            durable stuck
✗ integrity  order-42: 1 corrupt            durable checkpoints repair order-42
1 problem, 1 warning
`, code: 6,
	},
	{
		name: "its repair", line: "durable checkpoints repair order-42",
		// A step is taken back as a whole, with the attempt that is sound.
		want: `Recovered workflow order-42: corrupt checkpoint 5. Created branch 1 from event 3
Left on branch 0: 4, 5, 6, 7, 8. Next: charge.
`,
	},
	{
		name: "resume, and an answer from elsewhere", line: "shop durable resume", play: approves("order-42"),
		want: `Last interrupted session: order-42 (checkout, TIME)
Workflow order-42 resumed
Resuming from step 2 of 4: charge
  skipped      reserve
  to run       charge, approve, ship
Executing step 2/4: charge
  ✗ attempt 1 of 5: bank: 503 (next in TOOK)
  ✗ attempt 2 of 5: bank: timeout (next in TOOK)
  ✓ attempt 3 of 5, TOOK
Executing step 3/4: approve
  ? Ship order-42?  Answer: shop durable approve order-42
  ✓ approved
Executing step 4/4: ship
  ✓ TOOK
Workflow order-42 completed: {"tracking":"H-7"}
`,
	},
	{
		name: "nothing to resume", line: "durable resume",
		want: "Nothing to resume. List: durable sessions ls\nNo run was interrupted; 1 run failed. Name one: durable ls --status failed\n", code: 3,
	},
	{
		name: "approve", line: "durable approve order-41",
		want: "Nobody executes order-41 at the moment. Start the program that has its code.\nApproved order-41: Ship order-41?\n",
	},
	{
		name: "fork", line: "durable fork order-40 --from reserve --id order-43", play: func(_ *desk, s *screen) {
			s.until("Continue? [y/N]")
			s.press("y\n")
		},
		want: `Kept: reserve. Runs again with new idempotency keys: charge, approve, ship.
Continue? [y/N] y
Forked to order-43. Resume with: shop durable run checkout --resume order-43
`,
	},
	{
		name: "forced", env: []string{"SHOP_FRAUD=1"}, line: "shop durable resume order-44 --force",
		before: func(d *desk) {
			s := d.with("SHOP_HOLD=charge").terminal(`shop durable run checkout --id order-44 --input '{"id":"order-44"}'`)
			s.until("… attempt 3 of 5")
			d.until("charge order-44")
			s.press(ctrlC)
			require.Equal(d.t, 130, s.end())
		},
		play: func(d *desk, s *screen) {
			s.until("Answer:")
			require.Equal(d.t, "Rejected order-44: Ship order-44?\n", d.ok(`durable reject order-44 --reason "no stock"`).out)
		},
		want: `Workflow order-44 resumed
Resuming from step 2 of 5: charge, attempt 3 of 5
  skipped      reserve
  re-executed  charge
  to run       check-fraud, approve, ship
Forced: what the code calls is matched with the history by name; check-fraud is new.
Executing step 2/4: check-fraud
  ✓ TOOK
Executing step 2/4: charge
  ✓ attempt 3 of 5, TOOK
Executing step 3/4: approve
  ? Ship order-44?  Answer: shop durable approve order-44
  ✓ rejected
Workflow order-44 failed: not shipped: no stock
Show it: shop durable sessions show order-44
`, code: 1,
	},
	{
		name: "history", line: "durable history --status completed",
		before: func(d *desk) {
			require.NoError(d.t, exec.Command("git", "init", "-q", d.dir).Run())
			d.ok("durable archive store order-40")
		},
		want: `ID        WORKFLOW  STATUS     STARTED   DURATION  SOURCE
order-40  checkout  completed  TIME  TOOK      git
`,
	},
	{
		name: "a second Ctrl-C", env: []string{"SHOP_HOLD=charge", "SHOP_STUBBORN=1", "SHOP_GRACE=1h"}, line: `shop durable run checkout --id order-45 --input '{"id":"order-45"}'`,
		play: func(d *desk, s *screen) {
			s.until("… attempt 3 of 5")
			d.until("charge order-45")
			s.press(ctrlC)
			s.until("again quits)")
			s.pressAgain()
		},
		want: `order-43 was interrupted. Resume with: shop durable run checkout --resume order-43
🔄 Starting session: order-45
Executing step 1/4: reserve
  ✓ TOOK
Executing step 2/4: charge
  ✗ attempt 1 of 5: bank: 503 (next in TOOK)
  ✗ attempt 2 of 5: bank: timeout (next in TOOK)
  … attempt 3 of 5

Saving a checkpoint (1h0m0s at most; Ctrl-C again quits)
^C
Quit. charge attempt 3 has no outcome; it runs again.
Session interrupted. Resume with: shop durable run checkout --resume order-45
`, code: 130,
	},
	{
		name: "no server", line: "durable resume order-42 --profile prod",
		before: func(d *desk) {
			profileOf(d, "profiles:\n  default: {store: shop.db}\n  prod: {server: \"http://127.0.0.1:1\"}\n")
		},
		want: `Server not running
Start it, or: durable resume order-42 --store DSN
`, code: 5,
	},
	{
		name: "a server does not have it", line: "durable resume order-99 --profile prod",
		before: func(d *desk) {
			_, url := served(d.with("SHOP_DB=prod.db"))
			profileOf(d, "profiles:\n  default: {store: shop.db}\n  prod: {server: \""+url+"\"}\n")
			d.ok("durable run count --id order-40 --input 1 --profile prod")
		},
		want: `Workflow not found
List: durable sessions ls --profile prod
`, code: 3,
	},
	{
		name: "completed on a server", line: "durable resume order-40 --profile prod",
		want: `Session order-40 is not resumable (status: completed)
Copy it: durable fork order-40 --from 3 --profile prod
`, code: 4,
	},
}

func TestTheTranscriptsOfTheDesign(t *testing.T) {
	d := newDesk(t).with("BANK_KEY=s3cret", "SHOP_PAUSE=30ms")
	profileOf(d, "profiles:\n  default: {store: shop.db}\n")
	for _, sc := range scenes {
		d.t = t
		if sc.before != nil {
			sc.before(d)
		}
		got, code := "", 0
		if sc.pipe {
			a := d.with(sc.env...).sh(sc.line)
			got, code = a.out+a.err, a.code
		} else {
			s := d.with(sc.env...).terminal(sc.line)
			if sc.play != nil {
				sc.play(d, s)
			}
			code = s.end()
			got = rendered(s.seen)
		}
		require.Equal(t, sc.want, d.shown(got), "%s: $ %s", sc.name, sc.line)
		require.Equal(t, sc.code, code, "%s: $ %s", sc.name, sc.line)
	}
}
