package cli_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A run that waits and that no live program serves goes nowhere from the first moment on.
func TestAWaitingRunThatNobodyServesIsListedAtOnceWithHowLongItHasNotMoved(t *testing.T) {
	d := newDesk(t)
	p := d.start("shop durable run checkout --id order-42 " + order)
	p.until("? Ship")
	live := d.sh("durable --store shop.db stuck")
	require.Equal(t, answer{"", "Nothing is stuck.\n", 0}, live, "its process has it")
	p.signal(syscall.SIGINT)
	require.Equal(t, 130, p.wait(), p.text())

	a := d.sh("durable --store shop.db stuck")
	require.Equal(t, 6, a.code, "%s%s", a.out, a.err)
	require.Regexp(t, `(?m)^order-42\tnobody alive runs checkout\tshop durable run checkout --resume order-42$`, a.out)
	require.Regexp(t, `"since":"20\d\d-`, d.sh("durable --store shop.db stuck --json").out)
	s := d.terminal("durable --store shop.db stuck")
	require.Equal(t, 6, s.end())
	require.Regexp(t, `ID +FOR +REASON +NEXT`, plain(s.seen))
	require.Regexp(t, `order-42 +\d+ s +nobody alive runs checkout`, plain(s.seen))
}
