package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/cli"
)

// What people type first is a command, or is answered with one.
func TestACommandThatDoesNotExistIsAnsweredWithTheOneThatMayBeMeant(t *testing.T) {
	d := newDesk(t)
	for typed, meant := range map[string]string{
		"status":          "shop durable ls",
		"status order-42": "shop durable show order-42",
		"logs order-42":   "shop durable watch order-42",
		"resum order-42":  "shop durable resume order-42",
		"sesions ls":      "shop durable sessions ls",
		"sessions lst":    "shop durable sessions ls",

		"ps":                      "shop durable ls",
		"rm order-42":             "shop durable checkpoints delete order-42", // and not run
		"stop order-42":           "shop durable cancel order-42",             // and not show
		"kill":                    "shop durable cancel ID",
		"retry order-42":          "shop durable resume order-42",
		"start checkout":          "shop durable run checkout",
		"export order-42":         "shop durable checkpoints export order-42",
		"dead emails":             "shop durable queues dead emails",
		"trigger nightly":         "shop durable schedules trigger nightly",
		"schedules delete night":  "shop durable schedules rm night",
		"schedules run night":     "shop durable schedules trigger night",
		"help fork":               "shop durable fork --help",
		"queues help retry":       "shop durable queues retry --help",
		"delete order-42":         "shop durable checkpoints delete order-42",
		"signl order-42 approval": "shop durable signal order-42 approval",
	} {
		got := d.sh("shop durable " + typed)
		require.Equal(t, cli.ExitUsage, got.code, typed)
		require.Contains(t, got.err, "Did you mean: "+meant+"\n", typed)
	}
	require.Equal(t, d.ok("shop durable sessions ls").out, d.ok("shop durable list").out)
	require.Equal(t, d.ok("shop durable sessions ls").out, d.ok("shop durable ls").out)
}
