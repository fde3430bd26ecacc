package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of several that can be resumed, resume without an id takes the one that was
// interrupted last, not the one that was started last; and it says which.
func TestOfSeveralInterruptedRunsTheLastIsResumed(t *testing.T) {
	d := newDesk(t)
	interrupt := func(id, line string) {
		t.Helper()
		s := d.with("SHOP_HOLD=charge").terminal(line)
		s.until("attempt 2 of 5: bank: timeout")
		d.until("charge " + id)
		s.press(ctrlC)
		require.Equal(t, 130, s.end(), plain(s.seen))
	}
	interrupt("first", `shop durable run checkout --id first --input '{"id":"first"}'`)
	interrupt("second", `shop durable run checkout --id second --input '{"id":"second"}'`)
	require.Equal(t, 1, d.with("SHOP_BANK=down").sh(`shop durable run checkout --id refused --input '{"id":"refused"}'`).code)
	chosen := func() string {
		t.Helper()
		return strings.TrimSpace(timeless(d.ok("shop durable resume --dry-run").err))
	}
	require.Equal(t, "Last interrupted session: second (checkout, TIME)", chosen())
	s := d.with("SHOP_HOLD=charge").terminal("shop durable resume first")
	s.until("Executing step 2/4: charge")
	s.press(ctrlC)
	require.Equal(t, 130, s.end(), plain(s.seen))
	require.Equal(t, "Last interrupted session: first (checkout, TIME)", chosen())
	s = d.terminal("shop durable resume")
	s.until("Last interrupted session: first (checkout, ")
	s.until("? Ship first?")
	d.ok("shop durable approve first")
	require.Zero(t, s.end(), plain(s.seen))
	require.Equal(t, "Last interrupted session: second (checkout, TIME)", chosen())
}

// Force overrides what was changed, and says so. It opens no run that has
// completed: its copy can go on.
func TestForceOpensNoRunThatHasCompleted(t *testing.T) {
	d := newDesk(t)
	d.ok("shop durable run count --id counted --input 2")
	before := d.ok("shop durable checkpoints export counted").out
	a := d.sh("shop durable resume counted --force")
	require.Equal(t, answer{"", "Session counted is not resumable (status: completed)\nCopy it: shop durable fork counted --from 3\n", 4}, a)
	require.Equal(t, before, d.ok("shop durable checkpoints export counted").out)
	require.Contains(t, d.ok("shop durable fork counted --from 3 --yes").out, "Forked to count-")
}
