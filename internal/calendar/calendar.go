// Package calendar computes the times at which a schedule fires. It is pure: a time
// follows from the one before it and from nothing else, so that all processes agree.
//
// Cron expressions are parsed by robfig/cron. The times are computed here, because
// clocks that are set forward and back need rules that can be told to people:
//
//   - A time that does not exist on a day, because the clock is set forward over it,
//     fires at the first moment after the gap. Several such times, and the time of that
//     moment itself, fire once.
//   - A time that comes twice, because the clock is set back, fires the first time.
//   - An expression with every hour of the day in it goes by what the clock shows, and
//     knows neither rule: it fires whenever the clock shows one of its times. So
//     what is hourly stays hourly.
//
// In Europe/Berlin on 29 March 2026 the clock goes from 02:00 to 03:00, and on 25 October
// 2026 from 03:00 back to 02:00:
//
//	             on 29 March                 on 25 October
//	0 30 2 * * *  03:00                      02:30 (the first)
//	0 0 3 * * *   03:00                      03:00
//	0 0 2,3 * * * 03:00 (once)               02:00 (the first), 03:00
//	0 30 * * * *  00:30 01:30 03:30 …        00:30 01:30 02:30 02:30 03:30 …
package calendar

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Calendar is a sequence of times.
type Calendar struct {
	// Of a cron expression. The specification is that of a clock without a zone, which is
	// kept as if it were UTC.
	clock *cron.SpecSchedule
	zone  *time.Location
	// hourly: every hour of the day is in the expression.
	hourly bool

	// Of an interval, in microseconds.
	every, anchor int64
}

// maxExpression limits the length of an expression, in bytes.
const maxExpression = 1000

const allHours = 1<<24 - 1

var parser = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Cron returns the times of a cron expression of five fields (minute, hour, day of the
// month, month, day of the week), six (seconds first), or a descriptor such as @daily,
// in a zone of the IANA database; empty: UTC. The expression may begin with its zone, as
// in "CRON_TZ=Europe/Berlin 0 2 * * *".
func Cron(expression, zone string) (*Calendar, error) {
	refuse := func(reason string) (*Calendar, error) {
		return nil, fmt.Errorf("cron expression %q: %s", cut(expression), reason)
	}
	if len(expression) > maxExpression {
		return refuse(fmt.Sprintf("is %d bytes long; at most %d are allowed", len(expression), maxExpression))
	}
	fields := strings.TrimSpace(expression)
	for _, prefix := range []string{"CRON_TZ=", "TZ="} {
		named, ok := strings.CutPrefix(fields, prefix)
		if !ok {
			continue
		}
		own, rest, _ := strings.Cut(named, " ")
		if zone != "" && zone != own {
			return refuse(fmt.Sprintf("it names the zone %q, and In the zone %q: name one", own, zone))
		}
		zone, fields = own, strings.TrimSpace(rest)
		break
	}
	loc, err := location(zone)
	if err != nil {
		return refuse(err.Error())
	}
	if strings.HasPrefix(fields, "TZ=") || strings.HasPrefix(fields, "CRON_TZ=") { // the parser takes it for a zone, or panics
		return refuse("it names two zones")
	}
	parsed, err := parser.Parse(fields)
	if err != nil {
		return refuse(err.Error() + "; write minute, hour, day, month and weekday (0 to 6, from Sunday), with seconds before them if need be, or one of @hourly, @daily, @weekly, @monthly, @yearly")
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return refuse("an interval is written durable.Every(d)")
	}
	for _, field := range []uint64{spec.Second, spec.Minute, spec.Hour, spec.Dom, spec.Month, spec.Dow} {
		if field == 0 { // the parser takes a field such as ","; Next would look for it for seconds
			return refuse("a field names nothing")
		}
	}
	spec.Location = time.UTC
	c := &Calendar{clock: spec, zone: loc, hourly: spec.Hour&allHours == allHours}
	if c.clock.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return refuse("no day is ever like that")
	}
	return c, nil
}

func location(zone string) (*time.Location, error) {
	if strings.EqualFold(zone, "local") {
		return nil, fmt.Errorf("the zone Local is another one on each machine: name it, such as Europe/Berlin")
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("%w: if this machine has no database of time zones, import time/tzdata into the program", err)
	}
	return loc, nil
}

func cut(s string) string { return s[:min(len(s), 80)] }

// MinEvery is the shortest interval. It is that of cron expressions, and bounds how much
// of the store one schedule can keep busy.
const MinEvery = time.Second

// Every returns the anchor and the times that are a multiple of d after it. They are a
// matter of elapsed time: no zone and no change of a clock moves them.
func Every(d time.Duration, anchor time.Time) (*Calendar, error) {
	if d < MinEvery || d%time.Microsecond != 0 {
		return nil, fmt.Errorf("an interval of %s: it must be whole microseconds, and at least %s", d, MinEvery)
	}
	return &Calendar{every: d.Microseconds(), anchor: anchor.UnixMicro()}, nil
}

// Next returns the first time after t, in UTC; the zero time if there is none within five
// years.
func (c *Calendar) Next(t time.Time) time.Time {
	switch {
	case c.clock == nil:
		return c.nextMultiple(t.UnixMicro())
	case c.hourly:
		return c.nextShown(t)
	}
	return c.nextOnce(t)
}

func (c *Calendar) nextMultiple(t int64) time.Time {
	if t < c.anchor {
		return time.UnixMicro(c.anchor).UTC()
	}
	return time.UnixMicro(c.anchor + ((t-c.anchor)/c.every+1)*c.every).UTC()
}

// nextOnce is Next by the rules for times that do not exist or come twice.
func (c *Calendar) nextOnce(t time.Time) time.Time {
	for shown := shows(t.In(c.zone)); ; {
		if shown = c.clock.Next(shown); shown.IsZero() {
			return time.Time{}
		}
		// It is not after t if t is after a gap, and this in it; or if t is the second
		// time that the clock shows it.
		if at := first(shown, c.zone); at.After(t) {
			return at
		}
	}
}

// nextShown is Next by what the clock shows. Between two changes of the clock it is UTC and
// a constant.
func (c *Calendar) nextShown(t time.Time) time.Time {
	limit := t.AddDate(5, 0, 0)
	for after := t.In(c.zone); ; {
		next := c.clock.Next(shows(after))
		if next.IsZero() {
			return time.Time{}
		}
		at := next.Add(-offset(after))
		_, end := after.ZoneBounds()
		if end.IsZero() || at.Before(end) {
			return at
		}
		if end.After(limit) {
			return time.Time{}
		}
		// From the change on, which may itself be one of the times: what is before it in
		// the new reckoning has not been shown.
		after = end
		if c.matches(shows(after)) {
			return after.UTC()
		}
	}
}

// matches reports whether the expression has this time of a clock.
func (c *Calendar) matches(shown time.Time) bool {
	return shown.Nanosecond() == 0 && c.clock.Next(shown.Add(-time.Nanosecond)).Equal(shown)
}

// shows returns what the clock shows at t, as if it were UTC.
func shows(t time.Time) time.Time { return t.UTC().Add(offset(t)) }

func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// first returns when a clock first shows a time, or, if it is set forward over it, the
// moment when it is.
func first(shown time.Time, zone *time.Location) time.Time {
	near := shown.Add(-offset(shown.In(zone))).In(zone) // at most one change of the clock away
	start, end := near.ZoneBounds()
	var at time.Time
	for _, reckoning := range []time.Time{start.Add(-1), near, end} {
		if reckoning.IsZero() || reckoning.Equal(time.Time{}.Add(-1)) {
			continue
		}
		t := shown.Add(-offset(reckoning.In(zone)))
		if shows(t.In(zone)).Equal(shown) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if !at.IsZero() {
		return at
	}
	for _, change := range []time.Time{start, end} {
		if change.IsZero() {
			continue
		}
		before, after := change.UTC().Add(offset(change.Add(-1).In(zone))), shows(change.In(zone))
		if !shown.Before(before) && shown.Before(after) {
			return change.UTC()
		}
	}
	return near.UTC() // the clock shows it or is set over it, so this is not reached
}
