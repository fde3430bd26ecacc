package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// After an outage every run that failed in it is resumed by one command: on a store, in the
// program itself, and through a server.
func TestAllRunsThatAFilterSelectsAreResumedByOneCommand(t *testing.T) {
	for name, on := range map[string]string{"store": "durable --store shop.db", "program": "shop durable"} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			for _, id := range []string{"order-1", "order-2"} {
				require.Equal(t, 1, d.with("SHOP_BANK=down").sh("shop durable run checkout --id "+id+` --input '{"id":"`+id+`"}'`).code)
			}
			d.ok("shop durable run count --id counted --input 1")
			dry := d.ok(on + " resume --all --workflow checkout --code error --dry-run")
			require.ElementsMatch(t, []string{"order-1", "order-2", "Dry run: nothing changed. 2 runs would be resumed."}, strings.Split(strings.TrimSpace(dry.out), "\n"))
			require.Contains(t, d.ok(on+" runs show order-1").out, "failed", "a dry run changes nothing")
			require.Equal(t, "0 runs resumed.\n", d.ok(on+" resume --all --workflow count").out, "what has completed is not selected")
			require.Equal(t, "0 runs resumed.\n", d.ok(on+" resume --all --code definition_changed").out)

			interrupted(d)
			d.ok(on + " pause order-42")
			all := d.ok(on + " resume --all --workflow checkout")
			require.ElementsMatch(t, []string{"order-1", "order-2", "2 runs resumed."}, strings.Split(strings.TrimSpace(all.out), "\n"))
			require.Regexp(t, `(?m)^1 run is paused and stays so. Let it go on: (shop )?durable unpause order-42`, all.err)
			require.Equal(t, 6, d.sh(on+" stuck").code, "at once: nobody alive has the code")
			require.Regexp(t, `(?m)^order-1\tnobody alive runs checkout\t`, d.sh(on+" stuck").out)
			require.Contains(t, all.err, "\nNo live program takes runs of checkout: they go on when one starts and calls durable.Recover.\n")
			served(d)
			for _, id := range []string{"order-1", "order-2"} {
				require.Eventually(t, func() bool { return strings.Contains(d.ok("durable runs show "+id+" --store shop.db").out, "waiting") }, 30*time.Second, 50*time.Millisecond)
			}
			again := d.ok(on + " resume --all")
			require.Equal(t, "0 runs resumed.\n", again.out)
			require.Contains(t, again.err, " unpause order-42")
		})
	}
}

func TestAllRunsAreResumedThroughAServerAndEachRefusalIsSaid(t *testing.T) {
	d := newDesk(t)
	_, url := served(d.with("SHOP_BANK=down"))
	profileOf(d, "profiles:\n  prod: {server: \""+url+"\"}\n")
	for _, id := range []string{"order-1", "order-2"} {
		require.Equal(t, 1, d.sh("durable run checkout --id "+id+" --profile prod --input '{\"id\":\""+id+"\"}'").code)
	}
	dry := d.ok("durable resume --all --workflow checkout --status failed --dry-run --profile prod --json")
	require.Equal(t, 2, strings.Count(dry.out, `"done":true,"dry_run":true`), dry.out)
	require.ElementsMatch(t, []string{"order-1", "order-2", "2 runs resumed."}, strings.Split(strings.TrimSpace(d.ok("durable resume --all --workflow checkout --profile prod").out), "\n"))

	for _, wrong := range []string{"order-1 --all", "--workflow checkout", "--all --from-checkpoint 2", "--all --status waiting", "--all --force"} {
		a := d.sh("durable resume " + wrong + " --profile prod")
		require.Equal(t, 2, a.code, "%s: %s", wrong, a.err)
	}
}
