package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/cli"
)

// An embedding is a way in which people have the commands.
type embedding struct {
	name  string
	typed string // how a command begins
	env   []string
	// begins matches how a printed command begins.
	begins string
}

func embeddings() []embedding {
	return []embedding{
		{name: "the durable command with --store", typed: "durable --store shop.db ", begins: `durable `},
		{name: "the durable command with DURABLE_STORE", typed: "durable ", env: []string{"DURABLE_STORE=shop.db"}, begins: `durable `},
		{name: "a program", typed: "./shop durable ", begins: `\./shop durable `},
		{name: "a program where DURABLE_STORE names another store", typed: "./shop durable ", env: []string{"DURABLE_STORE=empty.db"}, begins: `\./shop durable `},
	}
}

// place matches a word that stands for what the reader knows.
var place = regexp.MustCompile(`\b(DSN|ID)\b`)

// A printed command is the end of a line or of a cell, or stands before ", all: ". Some
// begin with how the program is reached.
func (e *embedding) commandsIn(text string) (all []string) {
	command := regexp.MustCompile(`(?:^|[\s(])((?:cd \S+ && )?(?:env (?:-u \w+ )+)?(?:` + e.begins + `|(?:\./)?shop durable )[a-z].*)$`)
	for line := range strings.Lines(strings.ReplaceAll(plain(text), ", all: ", "\n")) {
		for cell := range strings.SplitSeq(strings.TrimRight(line, "\n"), "\t") {
			if strings.HasPrefix(cell, "Usage: ") || place.MatchString(cell) {
				continue // those have a place for what the reader knows
			}
			if m := command.FindStringSubmatch(cell); m != nil && !slices.Contains(all, m[1]) {
				all = append(all, m[1])
			}
		}
	}
	return all
}

// in returns a desk of somebody who has the commands in this way, with the prepared runs.
func (e *embedding) in(t *testing.T, dir string) *desk {
	d := newDesk(t, e.env...)
	require.NoError(t, os.CopyFS(d.dir, os.DirFS(dir)))
	if _, err := os.Lstat(filepath.Join(d.dir, "shop")); err != nil {
		require.NoError(t, os.Symlink(filepath.Join(bin, "shop"), filepath.Join(d.dir, "shop")))
	}
	return d
}

// Whatever a command prints as the next one can be pasted into the shell in which it was
// printed, and into one that lacks the variables: it parses, and acts on what the first one
// acted on.
func TestEveryPrintedCommandPastesInEachEmbedding(t *testing.T) {
	t.Parallel()
	prepared := prepare(t)
	for _, e := range embeddings() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			pasted := map[string]bool{}
			paste := func(dir, by, command string) {
				if pasted[command] {
					return
				}
				pasted[command] = true
				for _, shell := range []embedding{e, {}} {
					d := shell.in(t, dir)
					text, code := d.printed(command)
					if code == cli.ExitUsage && strings.Contains(text, "--yes") {
						continue // it asks at a terminal
					}
					require.NotContains(t, []int{cli.ExitUsage, cli.ExitUnreachable, 126, 127}, code, "%s %s\nprinted\n%s\nwhich printed\n%s", strings.Join(e.env, " "), by, command, text)
					require.True(t, strings.Contains(command, "nosuch") || !strings.Contains(text, "Session not found"), "%s\nprinted\n%s\nwhich acts on another store", by, command)
				}
			}
			for path, rows := range outcomes {
				for _, r := range rows {
					if strings.Contains(r.line, "shop durable") || strings.Contains(r.line, "--store") || strings.Contains(r.line, "archive") || path == "watch" || path == "completion" || r.code == cli.ExitUsage || strings.Contains(r.line, "--json") {
						continue
					}
					d := e.in(t, prepared)
					line := e.typed + r.line
					text, _ := d.printed(line)
					for _, command := range e.commandsIn(text) {
						paste(d.dir, line, command)
					}
				}
			}
			for _, line := range []string{"ls", "sessions ls", "queues dead emails", "queues show emails", "schedules show yearly", "stuck", "doctor", "show held", "show asked", "show failed", "show done", "show paused"} {
				d := e.in(t, prepared)
				s := d.terminal(e.typed + line)
				s.end()
				for _, command := range e.commandsIn(s.seen) {
					paste(d.dir, line, command)
				}
			}
			require.Greater(t, len(pasted), 5, pasted)
			t.Logf("%d commands", len(pasted))
		})
	}
}

// The command for the program's own store is the whole one that was typed.
func TestTheCommandForTheOwnStoreKeepsItsFlags(t *testing.T) {
	e := embeddings()[3]
	d := e.in(t, prepare(t))
	a := d.sh("./shop durable resume --all --workflow '\"che\"\"ck,out\"' --workflow checkout --code definition_changed --status failed --dry-run --verbose=false")
	require.Equal(t, cli.ExitUnreachable, a.code)
	own := `env -u DURABLE_STORE ./shop durable resume --all --code=definition_changed --dry-run --status=failed --verbose=false '--workflow="che""ck,out"' --workflow=checkout`
	require.Contains(t, a.err, "To act on this program's own store: "+own+"\n")
	require.Equal(t, "Dry run: nothing changed. 0 runs would be resumed.\n", d.ok(own).out)

	b := d.sh("./shop durable signal asked word --value '{\"a\":1}' --json")
	_, next, _ := strings.Cut(b.err, "own store: ")
	require.Contains(t, next, `signal asked word --json '--value={\"a\":1}'`)
}

// Without a server, too, nothing of what was typed is lost but the server.
func TestTheCommandForAStoreKeepsItsFlags(t *testing.T) {
	a := newDesk(t).sh("durable resume --all --code error --dry-run --server http://127.0.0.1:1")
	require.Equal(t, answer{"", "Server not running\nStart it, or: durable resume --all --code=error --dry-run --store DSN\n", cli.ExitUnreachable}, a)
}

// A command that is mistyped is found although it has flags.
func TestAMistypedCommandWithFlagsIsAnsweredWithTheOneThatMayBeMeant(t *testing.T) {
	a := newDesk(t).sh("shop durable resum order-42 --dry-run")
	require.Equal(t, cli.ExitUsage, a.code)
	require.Contains(t, a.err, "Did you mean: shop durable resume order-42\n")
}

// A program that "go run" has built is gone when it ends: what it prints builds it again.
func TestWhatGoRunPrintsCanBePasted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	require.NoError(t, os.CopyFS(d.dir, os.DirFS(prepare(t))))
	here, err := os.Getwd()
	require.NoError(t, err)
	goEnv, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOPROXY").Output()
	require.NoError(t, err)
	set := strings.Split(string(goEnv), "\n")
	// With the flags of this test, whose packages are built already.
	d.env = append(d.env, "SHOP_DB="+filepath.Join(d.dir, "shop.db"), "GOCACHE="+set[0], "GOMODCACHE="+set[1], "GOPROXY="+set[2], "GOFLAGS=-mod=mod "+os.Getenv("GOFLAGS"), "GOPATH="+os.Getenv("GOPATH"))
	e := embedding{begins: `go run \S+ durable `}
	at := func(line string) answer { return d.sh("cd " + here + " && " + line) }
	for _, line := range []string{"resume done", "resume paused", "show held"} {
		a := at("go run ./internal/shop durable " + line)
		next := e.commandsIn(a.out + a.err)
		require.NotEmpty(t, next, "%s: %s%s", line, a.out, a.err)
		for _, command := range next {
			if strings.Contains(command, " run checkout ") {
				continue // it stays; that it is built is seen of the others
			}
			got := at(command)
			require.NotContains(t, got.err, "exit status 127")
			require.True(t, got.code == 0 || strings.Contains(got.err, "--yes"), "%s: %s", command, got.err)
		}
	}
}
