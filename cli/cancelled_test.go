package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A run that nobody executes is not cancelled by saying so: what is said is what
// the list says, and the command that is printed carries it out.
func TestACancelOfARunThatNobodyExecutesSaysHowItIsCarriedOut(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	said := d.ok("shop durable cancel order-42 --reason enough")
	require.Equal(t, "Workflow order-42 is interrupted (cancelling): no process executes it; it is cancelled once one takes it up\n", said.out)
	next, found := strings.CutPrefix(said.err, "Carry it out with: ")
	require.True(t, found, said.err)
	require.Contains(t, d.ok("shop durable sessions ls").out, "order-42\tcheckout\tinterrupted (cancelling)\t")
	require.Contains(t, d.ok("shop durable sessions ls --json").out, `"cancel_asked":true`)
	require.Contains(t, d.ok("shop durable sessions show order-42").out, "A cancel is recorded")
	dry := d.ok("shop durable resume order-42 --dry-run").out
	require.Contains(t, dry, "Once it has, --force takes the cancel back", "the flag has that name here")
	require.NotContains(t, dry+d.ok("shop durable resume order-42 --dry-run --json").out, "Force")
	machine := d.ok("shop durable cancel order-42 --json")
	require.Contains(t, machine.out, `"done":"cancelling"`)
	require.Contains(t, machine.out, `"next":"Carry it out with: `)

	require.Contains(t, d.sh(next).err, "Workflow order-42 cancelled")
	require.Contains(t, d.ok("shop durable sessions ls").out, "order-42\tcheckout\tcancelled\t")
	require.NotContains(t, d.ok("shop durable sessions ls --json").out, "cancel_asked")
}

func TestACancelOfAPausedRunThatNobodyExecutesSaysHowItIsCarriedOut(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	d.ok("shop durable pause order-42")
	said := d.ok("shop durable cancel order-42")
	require.Contains(t, said.out, "Workflow order-42 is interrupted (cancelling): no process executes it")
	next, found := strings.CutPrefix(said.err, "Carry it out with: ")
	require.True(t, found, said.err)
	require.Contains(t, d.sh(next).err, "Workflow order-42 cancelled")
	require.Contains(t, d.ok("shop durable sessions ls").out, "order-42\tcheckout\tcancelled\t")
}

func TestACancelOfARunThatIsExecutedSaysThatItHasEnded(t *testing.T) {
	d := newDesk(t)
	_, url := served(d, "SHOP_HOLD=reserve")
	d.ok("durable run checkout --id order-42 --detach --server " + url + " " + order)
	require.Equal(t, "Workflow order-42 cancelled\n", d.ok("durable --store shop.db cancel order-42").out)
}
