package read

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// Bounds of a page of runs, and of how many rows are read to fill one.
const (
	pageSize    = 50
	maxPageSize = 1000
	MaxScanned  = 5000
)

// A Listing is what a request for runs asks for: a filter that the store answers by index,
// and what is searched for in the rows that the store returns.
type Listing struct {
	Filter store.Filter
	id     string // part of the id
	Key    string // of the event recorded last: where the run is
	text   string // part of the reason
	counts bool
	// countedFrom is the moment from which a time such as "24h" was counted back; zero:
	// there is no such time.
	countedFrom time.Time
}

// Scans reports whether rows are dropped after the store has selected them.
func (l *Listing) Scans() bool { return l.id != "" || l.Key != "" || l.text != "" }

// Match reports whether a row that the store has selected was requested. A reason is
// searched as it is shown: a search in the unredacted text would give it away, letter by
// letter.
func (l *Listing) Match(r *store.Run, shown func(string) string) bool {
	return (l.id == "" || strings.Contains(strings.ToLower(r.ID), l.id)) &&
		(l.Key == "" || r.Last != nil && (r.Last.Key == l.Key || store.InScope(r.Last.Key, l.Key))) &&
		(l.text == "" || strings.Contains(strings.ToLower(shown(r.Reason)), l.text))
}

// Searchable refuses to search for an attribute's value that is not shown as it is:
// finding a run would confirm the value.
func (l *Listing) Searchable(shown func(string) string) error {
	for name, value := range l.Filter.Attributes {
		if shown(value) != value {
			return web.BadRequest("the value of attribute %s is one that this server does not show, so no run can be found by it", name)
		}
	}
	return nil
}

// ParseListing reads the query of a request for runs; "since=24h" counts back from now. An
// unknown parameter is an error, since its filter would be missing.
func ParseListing(q url.Values, now time.Time) (*Listing, error) {
	l := &Listing{Filter: store.Filter{Limit: pageSize, WithLast: true}}
	now = now.Truncate(time.Microsecond) // the precision of a cursor
	if cursors := q["cursor"]; len(cursors) > 0 {
		l.Filter.After, now = SplitCursor(cursors[len(cursors)-1], now)
	}
	for name, values := range q {
		if err := bounded(name, values); err != nil {
			return nil, err
		}
		if err := l.parse(name, values, now); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Bounds of a parameter of a filter: a store's statement takes a limited number of values,
// and no id, name or key is longer.
const (
	maxValues = 100
	maxValue  = store.MaxKey
)

func bounded(name string, values []string) error {
	n := 0
	for _, v := range values {
		if len(v) > 2*maxValue*maxValues { // every byte may be escaped
			return web.BadRequest("%s has a value of %d bytes: at most %d can be used", view.Clip(name), len(v), maxValue)
		}
		for _, part := range Names(v) {
			if n++; len(part) > maxValue {
				return web.BadRequest("%s has a value of %d bytes: at most %d can be used", view.Clip(name), len(part), maxValue)
			}
		}
	}
	if len(values) > maxValues || n > maxValues && Splits[name] {
		return web.BadRequest("%s has %d values: at most %d can be used", view.Clip(name), max(n, len(values)), maxValues)
	}
	return nil
}

// Splits are the parameters whose values may be separated by commas.
var Splits = map[string]bool{"workflow": true, "version": true, "status": true, "code": true, "queue": true, "owner": true}

func (l *Listing) parse(name string, values []string, now time.Time) (err error) {
	f, last := &l.Filter, values[len(values)-1]
	switch name {
	case "workflow":
		f.Workflows = splitList(values)
	case "version":
		f.Versions = splitList(values)
	case "status":
		for _, s := range splitList(values) {
			if !store.Status(s).Valid() {
				return web.BadRequest("status=%q is none of %v", s, store.Statuses())
			}
			f.Statuses = append(f.Statuses, store.Status(s))
		}
	case "code":
		f.Codes = splitList(values)
	case "queue":
		f.Queues = splitList(values)
	case "owner":
		f.Owners = splitList(values)
	case "id":
		f.IDs = values
	case "parent":
		f.Parents = values // neither splits: an id may have a comma
	case "prefix":
		f.IDPrefix = last
	case "q":
		l.id = strings.ToLower(last)
	case "key":
		l.Key = last
	case "error":
		l.text = strings.ToLower(last)
	case "attribute":
		return l.parseAttributes(values)
	case "since":
		f.CreatedFrom, err = l.moment(name, last, now)
	case "until":
		f.CreatedTo, err = l.moment(name, last, now)
	case "order":
		if last != "oldest" && last != "newest" {
			return web.BadRequest("order=%q is neither newest nor oldest", last)
		}
		f.OldestFirst = last == "oldest"
	case "limit":
		n, err := strconv.Atoi(last)
		if err != nil || n < 1 || n > maxPageSize {
			return web.BadRequest("limit=%q is no number from 1 to %d", last, maxPageSize)
		}
		f.Limit = n
	case "cursor": // was read before all others, which may count from its moment
	case "counts":
		l.counts = last != "0" && last != "false"
	default:
		return web.BadRequest("%q is no filter: there are id, workflow, version, status, code, queue, owner, parent, prefix, q, key, error, attribute, since, until, order, limit, cursor, counts", name)
	}
	return err
}

// parseAttributes reads attribute=name=value.
func (l *Listing) parseAttributes(values []string) error {
	l.Filter.Attributes = map[string]string{}
	if len(values) > durable.MaxAttributes {
		return web.BadRequest("attribute is given %d times: no run has more than %d", len(values), durable.MaxAttributes)
	}
	for _, v := range values {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return web.BadRequest("attribute=%q is not of the form name=value", v)
		}
		l.Filter.Attributes[name] = value
	}
	return nil
}

// splitList reads values that may be repeated or separated by commas.
func splitList(values []string) []string {
	var all []string
	for _, v := range values {
		for _, part := range Names(v) {
			if part != "" && !slices.Contains(all, part) {
				all = append(all, part)
			}
		}
	}
	return all
}

// moment reads a moment, and remembers what it was counted back from.
func (l *Listing) moment(name, s string, now time.Time) (store.Time, error) {
	if _, fixed := fixedMoment(s); !fixed {
		l.countedFrom = now
	}
	return parseMoment(name, s, now)
}

// fixedMoment reads a moment that does not depend on now: RFC 3339 or a day.
func fixedMoment(s string) (store.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return store.TimeOf(t), true
		}
	}
	return 0, false
}

// parseMoment reads a moment: RFC 3339, a day, or how long ago ("90m", "7d").
func parseMoment(name, s string, now time.Time) (store.Time, error) {
	if t, ok := fixedMoment(s); ok {
		return t, nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return store.TimeOf(now.Add(-time.Duration(n) * 24 * time.Hour)), nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return store.TimeOf(now.Add(-d)), nil
	}
	return 0, web.BadRequest("%s=%q is not a time: give 2026-01-31T12:00:00Z, 2026-01-31, or how long ago: 90m, 7d", name, s)
}

// A cursor is the store's cursor. The store accepts it only with the filter that it came
// from. If that filter counts back from now ("since=24h"), the cursor therefore carries
// the moment from which the first page counted, and later pages count from there, too:
//
//	~1795187382346512~AQAAAZk…
//
// Otherwise a page requested a second later would belong to another listing, and the store
// would refuse it.
const cursorMark = "~"

// CursorBehind is the cursor of the page after one of l; next is the store's cursor of
// that page. Empty: there is none.
func (l *Listing) CursorBehind(next string) string {
	if next == "" || l.countedFrom.IsZero() {
		return next
	}
	return cursorMark + strconv.FormatInt(l.countedFrom.UnixMicro(), 10) + cursorMark + next
}

// SplitCursor returns the store's part of a cursor, and the moment from which its listing
// counts back: now, unless the cursor carries another.
func SplitCursor(cursor string, now time.Time) (string, time.Time) {
	marked, ok := strings.CutPrefix(cursor, cursorMark)
	if !ok {
		return cursor, now
	}
	at, of, _ := strings.Cut(marked, cursorMark)
	us, err := strconv.ParseInt(at, 10, 64)
	if err != nil || of == "" {
		return cursor, now // the store refuses it
	}
	return of, time.UnixMicro(us)
}
