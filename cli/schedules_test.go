package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSchedulesAreListedPausedTriggeredFilledAndRemoved(t *testing.T) {
	d := newDesk(t, "SHOP_SCHEDULE=1")
	_, url := served(d)
	profileOf(d, "profiles:\n  prod: {server: \""+url+"\"}\n")
	d.ok("durable --store shop.db schedules ls") // the server has declared it
	for _, where := range []string{"--store shop.db", "--profile prod"} {
		ls := d.ok("durable schedules ls " + where).out
		require.True(t, strings.HasPrefix(ls, "yearly\tcount\t"), ls)
		require.Equal(t, 5, strings.Count(ls, "-01-01T02:00:00Z"), "the next five times: %s", ls)
		require.Equal(t, "Schedule yearly paused\n", d.ok("durable schedules pause yearly --reason stocktaking "+where).out)
		require.Contains(t, d.ok("durable schedules show yearly "+where).out, "paused: stocktaking\n")
		require.Contains(t, d.ok("durable schedules ls "+where).out, "\tpaused: stocktaking\n")
		require.Equal(t, "Schedule yearly resumed\n", d.ok("durable schedules resume yearly "+where).out)
		require.Equal(t, 3, d.sh("durable schedules show nosuch "+where).code)
		require.Equal(t, 2, d.sh("durable schedules backfill yearly --from soon --to later "+where).code)
	}
	span := "durable schedules backfill yearly --from 2021-06-01T00:00:00Z --to 2023-06-01T00:00:00Z "
	require.Equal(t, "yearly@2022-01-01T02:00:00Z to yearly@2023-01-01T02:00:00Z\nDry run: nothing changed. 2 runs would be started.\n", d.ok(span+"--dry-run --profile prod").out)
	require.Equal(t, "Started 2 runs of yearly\n", d.ok(span+"--profile prod").out)
	require.Equal(t, "Started 0 runs of yearly, 2 there already\n", d.ok(span+"--store shop.db").out)
	once := d.ok("durable schedules trigger yearly --key once --store shop.db").out
	require.Equal(t, once, d.ok("durable schedules trigger yearly --key once --profile prod").out, "the same key is the same run")
	var s struct{ Next, Last []any }
	require.NoError(t, json.Unmarshal([]byte(d.ok("durable schedules show yearly --json --profile prod").out), &s))
	require.Len(t, s.Next, 5)
	require.NotEmpty(t, s.Last)

	require.Equal(t, 2, d.sh("durable schedules rm yearly --profile prod").code, "it was not confirmed")
	require.Contains(t, d.ok("durable schedules rm yearly --dry-run --profile prod").out, "Dry run: nothing changed.")
	require.Equal(t, "Schedule yearly removed\n", d.ok("durable schedules rm yearly --yes --profile prod").out)
	require.Equal(t, answer{"", "No schedules.\n", 0}, d.sh("durable schedules ls --store shop.db"))
}
