package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWatchFollowsARunOfAnotherProcessAndQLeavesItAlone(t *testing.T) {
	d := newDesk(t)
	p := d.with("SHOP_HOLD=ship=" + filepath.Join(d.dir, "go")).start("shop durable run checkout --id order-42 " + order)
	p.until("? Ship order-42?")
	w := d.terminal("durable --store shop.db watch order-42")
	w.until("order-42  waiting")
	w.until("2 of 4")
	w.until("on ")
	require.Contains(t, plain(w.seen), "✓ charge")
	w.press("q")
	require.Zero(t, w.end())

	second := d.terminal("durable --store shop.db watch order-42")
	second.until("order-42  waiting")
	d.ok("shop durable approve order-42")
	second.until("▸ ship")
	require.NoError(t, os.WriteFile(filepath.Join(d.dir, "go"), nil, 0o600))
	second.until("Workflow order-42 completed")
	require.Zero(t, second.end())
	require.Zero(t, p.wait())
}

func TestCtrlCEndsAWatchAndNotTheRun(t *testing.T) {
	d := newDesk(t)
	p := d.start("shop durable run checkout --id order-42 " + order)
	p.until("? Ship order-42?")
	w := d.terminal("durable --store shop.db watch order-42")
	w.until("order-42  waiting")
	w.press(ctrlC)
	require.Equal(t, 130, w.end())
	d.ok("shop durable approve order-42")
	require.Zero(t, p.wait())
}

func TestWatchOfARunThatNobodyExecutesSaysSoAndEnds(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	a := d.ok("durable --store shop.db watch order-42")
	require.Contains(t, a.out, "✗ attempt 2 of 5: bank: timeout")
	require.Equal(t, "Nobody executes order-42 (interrupted). Resume with: shop durable run checkout --resume order-42\n", a.err)
}

func TestWatchWithJSONIsTheEventsOneALine(t *testing.T) {
	d := newDesk(t)
	d.ok("shop durable run count --id n --input 2")
	lines := strings.Split(strings.TrimSpace(d.ok("shop durable watch n --json").out), "\n")
	require.Len(t, lines, 5)
	for i, line := range lines {
		var ev struct {
			Seq  int
			Type string
		}
		require.NoError(t, json.Unmarshal([]byte(line), &ev))
		require.Equal(t, i+1, ev.Seq)
	}
}
