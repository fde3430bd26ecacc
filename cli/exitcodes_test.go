package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "github.com/mattn/go-sqlite3"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/cli"
)

// An outcome is a command that is given, as it is typed after the name of the store, and
// its exit code. A line that begins "shop" is given to the program that has the code, with
// the environment before it.
type outcome struct {
	line string
	code int
}

// outcomes says of every command how it ends. That a command that is called wrongly exits
// with 2, and one whose store or server cannot be reached with 5, is tested of each of them,
// and needs no row.
var outcomes = map[string][]outcome{
	"run": {
		{"shop durable run count --id new --input 0", 0},
		{"shop durable run broken --id new", 1},
		{"shop durable run count --input {", 2},
		{"shop durable run count --input @missing.json", 2},
		{"shop durable run count --resume nosuch", 3},
		{"run count --id new --input 0", 4},
		{"shop durable run count --id done --input 0", 4},
		{"shop durable run count --resume done", 4},
		{"shop durable run checkout --id new --input '{}' --exclusive desk", 4},
		{"shop durable run elsewhere --resume asked", 4},
		{"shop durable run checkout --resume held --dry-run", 2},
	},
	"resume": {
		{"resume held --detach", 0},
		{"resume held --dry-run", 0},
		{"resume --all", 0},
		{"resume --all --dry-run", 0},
		{"SHOP_BANK=down shop durable resume failed --reset-failures", 1},
		{"resume held --all", 2},
		{"resume --workflow checkout", 2},
		{"resume nosuch", 3},
		{"resume held --from-checkpoint 900 --dry-run", 3},
		{"resume held --from-checkpoint nosuch --dry-run", 3},
		{"resume held", 4},
		{"resume done", 4},
		{"resume asked", 4},
		{"resume paused", 4},
		{"resume cancelled", 4},
		{"SHOP_FRAUD=1 shop durable resume held", 4},
		{"SHOP_FRAUD=1 shop durable resume --all --workflow checkout", 4},
	},
	"resume-last":     {{"resume-last --dry-run", 0}, {"shop durable resume-last --dry-run", 0}, {"resume-last", 4}, {"resume-last --store empty.db", 3}},
	"sessions ls":     {{"sessions ls", 0}, {"sessions ls --store empty.db", 0}, {"sessions ls --limit -1", 2}, {"sessions ls --status nosuch", 2}},
	"sessions show":   {{"sessions show asked", 0}, {"sessions show nosuch", 3}},
	"sessions clean":  {{"sessions clean --all --yes", 0}, {"sessions clean --all --dry-run", 0}, {"sessions clean --older-than soon", 2}, {"sessions clean --all --keep 1", 2}},
	"ls":              {{"ls", 0}, {"ls --resumable", 0}, {"ls --limit -1", 2}},
	"show":            {{"show asked", 0}, {"show nosuch", 3}},
	"approve":         {{"approve asked", 0}, {"approve asked --value {", 2}, {"approve asked --wait nosuch", 3}, {"approve nosuch", 3}, {"approve done", 4}},
	"reject":          {{"reject asked", 0}, {"reject asked --wait nosuch", 3}, {"reject nosuch", 3}, {"reject done", 4}},
	"signal":          {{"signal asked word --value 1", 0}, {"signal asked word --value {", 2}, {"signal asked word", 2}, {"signal asked approve", 2}, {"signal asked approve --value null", 2}, {"signal nosuch word", 3}, {"signal done word", 4}},
	"cancel":          {{"cancel asked", 0}, {"cancel nosuch", 3}, {"cancel done", 4}},
	"pause":           {{"pause asked", 0}, {"pause nosuch", 3}, {"pause done", 4}},
	"unpause":         {{"unpause paused", 0}, {"unpause nosuch", 3}, {"unpause asked", 4}},
	"watch":           {{"watch done", 0}, {"watch held", 0}, {"watch nosuch", 3}},
	"branches":        {{"branches asked", 0}, {"branches nosuch", 3}},
	"stuck":           {{"stuck --store empty.db", 0}, {"stuck", 6}, {"stuck --json", 6}},
	"queues ls":       {{"queues ls", 0}},
	"queues show":     {{"queues show emails", 0}, {"queues show nosuch", 3}},
	"queues pause":    {{"queues pause emails", 0}, {"queues pause nosuch", 3}},
	"queues resume":   {{"queues resume emails", 0}, {"queues resume nosuch", 3}},
	"queues dead":     {{"queues dead emails", 0}, {"queues dead emails --limit -1", 2}, {"queues dead nosuch", 3}},
	"queues retry":    {{"queues retry emails dead", 0}, {"queues retry emails --all", 0}, {"queues retry emails", 2}, {"queues retry emails nosuch", 3}, {"queues retry nosuch dead", 3}, {"queues retry emails done", 4}},
	"schedules ls":    {{"schedules ls", 0}},
	"schedules show":  {{"schedules show yearly", 0}, {"schedules show nosuch", 3}},
	"schedules pause": {{"schedules pause yearly", 0}, {"schedules pause nosuch", 3}},
	"schedules resume": {
		{"schedules resume yearly", 0}, {"schedules resume nosuch", 3},
	},
	"schedules trigger": {{"schedules trigger yearly", 0}, {"schedules trigger nosuch", 3}},
	"schedules backfill": {
		{"schedules backfill yearly --from 2024-01-01T00:00:00Z --to 2025-06-01T00:00:00Z", 0},
		{"schedules backfill yearly --from yesterday --to 2025-06-01T00:00:00Z", 2},
		{"schedules backfill nosuch --from 2024-01-01T00:00:00Z --to 2025-06-01T00:00:00Z", 3},
	},
	"schedules rm": {{"schedules rm yearly --yes", 0}, {"schedules rm nosuch --yes", 3}},
	"fork": {
		{"fork done --from 2 --yes", 0}, {"fork done --from 2 --dry-run", 0}, {"fork nosuch --from 1 --yes", 3}, {"fork done --from 900 --yes", 3}, {"fork done --from 2 --edit nosuch=1 --yes", 3},
		{"fork done --from 2 --id held --yes", 4},
	},
	"checkpoints list":     {{"checkpoints list done", 0}, {"checkpoints list", 0}, {"checkpoints list nosuch", 3}},
	"checkpoints show":     {{"checkpoints show done 2", 0}, {"checkpoints show nosuch 2", 3}, {"checkpoints show done 900", 3}},
	"checkpoints validate": {{"checkpoints validate done", 0}, {"checkpoints validate", 0}, {"checkpoints validate nosuch", 3}, {"checkpoints validate --store damaged.db", 6}},
	"checkpoints repair": {
		{"checkpoints repair done", 0}, {"checkpoints repair held --store damaged.db", 0}, {"checkpoints repair held --store damaged.db --yes", 0}, {"checkpoints repair held --store damaged.db --dry-run", 0},
		{"checkpoints repair nosuch", 3},
	},
	"checkpoints edit": {
		{"checkpoints edit failed reserve --value null --force --yes", 0}, {"checkpoints edit failed reserve --value { --yes", 2},
		{"checkpoints edit failed reserve --value null --yes", 4}, {"checkpoints edit nosuch reserve --value 1 --yes", 3}, {"checkpoints edit failed nosuch --value 1 --yes", 3}, {"checkpoints edit failed ship --value 1 --yes", 3}, {"checkpoints edit asked approve --value true --yes", 4},
	},
	"checkpoints migrate": {{"checkpoints migrate --yes", 0}, {"checkpoints migrate --dry-run", 0}},
	"checkpoints restore": {{"checkpoints restore backup.db --yes", 0}, {"checkpoints restore nosuch.db --yes", 3}},
	"checkpoints export":  {{"checkpoints export done", 0}, {"checkpoints export nosuch", 3}},
	"checkpoints import": {
		{"checkpoints import done.run --id copy", 0}, {"checkpoints import done.run --id copy --yes", 0}, {"checkpoints import nosuch.run", 2}, {"checkpoints import garbage", 4}, {"checkpoints import done.run --store held.db", 4},
	},
	"checkpoints delete": {{"checkpoints delete done --yes", 0}, {"checkpoints delete done --dry-run", 0}, {"checkpoints delete nosuch --yes", 3}},
	"history":            {{"history --dir archive", 0}, {"history --dir archive --git .", 2}, {"history --dir nosuch", 5}},
	"archive list":       {{"archive list --dir archive", 0}, {"archive list --dir nosuch", 5}},
	"archive show":       {{"archive show done --dir archive", 0}, {"archive show nosuch --dir archive", 3}, {"archive show done --dir nosuch", 5}},
	"archive store":      {{"archive store done --dir archive", 0}, {"archive store nosuch --dir archive", 3}, {"archive store done --dir nosuch", 5}},
	"archive restore": {
		{"archive restore done --dir archive --store empty.db", 0}, {"archive restore nosuch --dir archive", 3}, {"archive restore done --dir archive", 4}, {"archive restore done --dir nosuch", 5},
	},
	"schema status":  {{"schema status", 0}},
	"schema migrate": {{"schema migrate --yes", 0}, {"schema migrate --dry-run", 0}},
	"schema backup":  {{"schema backup new.db", 0}, {"schema backup backup.db", 2}, {"schema backup nosuch/new.db", 1}},
	"schema restore": {{"schema restore backup.db --yes", 0}, {"schema restore nosuch.db --yes", 3}, {"schema restore garbage --yes", 4}},
	"version":        {{"version", 0}, {"version --json", 0}},
	"doctor":         {{"doctor --store empty.db", 0}, {"doctor --store damaged.db", 6}, {"doctor", 6}, {"doctor --quick --all", 2}},
	"completion":     {{"completion bash", 0}, {"completion csh", 2}},
}

// Commands that open neither a store nor a server, or not the one that is named.
var (
	opensNothing = []string{"completion", "version"}
	opensArchive = []string{"history", "archive list", "archive show"}
)

// The arguments of a well-formed call, for commands that the test only wants to fail later.
func wellFormed(path string) string {
	line, _, _ := strings.Cut(outcomes[path][0].line, " --store ")
	_, line, ok := strings.Cut(" "+line, " durable ")
	if !ok {
		line = outcomes[path][0].line
		line, _, _ = strings.Cut(line, " --store ")
	}
	return line
}

// leaves lists the commands that do something, by their path, as users see them.
func leaves(cmd *cobra.Command, path string) map[string]*cobra.Command {
	all := map[string]*cobra.Command{}
	for _, sub := range cmd.Commands() {
		p := strings.TrimSpace(path + " " + sub.Name())
		if sub.Hidden {
			continue
		}
		if !sub.HasSubCommands() {
			all[p] = sub
		}
		for k, v := range leaves(sub, p) {
			all[k] = v
		}
	}
	return all
}

// Exit codes are as documented: every command, and what may come of it.
func TestEveryCommandEndsWithItsDocumentedExitCode(t *testing.T) {
	t.Parallel()
	prepared := prepare(t)
	all := leaves(cli.Command(nil), "")
	for path, cmd := range all {
		rows := outcomes[path]
		require.NotEmpty(t, rows, "%s is not in the table", path)
		codes := map[int]bool{}
		for _, r := range rows {
			codes[r.code] = true
		}
		require.True(t, codes[0], "%s has no row in which it is done", path)
		names := regexp.MustCompile(`\b(ID|QUEUE|SCHEDULE|BACKUP)\b`).MatchString(cmd.Use)
		require.True(t, codes[3] || !names, "%s names something, and has no row in which that does not exist", path)
	}
	for path := range outcomes {
		require.Contains(t, all, path, "there is no such command")
	}
	for path, rows := range outcomes {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			for _, r := range rows {
				d := newDesk(t)
				require.NoError(t, os.CopyFS(d.dir, os.DirFS(prepared)))
				a := d.sh(r.typed())
				require.Equal(t, r.code, a.code, "%s\n%s%s", r.typed(), a.out, a.err)
				if a.code != 0 && a.code != 6 {
					require.NotEmpty(t, a.err, "%s says nothing", r.typed())
				}
				if slices.Contains([]int{3, 4, 5}, a.code) && !strings.Contains(r.line, "--all") {
					require.Regexp(t, `\n.|List: `, a.err, "%s says nothing to do", r.typed())
				}
			}
		})
	}
}

func (r *outcome) typed() string {
	switch {
	case strings.Contains(r.line, "shop durable"):
		return r.line
	case strings.Contains(r.line, "--store"):
		return "durable " + r.line
	}
	return "durable --store shop.db " + r.line
}

var preparation sync.Once

// prepare returns a directory with a store in which runs stand where commands find them, and
// what they read beside it. Tests copy it.
func prepare(t *testing.T) string {
	dir := filepath.Join(bin, "prepared")
	preparation.Do(func() {
		d := newDesk(t, "SHOP_QUEUE=1", "SHOP_SCHEDULE=1")
		prepareIn(d)
		require.NoError(t, os.CopyFS(dir, os.DirFS(d.dir)))
	})
	require.DirExists(t, dir)
	return dir
}

func prepareIn(d *desk) {
	t := d.t
	d.ok("SHOP_DB=empty.db shop durable ls")
	d.ok("shop durable run count --id done --input 1")
	require.Equal(t, 1, d.with("SHOP_BANK=down").sh(`shop durable run checkout --id failed --input '{"id":"failed"}'`).code)
	for _, id := range []string{"asked", "paused", "cancelled"} {
		p := d.start("shop durable run checkout --exclusive desk-" + id + " --id " + id + ` --input '{"id":"` + id + `"}'`)
		p.until("? Ship")
		p.signal(syscall.SIGINT)
		require.Equal(t, 130, p.wait())
	}
	p := d.start(`shop durable run checkout --exclusive desk --id desk --input '{}'`)
	p.until("? Ship")
	p.signal(syscall.SIGINT)
	require.Equal(t, 130, p.wait())
	d.ok("shop durable pause paused")
	d.ok("shop durable cancel cancelled")
	d.ok("shop enqueue dead")
	mails, _ := served(d, "SHOP_FAIL=send", "SHOP_SERVES=emails")
	d.drained("--store shop.db")
	mails.signal(syscall.SIGKILL)
	mails.wait()

	p = d.with("SHOP_HOLD=charge").start(`shop durable run checkout --id held --input '{"id":"held"}'`)
	d.until("charge held")
	p.signal(syscall.SIGINT)
	require.Equal(t, 130, p.wait())

	d.ok("durable schema backup backup.db --store shop.db")
	d.ok("durable schema backup held.db --store shop.db")
	d.ok("durable schema backup damaged.db --store shop.db")
	db, err := sqlx.Open("sqlite3", filepath.Join(d.dir, "damaged.db"))
	require.NoError(t, err)
	db.MustExec(`UPDATE durable_events SET data = replace(data, 'bank', 'tank') WHERE key = 'charge' AND attempt = 2 AND place >> 28 = (SELECT no FROM durable_runs WHERE id = 'held')`)
	require.NoError(t, db.Close())
	d.ok("mkdir archive && durable archive store done --dir archive --store shop.db")
	d.ok("durable checkpoints export done --store shop.db > done.run")
	db, err = sqlx.Open("sqlite3", filepath.Join(d.dir, "other.db"))
	require.NoError(t, err)
	db.MustExec(`CREATE TABLE orders (id TEXT)`)
	require.NoError(t, db.Close())
	require.NoError(t, os.WriteFile(filepath.Join(d.dir, "garbage"), bytes.Repeat([]byte("no database\n"), 500), 0o600))
}

// What is wrong with how a command is called is exit code 2, whatever it does.
func TestACommandThatIsCalledWronglyExitsWith2(t *testing.T) {
	for path, cmd := range leaves(cli.Command(nil), "") {
		wrong := [][]string{{"--nosuch"}, {"a", "b", "c", "d", "e", "f"}}
		if strings.Contains(cmd.Use, " ") && !strings.Contains(cmd.Use, " [") {
			wrong = append(wrong, []string{})
		}
		if !slices.Contains(opensNothing, path) && !slices.Contains(opensArchive, path) {
			wrong = append(wrong, append(strings.Fields(wellFormed(path))[len(strings.Fields(path)):], "--server", "http://127.0.0.1:1", "--profile", "x"))
		}
		for _, args := range wrong {
			root := cli.Command(nil)
			root.SetArgs(append(strings.Fields(path), args...))
			root.SetOut(io.Discard)
			var said bytes.Buffer
			root.SetErr(&said)
			require.Equal(t, cli.ExitUsage, cli.ExitCode(root.Execute()), "%s %q\n%s", path, args, &said)
			require.NotEmpty(t, said.String(), "%s %q", path, args)
		}
	}
}

// A store or a server that cannot be reached is exit code 5, for every command. With --json
// the error is one object.
func TestACommandThatReachesNothingExitsWith5(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusNotImplemented) }))
	t.Cleanup(elsewhere.Close)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) }))
	t.Cleanup(proxy.Close)
	prepared := prepare(t)
	for path := range leaves(cli.Command(nil), "") {
		if slices.Contains(opensNothing, path) || slices.Contains(opensArchive, path) {
			continue
		}
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			require.NoError(t, os.CopyFS(d.dir, os.DirFS(prepared)))
			line := wellFormed(path)
			for _, on := range []string{
				"--store nosuch.db", "--store other.db", "--store garbage", "--store postgres://127.0.0.1:1/shop", "--store .",
				"--server http://127.0.0.1:1", "--server " + other.URL, "--server " + elsewhere.URL, "--server " + proxy.URL,
			} {
				want := cli.ExitUnreachable
				restores := slices.Contains([]string{"schema restore", "checkpoints restore"}, path)
				switch {
				case strings.HasPrefix(on, "--server") && needsStore(path):
					want = cli.ExitUsage // it has no server
				case on == "--store nosuch.db" && restores:
					continue // a backup can take the place of a store that is not there
				case (on == "--store ." || on == "--store other.db") && restores:
					want = cli.ExitUsage // no backup can take its place
				case on == "--store garbage" && restores:
					want = cli.ExitRefused // what is there is not thrown away
				}
				a := d.sh("durable " + on + " " + line + " --json")
				require.Equal(t, want, a.code, "durable %s %s\n%s%s", on, line, a.out, a.err)
				if path == "doctor" && want == cli.ExitUnreachable {
					continue // it says that among the rest
				}
				var said struct {
					Error struct{ Code, Message, Next string }
				}
				require.NoError(t, json.Unmarshal([]byte(a.err), &said), "%s %s: %s", on, path, a.err)
				require.NotEmpty(t, said.Error.Message)
				require.True(t, said.Error.Next != "" || want == cli.ExitUsage, "durable %s %s says nothing to do: %s", on, path, said.Error.Message)
				_, err := os.Stat(filepath.Join(d.dir, "nosuch.db"))
				require.ErrorIs(t, err, os.ErrNotExist, "%s has made a store of a name", path)
				require.Equal(t, []string{"orders"}, tablesOf(t, filepath.Join(d.dir, "other.db")), "%s has made a store in the database of another program", path)
			}
			// A program that opens no store but its own reaches no other one, however that is named.
			for _, other := range []answer{d.sh("shop durable --store empty.db " + line), d.with("DURABLE_STORE=empty.db").sh("shop durable " + line)} {
				require.Equal(t, cli.ExitUnreachable, other.code, "shop durable %s\n%s%s", line, other.out, other.err)
			}
		})
	}
}

// tablesOf returns the tables of a database.
func tablesOf(t *testing.T, file string) (names []string) {
	db, err := sqlx.Open("sqlite3", file)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.Select(&names, `SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name`))
	return names
}

// needsStore reports whether docs/terminal.md says that a command needs a store.
func needsStore(path string) bool {
	return slices.ContainsFunc([]string{"checkpoints ", "schema ", "doctor", "sessions clean", "archive store", "archive restore"}, func(p string) bool { return strings.HasPrefix(path, p) })
}

// What deletes, migrates or repeats effects asks: without a terminal and without --yes it
// exits with 2, and so it does where a person says no. Nothing is changed.
func TestACommandThatIsNotConfirmedExitsWith2(t *testing.T) {
	t.Parallel()
	prepared := prepare(t)
	asks := 0
	for path, cmd := range leaves(cli.Command(nil), "") {
		yes := cmd.Flags().Lookup("yes")
		if yes == nil || strings.Contains(yes.Usage, "asks nothing") || strings.HasSuffix(path, " migrate") { // there is nothing to migrate
			continue
		}
		asks++
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			require.NoError(t, os.CopyFS(d.dir, os.DirFS(prepared)))
			line := "durable --store shop.db " + strings.ReplaceAll(wellFormed(path), " --yes", "")
			before := d.ok("durable --store shop.db checkpoints list; durable --store shop.db schedules ls").out
			a := d.sh(line)
			require.Equal(t, cli.ExitUsage, a.code, "%s\n%s%s", line, a.out, a.err)
			require.Contains(t, a.err, "--yes")
			require.Equal(t, cmd.Flags().Lookup("dry-run") != nil, strings.Contains(a.err, "--dry-run"), "it advises a flag that it does not have: %s", a.err)
			s := d.terminal(line)
			s.until("[y/N]")
			s.press("n\n")
			require.Equal(t, cli.ExitUsage, s.end(), plain(s.seen))
			require.Equal(t, before, d.ok("durable --store shop.db checkpoints list; durable --store shop.db schedules ls").out)
		})
	}
	require.GreaterOrEqual(t, asks, 5)
}

// Ctrl-C is 130 and SIGTERM 143, for the commands that stay.
func TestAnInterruptedCommandExitsWith130Or143(t *testing.T) {
	t.Parallel()
	prepared := prepare(t)
	for sig, code := range map[syscall.Signal]int{syscall.SIGINT: cli.ExitInterrupted, syscall.SIGTERM: cli.ExitTerminated} {
		for _, line := range []string{
			"shop durable run checkout --id new --input '{}'", "shop durable run checkout --resume held", "shop durable resume held", "shop durable resume-last",
		} {
			t.Run(line+" "+sig.String(), func(t *testing.T) {
				t.Parallel()
				d := newDesk(t)
				require.NoError(t, os.CopyFS(d.dir, os.DirFS(prepared)))
				p := d.start(line)
				p.until("? Ship")
				p.signal(sig)
				require.Equal(t, code, p.wait(), p.text())
			})
		}
		t.Run("watch "+sig.String(), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			require.NoError(t, os.CopyFS(d.dir, os.DirFS(prepared)))
			r := d.start("shop durable run checkout --id new --input '{}'")
			r.until("? Ship")
			p := d.start("durable watch new --store shop.db")
			p.until("? Ship")
			p.signal(sig)
			require.Equal(t, code, p.wait(), p.text())
			r.signal(syscall.SIGINT)
			require.Equal(t, cli.ExitInterrupted, r.wait())
		})
	}
}

// The table in docs/terminal.md, and the one that --help prints, are those of the code.
func TestTheExitCodesAreThoseOfTheManual(t *testing.T) {
	page, err := os.ReadFile("../docs/terminal.md")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(page), "## Exit codes")
	var printed []string
	for _, m := range regexp.MustCompile(`(?m)^\| ([0-9, ]+) \|`).FindAllStringSubmatch(table, -1) {
		printed = append(printed, strings.Split(m[1], ", ")...)
	}
	require.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6", "130", "143"}, printed)
	help := cli.Command(nil).Long
	for _, code := range printed {
		require.Regexp(t, `\b`+code+`\b`, help)
	}
}

func TestANilOptionIsRefused(t *testing.T) {
	var said bytes.Buffer
	root := cli.Command(nil, cli.Program("app"), nil)
	root.SetErr(&said)
	root.SetArgs([]string{"ls"})
	require.Equal(t, cli.ExitUsage, cli.ExitCode(root.Execute()))
	require.Contains(t, said.String(), "cli.Command: option 2 is nil")
}
