package cli_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// run --exclusive takes keys that no other run may hold until this one has ended,
// also while it is interrupted; who comes second is told who holds which, and
// starts nothing.
func TestARunHoldsTheKeysItWasStartedWithUntilItEnds(t *testing.T) {
	d := newDesk(t)
	first := d.with("SHOP_HOLD=charge").start("shop durable run checkout --id order-41 --input '{\"id\":\"order-41\"}' --exclusive cart:7 --exclusive 'host:a,b'")
	d.until("charge order-41")
	second := "shop durable run checkout --id order-42 " + order + " --exclusive "
	require.Equal(t, answer{"", "host:a,b is occupied by order-41 (running).\nFollow it: shop durable watch order-41\n", 4}, d.sh(second+"cart:8 --exclusive host:a,b"))
	first.signal(syscall.SIGINT)
	first.wait()

	held := d.sh(second + "cart:7")
	require.Equal(t, 4, held.code)
	require.Equal(t, "order-41 was interrupted. Resume with: shop durable run checkout --resume order-41\n"+
		"cart:7 is occupied by order-41 (interrupted).\nResume it: shop durable resume order-41\n", held.err)
	var said struct {
		Error struct{ Code, Message, Next string }
	}
	lines := strings.Split(strings.TrimSpace(d.sh(second+"cart:7 --json").err), "\n")
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &said), lines)
	require.Equal(t, "occupied", said.Error.Code)
	require.Equal(t, "Resume it: shop durable resume order-41", said.Error.Next)
	require.Equal(t, 3, d.sh("shop durable sessions show order-42").code, "there is no second run")
	require.Contains(t, d.ok("shop durable sessions show order-41").out, "exclusive cart:7, host:a,b")

	d.ok("shop durable cancel order-41")
	require.Contains(t, d.sh("shop durable run checkout --resume order-41").err, "Workflow order-41 cancelled")
	p := d.with("SHOP_HOLD=charge").start(second + "cart:7")
	d.until("charge order-42")
	p.signal(syscall.SIGINT)
	p.wait()
}

func TestKeysThatCannotBeHeldAreRefusedBeforeAnythingIsStarted(t *testing.T) {
	d := newDesk(t)
	require.Equal(t, 2, d.sh("shop durable run checkout --exclusive ''").code)
	require.Equal(t, 2, d.sh("shop durable run checkout --resume order-41 --exclusive cart:7").code)
	require.Equal(t, 2, d.sh("shop durable run checkout --resume-last --exclusive cart:7").code)
	require.Empty(t, d.ok("shop durable sessions ls").out)
}

func TestARunThatIsStartedOverAServerHoldsItsKeys(t *testing.T) {
	d := newDesk(t)
	_, url := served(d)
	at := " --detach --server " + url
	d.ok("durable run checkout --id order-41 " + order + " --exclusive cart:7" + at)
	refused := d.sh("durable run checkout --id order-42 " + order + " --exclusive cart:7" + at)
	require.Equal(t, 4, refused.code)
	require.Contains(t, refused.err, `its exclusive key "cart:7" is held by run order-41`, "in the server's words")
	d.ok("durable run checkout --id order-43 " + order + " --exclusive cart:8" + at)
}
