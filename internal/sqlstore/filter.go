package sqlstore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/store"
)

// Dialect is what differs between databases when a listing is assembled. Text
// columns must compare by bytes (COLLATE "C" on PostgreSQL).
type Dialect struct {
	// Param is the n-th bound parameter, from 1: "?1" or "$1".
	Param func(n int) string
	// AnyOf is a condition that column equals an element of the list bound to
	// param; Array makes the bound value.
	AnyOf func(column, param string) string
	Array func([]string) any
	// Runs and Attributes are the tables, as they are written in SQL.
	Runs, Attributes string
	// LastSeq is an expression for the Seq of the last event of the current row
	// of Runs.
	LastSeq string
}

// MaxPage is the largest page that is returned, whatever Filter.Limit says.
const MaxPage = 1000

// Listing is a SELECT ready to run.
type Listing struct {
	SQL  string
	Args []any
	// Limit is the size of the page; one more row is selected, which shows
	// whether there is a next page.
	Limit int

	filter store.Filter
}

// List returns the SELECT of a page of RunColumns. live holds the ids of the
// live executors; only Filter.Orphaned uses it.
func (d Dialect) List(f store.Filter, live []string) (*Listing, error) {
	w := d.where(f, live)
	compare, order := "<", "DESC"
	if f.OldestFirst {
		compare, order = ">", "ASC"
	}
	place, further, err := f.Place()
	if err != nil {
		return nil, err
	}
	if further {
		at := w.bind(int64(place.CreatedAt))
		no := w.bind(place.No)
		w.conds = append(w.conds, fmt.Sprintf("(created_at, no) %s (%s, %s)", compare, at, no))
	}
	limit := f.Limit
	if limit <= 0 {
		limit = store.DefaultLimit
	}
	limit = min(limit, MaxPage)
	sql := fmt.Sprintf("SELECT %s FROM %s%s ORDER BY created_at %s, no %s LIMIT %s",
		RunColumns, d.Runs, w.sql(), order, order, w.bind(int64(limit+1)))
	return &Listing{SQL: sql, Args: w.args, Limit: limit, filter: f}, nil
}

// Next returns the cursor of the page after one that ends with last.
func (l *Listing) Next(last *RunRow) string {
	return l.filter.Next(store.Place{CreatedAt: store.Time(last.CreatedAt), No: last.No})
}

var countColumns = map[string]string{
	store.ByStatus: "status", store.ByWorkflow: "workflow", store.ByQueue: "queue", store.ByCode: "code", store.ByOwner: "owner",
	store.ByVersion: "version",
}

// Count returns the SELECT of (value, number) pairs, columns "name" and "n".
func (d Dialect) Count(f store.Filter, by string, live []string) (sql string, args []any, err error) {
	w := d.where(f, live)
	if by == "" {
		return fmt.Sprintf("SELECT '' AS name, count(*) AS n FROM %s%s", d.Runs, w.sql()), w.args, nil
	}
	column, ok := countColumns[by]
	if !ok {
		return "", nil, fmt.Errorf("store: cannot count by %q: %w", by, store.ErrInvalid)
	}
	return fmt.Sprintf("SELECT %s AS name, count(*) AS n FROM %s%s GROUP BY %s", column, d.Runs, w.sql(), column), w.args, nil
}

// where collects conditions; every value goes through bind.
type where struct {
	d     Dialect
	conds []string
	args  []any
}

func (w *where) bind(v any) string {
	w.args = append(w.args, v)
	return w.d.Param(len(w.args))
}

func (w *where) sql() string {
	if len(w.conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conds, " AND ")
}

func (w *where) among(column string, values []string) {
	switch len(values) {
	case 0:
	case 1:
		w.conds = append(w.conds, column+" = "+w.bind(values[0]))
	default:
		w.conds = append(w.conds, w.d.AnyOf(column, w.bind(w.d.Array(values))))
	}
}

func (w *where) window(column string, from, to store.Time) {
	if from == 0 && to == 0 {
		return
	}
	if from != 0 {
		w.conds = append(w.conds, column+" >= "+w.bind(int64(from)))
	} else {
		// Zero means "not set": a run that has not ended did not end before To.
		w.conds = append(w.conds, column+" <> 0")
	}
	if to != 0 {
		w.conds = append(w.conds, column+" < "+w.bind(int64(to)))
	}
}

func (d Dialect) where(f store.Filter, live []string) *where {
	w := &where{d: d}
	w.among("id", f.IDs)
	if f.IDPrefix != "" {
		w.conds = append(w.conds, "id >= "+w.bind(f.IDPrefix))
		if end, ok := PrefixEnd(f.IDPrefix); ok {
			w.conds = append(w.conds, "id < "+w.bind(end))
		}
	}
	w.among("workflow", f.Workflows)
	w.among("version", f.Versions)
	w.among("status", texts(f.Statuses))
	w.among("code", f.Codes)
	w.among("queue", f.Queues)
	w.among("owner", f.Owners)
	w.among("parent", f.Parents)
	for _, name := range slices.Sorted(maps.Keys(f.Attributes)) {
		n, v := w.bind(name), w.bind(f.Attributes[name])
		w.conds = append(w.conds, fmt.Sprintf("no IN (SELECT run_no FROM %s WHERE name = %s AND value = %s)", d.Attributes, n, v))
	}
	w.window("created_at", f.CreatedFrom, f.CreatedTo)
	w.window("updated_at", f.UpdatedFrom, f.UpdatedTo)
	w.window("ended_at", f.EndedFrom, f.EndedTo)
	if f.Orphaned {
		w.conds = append(w.conds, "owner <> ''", "NOT ("+d.AnyOf("status", w.bind(d.Array(texts(terminal()))))+")",
			"NOT ("+d.AnyOf("owner", w.bind(d.Array(live)))+")")
	}
	if f.Mail {
		w.conds = append(w.conds, "inbox > seen")
	}
	if f.Paused {
		w.conds = append(w.conds, "paused")
	}
	if f.Unarchived {
		w.conds = append(w.conds, "archived_seq < "+d.LastSeq)
	}
	return w
}

func terminal() []store.Status {
	return slices.DeleteFunc(store.Statuses(), func(s store.Status) bool { return !s.Terminal() })
}

func texts[T ~string](list []T) []string {
	if len(list) == 0 {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

// PrefixEnd returns the smallest string that is greater, byte by byte, than
// every string with this prefix; false if there is none. It is valid UTF-8 if
// prefix is, because the bytes of UTF-8 sort like the code points.
func PrefixEnd(prefix string) (string, bool) {
	if !utf8.ValidString(prefix) {
		for i := len(prefix) - 1; i >= 0; i-- {
			if prefix[i] < 0xff {
				return prefix[:i] + string([]byte{prefix[i] + 1}), true
			}
		}
		return "", false
	}
	runes := []rune(prefix)
	for i := len(runes) - 1; i >= 0; i-- {
		switch r := runes[i]; {
		case r == utf8.MaxRune:
		case r == 0xd7ff: // the surrogates that follow are not UTF-8
			return string(append(runes[:i], 0xe000)), true
		default:
			return string(append(runes[:i], r+1)), true
		}
	}
	return "", false
}
