package cli_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"
)

// A predicament is a state in which a person finds the run "order-42".
type predicament struct {
	name string
	env  []string // of the program as it is installed now
	make func(d *desk)
	// stays: nothing that is printed moves the run, and the text says why.
	stays string
	// beside: it can only be looked at where it is, since a process has it.
	beside bool
}

func predicaments() []predicament {
	asking := func(d *desk) {
		s := d.terminal("shop durable run checkout --id order-42 " + order)
		s.until("? Ship order-42?")
		s.press(ctrlC)
		require.Equal(d.t, 130, s.end(), plain(s.seen))
	}
	sql := func(statement string) func(d *desk) {
		return func(d *desk) {
			interrupted(d)
			db, err := sqlx.Open("sqlite3", "file:"+filepath.Join(d.dir, "my data", "shop.db"))
			require.NoError(d.t, err)
			defer db.Close()
			db.MustExec(statement)
		}
	}
	const events = `place >> 28 = (SELECT no FROM durable_runs WHERE id = 'order-42')`
	return []predicament{
		{name: "unknown id", make: func(d *desk) { d.ok("shop durable run count --id other --input 0") }, stays: "not found"},
		{name: "pending, nobody has its code", make: func(d *desk) { d.ok("shop many 1 order-42") }, stays: "nobody alive runs elsewhere"},
		{name: "interrupted", make: interrupted},
		{name: "its process was killed", make: func(d *desk) {
			p := d.with("SHOP_HOLD=charge").start("shop durable run checkout --id order-42 " + order)
			d.until("charge order-42")
			p.signal(9)
			p.wait()
		}},
		{name: "waiting for an approval", make: asking},
		{name: "paused", make: func(d *desk) { asking(d); d.ok("shop durable pause order-42") }},
		{name: "failed for good", make: func(d *desk) {
			require.Equal(d.t, 1, d.with("SHOP_BANK=down").sh("shop durable run checkout --id order-42 "+order).code)
		}},
		{name: "failed before anything was recorded", env: []string{"SHOP_MENDED=1"}, make: func(d *desk) {
			require.Equal(d.t, 1, d.sh("shop durable run broken --id order-42").code)
		}},
		{name: "completed", make: func(d *desk) { d.ok("shop durable run count --id order-42 --input 1") }},
		{name: "cancelled", make: func(d *desk) { asking(d); d.ok("shop durable cancel order-42") }},
		{name: "the code was changed", env: []string{"SHOP_FRAUD=1"}, make: interrupted},
		{name: "a value does not fit its type", env: []string{"SHOP_RETYPED=1"}, make: asking, stays: "cannot be read"},
		{name: "an event is damaged", make: sql(`UPDATE durable_events SET data = replace(data, 'bank', 'tank') WHERE key = 'charge' AND attempt = 2 AND ` + events)},
		{name: "no event is left", make: sql(`DELETE FROM durable_events WHERE ` + events)},
		{name: "its key is occupied", make: func(d *desk) {
			require.Equal(d.t, 1, d.with("SHOP_BANK=down").sh("shop durable run checkout --id order-42 --exclusive desk "+order).code)
			s := d.terminal("shop durable run checkout --id other --exclusive desk --input '{\"id\":\"other\"}'")
			s.until("? Ship other?")
			s.press(ctrlC)
			require.Equal(d.t, 130, s.end(), plain(s.seen))
		}},
		{name: "a live process has it", beside: true, make: func(d *desk) {
			d.with("SHOP_HOLD=charge").start("shop durable run checkout --id order-42 " + order)
			d.until("charge order-42")
		}},
	}
}

// A line of advice ends in a command, of one of the two programs.
var advised = regexp.MustCompile(`(?:^|[\s(])((?:cd \S+ && )?(?:env (?:-u \w+ )+)?(?:shop )?durable (?:resume|resume-last|run|sessions|runs|approve|reject|signal|cancel|pause|unpause|watch|branches|stuck|fork|checkpoints|history|archive|schema|doctor)\b[^\t]*)$`)

func commandsIn(text string) (all []string) {
	for line := range strings.Lines(plain(text)) {
		for part := range strings.SplitSeq(strings.TrimRight(line, "\n"), "\t") {
			if m := advised.FindStringSubmatch(part); m != nil && !slices.Contains(all, m[1]) {
				all = append(all, m[1])
			}
		}
	}
	return all
}

// looksOnly reports whether a command only looks.
func looksOnly(command string) bool {
	return regexp.MustCompile(` --dry-run\b|durable (sessions (show|ls)|watch|branches|stuck|doctor|checkpoints (list|show|validate))\b`).MatchString(command)
}

// A trail follows what is printed of one predicament, command by command.
type trail struct {
	t    *testing.T
	p    *predicament
	from *desk
	n    int
	done map[string]*followed
}

// followed is what has come of a command.
type followed struct {
	text  string
	code  int
	moved bool // the store is another one
	under bool // it is being followed
	next  []string
}

// fresh is another shell, of somebody who has a copy of the data and none of the
// variables.
func (x *trail) fresh() *desk {
	if x.p.beside {
		return x.from
	}
	x.n++
	d := newDesk(x.t, append(slices.Clone(x.p.env), "SHOP_DB=my data/shop.db")...)
	require.NoError(x.t, os.CopyFS(filepath.Join(d.dir, "my data"), os.DirFS(filepath.Join(x.from.dir, "my data"))))
	return d
}

// runs lists where all runs stand.
func (d *desk) runs() string {
	db, err := sqlx.Open("sqlite3", "file:"+filepath.Join(d.dir, "my data", "shop.db")+"?mode=ro")
	require.NoError(d.t, err)
	defer db.Close()
	var all []string
	require.NoError(d.t, db.Select(&all, `SELECT id || ' ' || status || ' ' || epoch || ' ' || (SELECT count(*) FROM durable_events WHERE place >> 28 = r.no) || ' ' || (SELECT count(*) FROM durable_inbox i WHERE i.run_no = r.no) FROM durable_runs r ORDER BY id`))
	return strings.Join(all, "\n")
}

// follow runs a command, and then what that has printed.
func (x *trail) follow(command string) *followed {
	x.t.Helper()
	if f := x.done[command]; f != nil {
		return f
	}
	f := &followed{under: true}
	x.done[command] = f
	d := x.fresh()
	before := d.runs()
	f.text, f.code = d.printed(command)
	f.moved = d.runs() != before
	where := fmt.Sprintf("%s: %s\nexit %d\n%s", x.p.name, command, f.code, f.text)
	if f.code == 2 && strings.Contains(f.text, "say --yes") {
		f.moved = true // it asks at a terminal
	} else {
		require.NotContains(x.t, []int{2, 5, 126, 127}, f.code, "it does not parse, or acts on nothing: %s", where)
	}
	require.NotEmpty(x.t, f.text, where)
	f.next = commandsIn(f.text)
	if f.code == 4 {
		require.NotContains(x.t, f.next, command, "it was refused, and advises itself: %s", where)
	}
	for _, next := range f.next {
		x.follow(next)
	}
	f.under = false
	return f
}

// helps reports whether a command moves the run, or leads to one that does. Who is
// sent back to where he came from is not helped.
func (x *trail) helps(command string, seen []string) bool {
	f := x.done[command]
	if slices.Contains(seen, command) {
		return false
	}
	if f.moved || x.p.stays != "" && strings.Contains(f.text, x.p.stays) && !slices.ContainsFunc(f.next, func(c string) bool { return !looksOnly(c) }) {
		return true
	}
	return slices.ContainsFunc(f.next, func(next string) bool { return x.helps(next, append(seen, command)) })
}

// printed runs a line until it ends, or asks a person, or has shown what it follows;
// then it is interrupted.
func (d *desk) printed(line string) (text string, code int) {
	d.t.Helper()
	if strings.HasPrefix(line, "cd ") {
		a := d.sh(line)
		return a.err + a.out, a.code
	}
	p := d.start(line)
	ended := make(chan struct{})
	go func() { _ = p.cmd.Wait(); close(ended) }()
	stopped := false
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		select {
		case <-ended:
			return p.text(), p.cmd.ProcessState.ExitCode()
		default:
		}
		seen := p.text()
		if !stopped && (strings.Contains(seen, "? Ship") || strings.Contains(line, " watch ") && seen != "") {
			stopped = true
			if err := p.cmd.Process.Signal(os.Interrupt); !errors.Is(err, os.ErrProcessDone) { // a watch may have come to its end
				require.NoError(d.t, err)
			}
		}
		require.Less(d.t, time.Since(begin), time.Minute, "%s does not end:\n%s", line, seen)
	}
}

// Every command that is printed is one that can be pasted into another shell, where
// it does what was wanted, or says truly why not; and no two of them send a person
// from one to the other.
func TestEveryPrintedCommandHelpsInAnotherShell(t *testing.T) {
	t.Parallel()
	for _, p := range predicaments() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, "SHOP_DB=my data/shop.db")
			require.NoError(t, os.Mkdir(filepath.Join(d.dir, "my data"), 0o700))
			p.make(d)
			x := &trail{t: t, p: &p, from: d, done: map[string]*followed{}}
			op := d.with(p.env...)
			acts := []string{"resume order-42"}
			if p.beside {
				acts = append(acts, "resume order-42 --dry-run")
			}
			looks := []string{"sessions show order-42", "stuck", "doctor", "checkpoints validate order-42", "resume order-42 --dry-run"}
			for _, way := range []func(string) (string, int){
				func(c string) (string, int) { return op.printed("durable --store 'my data/shop.db' " + c) },
				func(c string) (string, int) { return op.with("DURABLE_STORE=my data/shop.db").printed("durable " + c) },
				func(c string) (string, int) { return x.fresh().printed("shop durable " + c) },
			} {
				for _, c := range looks {
					text, _ := way(c)
					for _, next := range commandsIn(text) {
						x.follow(next)
					}
				}
				for _, c := range acts {
					text, code := way(c)
					if code == 0 || code == 130 {
						continue // it was resumed
					}
					require.NotEqual(t, 2, code, text)
					next := commandsIn(text)
					for _, n := range next {
						x.follow(n)
					}
					switch {
					case p.beside:
						require.NotEmpty(t, next, text)
					case p.stays != "" && !slices.ContainsFunc(next, func(c string) bool { return !looksOnly(c) }):
						require.Contains(t, text, p.stays)
					default:
						require.True(t, slices.ContainsFunc(next, func(n string) bool { return x.helps(n, nil) }), "nothing that is printed helps: %s\n%s", p.name, text)
					}
				}
			}
			t.Logf("%d commands", len(x.done))
		})
	}
}

// Of a run without an event a row is all that is left: every command says so, and it
// can be taken away.
func TestARunOfWhichARowIsLeftIsShownAsThatAndDeleted(t *testing.T) {
	d := newDesk(t, "SHOP_DB=my data/shop.db")
	require.NoError(t, os.Mkdir(filepath.Join(d.dir, "my data"), 0o700))
	all := predicaments()
	all[slices.IndexFunc(all, func(p predicament) bool { return p.name == "no event is left" })].make(d)
	const said = "run order-42 is damaged: it has no event, and can neither be resumed nor repaired"
	for _, c := range []string{"resume order-42", "resume order-42 --dry-run", "checkpoints repair order-42", "run checkout --resume order-42"} {
		a := d.sh("shop durable " + c)
		require.Equal(t, 4, a.code, c)
		require.Contains(t, a.err, said, c)
		require.Contains(t, a.err, "See what is left of it: shop durable checkpoints delete order-42 --dry-run\n", c)
	}
	require.Regexp(t, `(?m)^order-42\tcheckout\tinterrupted \(corrupt\)\t.*[^e]$`, d.ok("shop durable sessions ls").out)
	require.Empty(t, d.ok("shop durable sessions ls --resumable").out)
	require.Contains(t, d.ok("shop durable sessions show order-42").out, "interrupted (corrupt)")
	stuck := d.sh("shop durable stuck")
	require.Equal(t, 6, stuck.code, stuck.err)
	require.Contains(t, stuck.out, "order-42\tit has no event")
	require.Contains(t, d.sh("shop durable doctor").out, "order-42: no event is left\tshop durable checkpoints delete order-42 --dry-run\n")
	require.Contains(t, d.sh("shop durable checkpoints validate order-42").err, "0 ok, ")
	d.ok("shop durable checkpoints delete order-42 --yes")
	require.Equal(t, "No sessions.\n", d.ok("shop durable sessions ls").err)
}
