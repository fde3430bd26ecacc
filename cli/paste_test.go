package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ids with all that a shell and a terminal would act on.
var odd = []string{"plain-1", "two words", "it's", `"quoted" $HOME`, "a;rm -rf b", "$(touch pwned)", "`touch pwned`", "-dash", "a&&b|c>d", "*", "é-日本", "rtl\u202eevil", "back\\slash", "~", "#x", "!!"}

func TestEveryPrintedCommandWorksWhenPasted(t *testing.T) {
	d := newDesk(t)
	resume := regexp.MustCompile(`(?m)^Resume with: (.*)$`)
	for i, id := range odd {
		q := "'" + strings.ReplaceAll(id, "'", `'\''`) + "'"
		a := d.with("SHOP_FAIL=add").sh("shop durable run count --input 3 --id=" + q)
		require.Equal(t, 1, a.code, "%q: %s", id, a.err)
		next := a.err[strings.LastIndex(a.err, ": ")+2:]
		shown := d.sh(next)
		require.Zero(t, shown.code, "%q printed %s\n%s", id, next, shown.err)
		require.NotContains(t, a.err+shown.out, "\u202e")

		p := d.with("SHOP_HOLD=add").start("shop durable run count --input 1 --id=" + "'held '" + q)
		p.until("Starting session")
		d.until("add 0")
		require.NoError(t, os.Remove(filepath.Join(d.dir, "journal")))
		p.signal(2)
		require.Equal(t, 130, p.wait(), p.text())
		printed := resume.FindStringSubmatch(strings.ReplaceAll(p.text(), "Session interrupted. ", ""))
		require.NotNil(t, printed, p.text())
		done := d.ok(printed[1])
		require.Contains(t, done.out, "completed: 0", "%d %q", i, id)
		_ = os.Remove(filepath.Join(d.dir, "journal"))
	}
	_, err := os.Stat(filepath.Join(d.dir, "pwned"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestTheTargetIsRepeatedInPrintedCommandsAndNoSecretIs(t *testing.T) {
	d := newDesk(t)
	require.NoError(t, os.Mkdir(filepath.Join(d.dir, "my data"), 0o700))
	d = d.with("SHOP_DB=my data/shop.db")
	d.ok("shop durable run count --id n --input 1")
	a := d.sh(`durable --store 'my data/shop.db' resume n`)
	require.Equal(t, "Session n is not resumable (status: completed)\nCopy it: durable fork n --from 3 --store 'my data/shop.db'\n", a.err)
	next := strings.TrimSpace(strings.TrimPrefix(strings.Split(a.err, "\n")[1], "Copy it: "))
	require.Contains(t, d.ok(next+" --dry-run").out, "Kept: add.")

	for _, dsn := range []string{
		"postgres://ada:s3cret@localhost/db", "host=x password=s3cret dbname=y", "postgres://ada@h/db?sslpassword=s3cret",
		"postgres://ada:s3cret/x@localhost/db", "postgres://ada:12/s3cret@localhost/db", "postgres://ada:12?s3cret@localhost/db", "postgres://ada:x@s3cret/@localhost/db",
	} {
		a := d.sh("durable sessions ls --store '" + dsn + "'")
		require.Equal(t, 2, a.code)
		require.NotContains(t, a.out+a.err, "s3cret")
		b := d.with("DURABLE_STORE=" + strings.Replace(dsn, "localhost", "127.0.0.1:1", 1)).sh("durable sessions ls")
		require.Equal(t, 5, b.code, b.err)
		require.NotContains(t, b.out+b.err, "s3cret")
	}
}

func TestARelativeProgramIsPrintedWithItsDirectoryElsewhere(t *testing.T) {
	d := newDesk(t)
	require.NoError(t, os.Symlink(filepath.Join(bin, "shop"), filepath.Join(d.dir, "shop")))
	p := d.with("SHOP_HOLD=add").start("./shop durable run count --id n --input 1")
	d.until("add 0")
	p.signal(2)
	p.wait()
	require.Contains(t, p.text(), "Resume with: ./shop durable run count --resume n")
	a := d.sh("cd / && durable --store " + d.dir + "/shop.db sessions show n")
	require.Contains(t, a.out, "Resume with: cd "+d.dir+" && ./shop durable run count --resume n\n")
	require.Contains(t, d.ok("cd / && cd "+d.dir+" && ./shop durable run count --resume n").out, "completed: 0")
}

// What a run's starter chooses must not become a command that somebody else pastes.
func TestAForgedCommandOfARunIsNotPrinted(t *testing.T) {
	for _, header := range []string{"shop;touch pwned durable", "sudo durable", "shop --exec=touch"} {
		d := newDesk(t)
		d.with("SHOP_HEADER=" + header).sh("shop forge")
		a := d.ok("durable --store shop.db sessions show forged")
		for _, word := range []string{"pwned", "touch", "sudo"} {
			require.NotContains(t, a.out, word)
		}
		require.NotContains(t, d.sh("durable --store shop.db resume forged").err, "Run: s", header)
	}
}

func TestTextOfOthersCannotActOnTheTerminal(t *testing.T) {
	d := newDesk(t)
	p := d.with("SHOP_HOLD=approve").terminal("shop durable run hostile --id h --input '{}'")
	require.Equal(t, 1, p.end())
	show := d.terminal("shop durable sessions show h")
	show.end()
	ls := d.terminal("shop durable sessions ls --no-color")
	ls.end()
	piped := d.ok("shop durable sessions show h")
	watch := d.ok("shop durable watch h")
	for _, text := range []string{p.seen, show.seen, ls.seen, piped.out, watch.out, d.ok("shop durable checkpoints list h").out, d.ok("shop durable checkpoints show h 3").out, d.sh("shop durable resume h").err} {
		rest := escapes.ReplaceAllString(text, "")
		require.NotContains(t, text, "\x1b[2J")
		require.NotContains(t, text, "\x07")
		require.NotContains(t, text, "\u202e")
		require.NotContains(t, rest, "\nWorkflow order-42 completed", "an error must not forge a line")
	}
	require.Contains(t, show.seen, `\x1b[2J\x1b]0;owned\x07gone`)
}

func TestColourIsLeftOutWhereItIsNotWanted(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	coloured := d.terminal("shop durable sessions ls")
	coloured.end()
	require.Contains(t, coloured.seen, "\x1b[")
	for _, s := range []*screen{d.with("NO_COLOR=1").terminal("shop durable sessions ls"), d.terminal("shop durable sessions ls --no-color"), d.with("TERM=dumb").terminal("shop durable sessions ls")} {
		s.end()
		require.NotContains(t, s.seen, "\x1b[")
		require.Contains(t, s.seen, "▸ order-42", "what colour says is said by a sign, too")
	}
	require.NotContains(t, d.ok("shop durable sessions ls").out, "\x1b")
}
