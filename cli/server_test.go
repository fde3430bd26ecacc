package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// served starts a program in production and returns its address.
func served(d *desk, env ...string) (p *process, url string) {
	d.t.Helper()
	p = d.with(env...).start("shop serve")
	p.until("serving http://")
	return p, regexp.MustCompile(`http://\S+`).FindString(p.text())
}

func profileOf(d *desk, text string) {
	d.t.Helper()
	require.NoError(d.t, os.WriteFile(filepath.Join(d.dir, "durable.yaml"), []byte(text), 0o600))
}

func TestARunningProgramIsOperatedThroughAProfile(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	_, url := served(d.with("SHOP_DB=prod.db"))
	profileOf(d, "profiles:\n  prod:\n    server: "+url+"\n")

	started := d.terminal("durable run checkout --id order-7 --input '{\"id\":\"order-7\"}' --profile prod")
	started.until("? Ship order-7?  Answer: durable approve order-7 --profile prod")
	require.Zero(t, started.end(), "a server executes it: run stays to a wait, and no longer")
	require.Contains(t, plain(started.seen), "order-7 waits for a person. Answer it: durable approve order-7 --profile prod\n")

	ls := d.ok("durable sessions ls --profile prod")
	require.Regexp(t, `(?m)^order-7\tcheckout\twaiting\t`, ls.out)
	show := d.ok("durable runs show order-7 --profile prod")
	for _, part := range []string{"order-7  checkout v1  waiting", "bank: 503", "asks: Ship order-7?", "Answer it: durable approve order-7 --profile prod"} {
		require.Contains(t, show.out, part)
	}
	require.Equal(t, "Approved order-7: Ship order-7?\n", d.ok("durable approve order-7 --profile prod").out)
	watch := d.ok("durable watch order-7 --profile prod")
	require.Contains(t, watch.out+watch.err, "Workflow order-7 completed")
	done := d.sh("durable resume order-7 --profile prod")
	require.Equal(t, 4, done.code)
	require.True(t, strings.HasPrefix(done.err, "Session order-7 is not resumable (status: completed)\n"), done.err)
}

// The four outcomes of R000, alike for resume and cancel.
func TestTheFourOutcomesOfACommandToAServer(t *testing.T) {
	d := newDesk(t)
	p, url := served(d.with("SHOP_BANK=down"))
	profileOf(d, "profiles:\n  prod: {server: \""+url+"\"}\n")
	for _, act := range []struct{ name, done, refused string }{
		{"resume", "Workflow order-42 resumed\n", "is not resumable (status: completed)"},
		{"cancel", "Workflow order-42 cancelled\n", ""},
	} {
		a := d.sh("durable " + act.name + " order-99 --profile prod")
		require.Equal(t, answer{"", "Workflow not found\nList: durable sessions ls --profile prod\n", 3}, a)
	}
	d.ok("durable run count --id n --input 1 --server " + url)
	a := d.sh("durable resume n --profile prod")
	require.Equal(t, 4, a.code)
	require.Contains(t, a.err, "Session n is not resumable (status: completed)\n")
	a = d.sh("durable cancel n --profile prod")
	require.Equal(t, 4, a.code)
	require.NotEmpty(t, a.err)

	require.Equal(t, answer{"", "No archived sessions.\n", 0}, d.sh("durable history --profile prod"))
	failed := d.sh("durable run checkout --id order-42 --profile prod " + order)
	require.Equal(t, 1, failed.code, failed.err)
	require.Contains(t, failed.err, "bank: closed")
	again := d.sh("durable resume order-42 --profile prod")
	require.Equal(t, "Workflow order-42 resumed\n", again.out)
	require.Equal(t, 1, again.code, "it fails again: %s", again.err)

	d.ok("durable signal order-x none --profile prod || true")
	held := d.with("SHOP_DB=other.db")
	_, other := served(held, "SHOP_HOLD=reserve")
	d.ok("durable run checkout --id order-42 --detach --server " + other + " " + order)
	require.Equal(t, "Workflow order-42 cancelled\n", d.ok("durable cancel order-42 --server "+other).out)

	p.signal(9)
	p.wait()
	for _, name := range []string{"resume", "cancel"} {
		a := d.sh("durable " + name + " order-42 --profile prod")
		require.Equal(t, answer{"", "Server not running\nStart it, or: durable " + name + " order-42 --store DSN\n", 5}, a)
	}
}

func TestWhatACommandActsOn(t *testing.T) {
	d := newDesk(t)
	d.ok("shop durable run count --id here --input 1")
	d.with("SHOP_DB=other.db").ok("shop durable run count --id there --input 1")
	has := func(want string, a answer) {
		t.Helper()
		require.Contains(t, a.out, want+"\t", a.err)
	}
	has("here", d.ok("shop durable sessions ls"))
	has("there", d.with("DURABLE_STORE=other.db").ok("durable sessions ls"))
	has("here", d.with("DURABLE_STORE=other.db").ok("durable sessions ls --store shop.db"))
	has("here", d.ok("durable sessions ls --store sqlite:shop.db"))

	none := d.sh("durable sessions ls")
	require.Equal(t, 2, none.code)
	require.Contains(t, none.err, "No store or server is named.\nName one: --store DSN")
	two := d.sh("durable sessions ls --store shop.db --server http://x")
	require.Equal(t, 2, two.code)
	missing := d.sh("durable sessions ls --store nowhere.db")
	require.Equal(t, 5, missing.code)
	_, err := os.Stat(filepath.Join(d.dir, "nowhere.db"))
	require.ErrorIs(t, err, os.ErrNotExist, "a look creates nothing")

	profileOf(d, "profiles:\n  default: {store: other.db}\n  env: {store: \"${DURABLE_WHERE}\"}\n  both: {store: a, server: b}\n")
	has("there", d.ok("durable sessions ls"))
	has("here", d.with("DURABLE_PROFILE=env", "DURABLE_WHERE=shop.db").ok("durable sessions ls"))
	require.Equal(t, 2, d.sh("durable sessions ls --profile both").code)
	unknown := d.sh("durable sessions ls --profile nope")
	require.Equal(t, 2, unknown.code)
	require.Contains(t, unknown.err, "both, default, env")

	require.NoError(t, os.MkdirAll(filepath.Join(d.dir, "config", "durable"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(d.dir, "config", "durable", "durable.yaml"), []byte("profiles: {mine: {store: shop.db}, default: {store: shop.db}}"), 0o600))
	has("here", d.ok("durable sessions ls --profile mine"))
	has("there", d.ok("durable sessions ls")) // ./durable.yaml comes first
	profileOf(d, "profile:\n  x: {}\n")
	bad := d.sh("durable sessions ls")
	require.Equal(t, 2, bad.code)
	require.Contains(t, bad.err, "durable.yaml")
}
