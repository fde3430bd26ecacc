package calendar_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/internal/calendar"
)

func TestDaylightSavingByTheDocumentedRules(t *testing.T) {
	for _, c := range []struct {
		zone, expression, from string
		want                   []string // what the clock shows, with its offset
	}{
		{"Europe/Berlin", "0 30 2 * * *", "2026-03-28T00:00:00+01:00", []string{"2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}},
		{"Europe/Berlin", "0 0 3 * * *", "2026-03-29T00:00:00+01:00", []string{"2026-03-29T03:00:00+02:00", "2026-03-30T03:00:00+02:00"}},
		{"Europe/Berlin", "0 0,30 2,3 * * *", "2026-03-29T00:00:00+01:00", []string{"2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00", "2026-03-30T02:00:00+02:00"}},
		{"Europe/Berlin", "0 30 * * * *", "2026-03-29T01:00:00+01:00", []string{"2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00", "2026-03-29T04:30:00+02:00"}},
		{"Europe/Berlin", "0 0 * * * *", "2026-03-29T01:00:00+01:00", []string{"2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"}},
		{"Europe/Berlin", "0 30 2 * * *", "2026-10-25T00:00:00+02:00", []string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"}},
		{"Europe/Berlin", "0 0,30 2,3 * * *", "2026-10-25T02:30:00+02:00", []string{"2026-10-25T03:00:00+01:00", "2026-10-25T03:30:00+01:00"}},
		{"Europe/Berlin", "0 30 2 * * *", "2026-10-25T02:10:00+01:00", []string{"2026-10-26T02:30:00+01:00"}},
		{"Europe/Berlin", "0 30 * * * *", "2026-10-25T01:00:00+02:00", []string{"2026-10-25T01:30:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:30:00+01:00"}},
		{"Europe/Berlin", "0 0 * * * *", "2026-10-25T01:00:00+02:00", []string{"2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00"}},
		{"America/New_York", "30 2 * * *", "2026-03-08T00:00:00-05:00", []string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"}},
		{"America/New_York", "30 1 * * *", "2026-11-01T00:00:00-04:00", []string{"2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"}},
		// Half an hour, from 02:00 to 02:30 and from 02:00 back to 01:30.
		{"Australia/Lord_Howe", "15 2 * * *", "2026-10-04T00:00:00+10:30", []string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"}},
		{"Australia/Lord_Howe", "45 1 * * *", "2026-04-05T00:00:00+11:00", []string{"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"}},
		{"Australia/Lord_Howe", "45 * * * *", "2026-04-05T01:00:00+11:00", []string{"2026-04-05T01:45:00+11:00", "2026-04-05T01:45:00+10:30", "2026-04-05T02:45:00+10:30"}},
		// At midnight: the day began at 01:00.
		{"America/Sao_Paulo", "@daily", "2018-11-03T12:00:00-03:00", []string{"2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"}},
		{"America/Sao_Paulo", "30 23 * * *", "2019-02-16T12:00:00-02:00", []string{"2019-02-16T23:30:00-02:00", "2019-02-17T23:30:00-03:00"}},
		// A day that did not exist.
		{"Pacific/Apia", "0 2 * * *", "2011-12-29T00:00:00-10:00", []string{"2011-12-29T02:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T02:00:00+14:00"}},
		{"", "0 0 29 2 *", "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		{"", "0 12 13 * 5", "2026-11-01T00:00:00Z", []string{"2026-11-06T12:00:00Z", "2026-11-13T12:00:00Z"}},
	} {
		cal, err := calendar.Cron(c.expression, c.zone)
		require.NoError(t, err)
		loc, err := time.LoadLocation(c.zone)
		require.NoError(t, err)
		at, err := time.Parse(time.RFC3339, c.from)
		require.NoError(t, err)
		var got []string
		for range c.want {
			at = cal.Next(at)
			got = append(got, at.In(loc).Format(time.RFC3339))
		}
		require.Equal(t, c.want, got, "%s in %s", c.expression, c.zone)
	}
}

var zones = []struct {
	name string
	from time.Time // clocks change within the two years after it
}{
	{"Europe/Berlin", time.Date(2025, 11, 1, 0, 0, 0, 0, time.UTC)},
	{"America/New_York", time.Date(2025, 11, 20, 0, 0, 0, 0, time.UTC)},
	{"Australia/Lord_Howe", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
	{"America/Sao_Paulo", time.Date(2017, 6, 1, 0, 0, 0, 0, time.UTC)},
	{"Asia/Tehran", time.Date(2020, 6, 1, 0, 0, 0, 0, time.UTC)},
	{"Africa/Casablanca", time.Date(2025, 11, 1, 0, 0, 0, 0, time.UTC)},
	{"UTC", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
}

// changes returns when the clocks of a zone change within two years.
func changes(loc *time.Location, from time.Time) []time.Time {
	var list []time.Time
	for _, end := from.In(loc).ZoneBounds(); !end.IsZero() && end.Before(from.AddDate(2, 0, 0)); _, end = end.In(loc).ZoneBounds() {
		list = append(list, end)
	}
	if len(list) == 0 {
		list = append(list, from.AddDate(0, 3, 0))
	}
	return list
}

// field draws a field of an expression, as a set of numbers and as text.
func field(t *rapid.T, name string, from, to int) (map[int]bool, string) {
	set := map[int]bool{}
	if rapid.Bool().Draw(t, name+" is a star") {
		for i := from; i <= to; i++ {
			set[i] = true
		}
		return set, "*"
	}
	text := ""
	for i, n := range rapid.SliceOfNDistinct(rapid.IntRange(from, to), 1, 4, rapid.ID).Draw(t, name) {
		set[n] = true
		if i > 0 {
			text += ","
		}
		text += itoa(n)
	}
	return set, text
}

func itoa(n int) string {
	if n >= 10 {
		return itoa(n/10) + itoa(n%10)
	}
	return string(rune('0' + n))
}

// byHand lists the times of a day's expression by looking at each minute that there is,
// in order, and at what the clock shows.
func byHand(loc *time.Location, from, to time.Time, minutes, hours map[int]bool) []time.Time {
	start := from.Add(-36 * time.Hour)
	has := func(shown time.Time) bool { return minutes[shown.Minute()] && hours[shown.Hour()] }
	show := func(at time.Time) time.Time {
		l := at.In(loc)
		return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
	}
	var list []time.Time
	latest := show(start) // the latest time that the clock has shown
	for at := start.Add(time.Minute); at.Before(to); at = at.Add(time.Minute) {
		shown := show(at)
		fires := false
		if len(hours) == 24 {
			fires = has(shown)
		} else {
			for missed := latest.Add(time.Minute); !missed.After(shown); missed = missed.Add(time.Minute) {
				fires = fires || has(missed) // passed over, or reached
			}
		}
		if shown.After(latest) {
			latest = shown
		}
		if fires && at.After(from) {
			list = append(list, at.UTC())
		}
	}
	return list
}

func TestTimesAreThoseOfAClockThatIsWatched(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		loc, err := time.LoadLocation(zone.name)
		require.NoError(t, err)
		change := rapid.SampledFrom(changes(loc, zone.from)).Draw(t, "change")
		minutes, minute := field(t, "minute", 0, 59)
		hours, hour := field(t, "hour", 0, 23)
		cal, err := calendar.Cron(minute+" "+hour+" * * *", zone.name)
		require.NoError(t, err)
		from := change.Add(-time.Duration(rapid.IntRange(0, 3000).Draw(t, "minutes before")) * time.Minute).UTC()
		to := from.Add(72 * time.Hour)
		want := byHand(loc, from, to, minutes, hours)
		got := cal.First(100_000, from, to.Add(-1))
		require.Equal(t, len(want), len(got), "%s %s in %s", minute, hour, zone.name)
		for i := range want {
			require.True(t, want[i].Equal(got[i]), "%s %s in %s: got %s, want %s", minute, hour, zone.name, got[i].In(loc), want[i].In(loc))
		}
		// From wherever one looks, the next time is the same.
		look := from.Add(time.Duration(rapid.Int64Range(0, int64(70*time.Hour)).Draw(t, "look")))
		after := slices.IndexFunc(want, func(at time.Time) bool { return at.After(look) })
		if after >= 0 {
			require.True(t, want[after].Equal(cal.Next(look)), "after %s", look)
		}
		n := rapid.IntRange(1, 5).Draw(t, "n")
		last := cal.Last(n, from, look)
		seen := cal.First(100_000, from, look)
		require.Equal(t, len(seen), cal.Count(from, look, 100_000))
		require.Truef(t, slices.Equal(seen[max(0, len(seen)-n):], last), "the last %d of %v: %v", n, seen, last)
	})
}

func TestTimesStrictlyIncreaseWhateverTheExpression(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		_, second := field(t, "second", 0, 59)
		_, minute := field(t, "minute", 0, 59)
		_, hour := field(t, "hour", 0, 23)
		_, day := field(t, "day", 1, 28)
		_, month := field(t, "month", 1, 12)
		_, weekday := field(t, "weekday", 0, 6)
		expression := second + " " + minute + " " + hour + " " + day + " " + month + " " + weekday
		cal, err := calendar.Cron(expression, zone.name)
		require.NoError(t, err, expression)
		at := zone.from.Add(time.Duration(rapid.Int64Range(0, int64(700*24*time.Hour)).Draw(t, "from")))
		for range 200 {
			next := cal.Next(at)
			require.True(t, next.After(at), "%s: %s comes after %s", expression, next, at)
			require.True(t, cal.Next(next.Add(-time.Nanosecond)).Equal(next), "%s: %s is found from just before it", expression, next)
			between := at.Add(time.Duration(rapid.Int64Range(0, int64(next.Sub(at))-1).Draw(t, "between")))
			require.True(t, cal.Next(between).Equal(next), "%s: after %s comes %s, not %s", expression, between, next, cal.Next(between))
			at = next
		}
	})
}

func TestIntervalsFollowFromTheirAnchor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		anchor := time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "anchor")).UTC()
		every := time.Duration(rapid.Int64Range(int64(time.Second/time.Microsecond), int64(400*24*time.Hour/time.Microsecond)).Draw(t, "every")) * time.Microsecond
		cal, err := calendar.Every(every, anchor)
		require.NoError(t, err)
		look := time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "look")).UTC()
		next := cal.Next(look)
		require.True(t, next.After(look))
		if look.Before(anchor) {
			require.Equal(t, anchor, next, "the first is the anchor")
		} else {
			require.LessOrEqual(t, next.Sub(look), every)
			require.Zero(t, (next.UnixMicro()-anchor.UnixMicro())%every.Microseconds())
		}
		until := look.Add(every * time.Duration(rapid.IntRange(0, 20).Draw(t, "intervals")))
		require.Equal(t, len(cal.First(100, look, until)), cal.Count(look, until, 100))
	})
}

func TestWhatIsNoCalendarIsRefused(t *testing.T) {
	for expression, says := range map[string]string{
		"":                          "empty",
		"* * * *":                   "expected 5 to 6 fields",
		"0 0 25 * * *":              "above maximum",
		"0 0 30 2 *":                "no day is ever like that",
		", * * * * *":               "a field names nothing",
		"@every 5m":                 "durable.Every",
		"TZ=Europe/Berlin":          "empty",
		"CRON_TZ=Nowhere * * * * *": "unknown time zone Nowhere",
		"TZ=Local 0 2 * * *":        "another one on each machine",
		"TZ=UTC 0 2 * * *":          "name one",
		"TZ=UTC TZ=UTC":             "two zones",
		"TZ=UTC CRON_TZ=UTC @daily": "two zones",
	} {
		zone := ""
		if says == "name one" {
			zone = "Europe/Berlin"
		}
		_, err := calendar.Cron(expression, zone)
		require.ErrorContains(t, err, says, expression)
	}
	_, err := calendar.Every(time.Millisecond, time.Time{})
	require.ErrorContains(t, err, "at least 1s")
	named, err := calendar.Cron("CRON_TZ=Europe/Berlin 0 2 * * *", "Europe/Berlin")
	require.NoError(t, err)
	require.Equal(t, "2026-07-01T00:00:00Z", named.Next(time.Date(2026, 6, 30, 12, 0, 0, 0, time.UTC)).Format(time.RFC3339))
}

func FuzzNoExpressionBreaksTheParser(f *testing.F) {
	for _, s := range []string{"0 2 * * *", "@daily", "TZ=", "CRON_TZ=a", "*/5 1-3,7 * JAN-MAR MON#2", "TZ=UTC @yearly", "@every 1s", "99999999999999999999 * * * *"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		if c, err := calendar.Cron(expression, ""); err == nil {
			at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			require.True(t, c.Next(at).After(at))
		}
	})
}

func TestTheLastTimesAreFoundWithoutVisitingAll(t *testing.T) {
	cal, err := calendar.Cron("* * * * * *", "Europe/Berlin")
	require.NoError(t, err)
	until := time.Date(2026, 11, 23, 2, 0, 0, 500, time.UTC)
	last := cal.Last(2, until.AddDate(-20, 0, 0), until)
	require.Equal(t, []time.Time{until.Add(-500 - time.Second), until.Add(-500)}, last)
	yearly, err := calendar.Cron("@yearly", "")
	require.NoError(t, err)
	require.Len(t, yearly.Last(3, until.AddDate(-20, 0, 0), until), 3)
	require.Len(t, yearly.Last(3, until.AddDate(-2, 0, 0), until), 2)
}

func TestJitterFollowsFromNameAndTime(t *testing.T) {
	at := time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)
	c, err := calendar.Cron("0 * * * *", "")
	require.NoError(t, err)
	require.Equal(t, c.Jitter("a", at, time.Minute), c.Jitter("a", at.In(time.FixedZone("", 3600)), time.Minute))
	require.NotEqual(t, c.Jitter("a", at, time.Minute), c.Jitter("b", at, time.Minute))
	require.NotEqual(t, c.Jitter("a", at, time.Minute), c.Jitter("a", at.Add(time.Hour), time.Minute))
	require.Zero(t, c.Jitter("a", at, 0))
	halves := [2]int{}
	for i := range 1000 {
		j := c.Jitter("a", at.Add(time.Duration(i)*time.Hour), time.Minute)
		require.True(t, 0 <= j && j < time.Minute)
		halves[j/(30*time.Second)]++
	}
	require.Greater(t, min(halves[0], halves[1]), 400)
	minutes, err := calendar.Cron("* * * * *", "")
	require.NoError(t, err)
	for i := range 1000 {
		require.Less(t, minutes.Jitter("a", at.Add(time.Duration(i)*time.Minute), time.Hour), time.Minute, "it overtakes no other time")
	}
}
