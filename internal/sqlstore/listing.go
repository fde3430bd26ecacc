package sqlstore

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// A page is read from the index that suits the filter, and not from the one that a planner
// guesses: it knows neither how rare a paused run is nor, without statistics, anything. So
// one filter leads, and the columns of the others are barred from indexes. Where a filter
// leads that names several values, each value is an arm of the statement, since an index has
// the runs of one value alone in order.

// MaxPage is the largest page that is returned, whatever Filter.Limit says.
const MaxPage = 1000

// few is how many runs may match a filter without an order of its own, such as an attribute,
// for all of them to be read and sorted. If there are more, a page of them is found on the way
// through the runs in order.
const few = 20_000

// Listing is a SELECT ready to run.
type Listing struct {
	SQL  string
	Args []any
	// Limit is the size of the page; one more row is selected, which shows
	// whether there is a next page.
	Limit int
	// Direction is that of the order by created_at and no: ASC or DESC.
	Direction string

	filter store.Filter
}

// List returns the SELECT of a page of RunColumns. gone holds the ids of the executors that
// own runs and are not live; only Filter.Orphaned uses it.
func (d Dialect) List(f store.Filter, gone []string) (*Listing, error) {
	w := d.where(f, gone, true)
	compare, order := "<", "DESC"
	if f.OldestFirst {
		compare, order = ">", "ASC"
	}
	place, further, err := f.Place()
	if err != nil {
		return nil, err
	}
	if further {
		w.add("", fmt.Sprintf("(created_at, no) %s (%s, %s)", compare, w.bind(int64(place.CreatedAt)), w.bind(place.No)))
	}
	limit := f.Limit
	if limit <= 0 {
		limit = store.DefaultLimit
	}
	limit = min(limit, MaxPage)
	arms := w.arms()
	size := w.bind(int64(limit + 1))
	end := fmt.Sprintf(" ORDER BY created_at %s, no %s LIMIT ", order, order)
	l := &Listing{Args: w.args, Limit: limit, Direction: order, filter: f}
	if len(arms) == 1 {
		l.SQL = "SELECT " + RunColumns + " FROM " + arms[0].from + arms[0].sql + end + size
		return l, nil
	}
	parts := make([]string, len(arms))
	for i, a := range arms {
		parts[i] = "SELECT no FROM (SELECT no, created_at FROM " + a.from + a.sql + end + a.limit(size) + ") AS arm"
	}
	l.SQL = w.probes() + "SELECT " + RunColumns + " FROM " + d.Runs + " WHERE no IN (" + strings.Join(parts, " UNION ALL ") + ")" + end + size
	return l, nil
}

// Next returns the cursor of the page after one that ends with last.
func (l *Listing) Next(last *RunRow) string {
	return l.filter.Next(store.Place{CreatedAt: store.Time(last.CreatedAt), No: last.No})
}

var countColumns = map[string]string{
	store.ByStatus: "status", store.ByWorkflow: "workflow", store.ByQueue: "queue", store.ByCode: "code", store.ByOwner: "owner",
	store.ByVersion: "version",
}

// Count returns the SELECT of (value, number) pairs, columns "name" and "n". gone is as in List.
func (d Dialect) Count(f store.Filter, by string, gone []string) (sql string, args []any, err error) {
	w := d.where(f, gone, false)
	conds := w.all()
	if by == "" {
		return fmt.Sprintf("SELECT '' AS name, count(*) AS n FROM %s%s", d.Runs, conds), w.args, nil
	}
	column, ok := countColumns[by]
	if !ok {
		return "", nil, fmt.Errorf("store: cannot count by %q: %w", by, store.ErrInvalid)
	}
	return fmt.Sprintf("SELECT %s AS name, count(*) AS n FROM %s%s GROUP BY %s", column, d.Runs, conds, column), w.args, nil
}

// where collects conditions; every value goes through bind.
type where struct {
	d     Dialect
	args  []any
	conds []cond
	// ordered: the statement is a listing, and not a count.
	ordered bool
	// lead is the column whose index is used, and leads are the conditions of the arms in
	// place of those of the column; none: one arm.
	lead  string
	leads []string
	// values are those of the column that leads, if each is an arm.
	values []string
	// sources are the conditions that have an index, but none in the order of a listing.
	sources []source
}

// A cond is a condition. Those of one column have it as %s.
type cond struct{ column, text string }

// A source is a condition that is met by runs that an index has in another order.
type source struct {
	column  string // whose conditions it replaces
	runs    string // SELECT of their numbers
	rows    string // the same of whole rows; empty: they are in another table
	order   string // that of the index; it keeps a planner from reading the table in its place
	instead string // the condition for a run that was found elsewhere; empty: it stands elsewhere
}

func (w *where) bind(v any) string {
	w.args = append(w.args, v)
	return w.d.Param(len(w.args))
}

func (w *where) add(column, text string) { w.conds = append(w.conds, cond{column, text}) }

// among adds that the column has one of the values, if there are any.
func (w *where) among(column string, values []string) {
	switch values = distinct(values); len(values) {
	case 0:
	case 1:
		w.add(column, "%s = "+w.bind(values[0]))
	default:
		w.add(column, w.d.AnyOf("%s", w.bind(w.d.Array(values))))
	}
}

func (w *where) window(column string, from, to store.Time) {
	if from == 0 && to == 0 {
		return
	}
	if from != 0 {
		w.add(column, "%s >= "+w.bind(int64(from)))
	} else {
		// Zero means "not set": a run that has not ended did not end before To.
		w.add(column, "%s <> 0")
	}
	if to != 0 {
		w.add(column, "%s < "+w.bind(int64(to)))
	}
}

// leading adds that the column has one of the values, and makes its index lead, unless another
// one does. That index has only runs for which more is true; those of one value are in order.
func (w *where) leading(column, more string, values []string) {
	values = distinct(values) // how many there are decides who states the condition
	lead := w.lead == "" && len(values) > 0 && (more == "" || !slices.Contains(values, ""))
	if !lead || !w.ordered || len(values) == 1 {
		w.among(column, values)
	}
	if !lead {
		return
	}
	w.lead = column
	if more != "" {
		w.add("", more)
	}
	if w.ordered && len(values) > 1 {
		w.values = values
		for _, v := range values {
			w.leads = append(w.leads, column+" = "+w.bind(v))
		}
	}
}

func distinct(values []string) []string { return slices.Compact(slices.Sorted(slices.Values(values))) }

// where returns the conditions of f, of a listing in order or of a count.
func (d Dialect) where(f store.Filter, gone []string, ordered bool) *where {
	w := &where{d: d, ordered: ordered}
	if len(f.IDs) > 0 {
		w.among("id", f.IDs)
		w.lead = "id"
	}
	if f.Paused {
		w.add("", "paused")
		w.lead = cmp.Or(w.lead, "paused")
	}
	w.leading("code", "code <> ''", f.Codes)
	w.owners(&f, gone)
	w.among("parent", f.Parents)
	if w.lead == "" && len(f.Parents) > 0 && !slices.Contains(f.Parents, "") {
		w.lead = "parent"
		w.add("", "parent <> ''")
	}
	if f.Mail {
		w.add("", d.Mail)
		w.lead = cmp.Or(w.lead, "inbox")
	}
	w.prefix(f.IDPrefix)
	for _, name := range slices.Sorted(maps.Keys(f.Attributes)) {
		n, v := w.bind(name), w.bind(f.Attributes[name])
		hashed := ""
		if d.Hashed != nil {
			hashed = fmt.Sprintf(" AND %s = %s", d.Hashed("a.value"), d.Hashed(v))
		}
		w.sources = append(w.sources, source{
			runs:    fmt.Sprintf("SELECT a.run_no FROM %s AS a WHERE a.name = %s AND a.value = %s%s", d.Attributes, n, v, hashed),
			instead: fmt.Sprintf("(SELECT a.value FROM %s AS a WHERE a.run_no = no AND a.name = %s) = %s", d.Attributes, n, v),
		})
	}
	w.ended(f.EndedFrom, f.EndedTo)
	if d.Queued {
		w.leading("queue", "queue <> ''", f.Queues)
	} else {
		w.among("queue", f.Queues)
	}
	w.leading("status", "", texts(f.Statuses))
	w.kinds(&f)
	w.among("workflow", f.Workflows)
	w.among("version", f.Versions)
	w.window("created_at", f.CreatedFrom, f.CreatedTo)
	w.window("updated_at", f.UpdatedFrom, f.UpdatedTo)
	if f.Unarchived {
		w.add("", "archived_seq < "+d.LastSeq)
	}
	return w
}

// owners adds what says who owns a run.
func (w *where) owners(f *store.Filter, gone []string) {
	w.among("owner", f.Owners)
	if f.Orphaned {
		w.add("", "owner <> ''")
		w.add("", w.d.Unfinished)
		if len(gone) == 0 {
			w.add("", "1 = 0") // all owners live
		} else {
			w.among("owner", gone)
		}
		if !executing(f.Statuses) {
			w.lead = cmp.Or(w.lead, "owner")
		} // else by status: an executor that is gone may own a million runs that wait
		return
	}
	if w.lead != "" || len(f.Owners) == 0 || slices.Contains(f.Owners, "") {
		return
	}
	if w.lead = "owner"; w.ordered && len(w.d.Owned) > 1 {
		w.leads = w.d.Owned
		return
	}
	if len(w.d.Owned) == 1 {
		w.add("", w.d.Owned[0])
	}
}

// executing reports whether only runs that are being executed are selected, of which there are
// at most as many as all processes have room for.
func executing(list []store.Status) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(s store.Status) bool { return s != store.Running && s != store.Resuming })
}

// prefix adds that the id begins with a text.
func (w *where) prefix(prefix string) {
	if prefix == "" {
		return
	}
	conds := []string{"%s >= " + w.bind(prefix)}
	if end, ok := PrefixEnd(prefix); ok {
		conds = append(conds, "%s < "+w.bind(end))
	}
	w.source("id", conds)
}

// ended adds that a run has ended within a time. Zero means that it has not ended.
func (w *where) ended(from, to store.Time) {
	if from == 0 && to == 0 {
		return
	}
	conds := []string{"%s <> 0"}
	if from != 0 {
		conds = append(conds, "%s >= "+w.bind(int64(from)))
	}
	if to != 0 {
		conds = append(conds, "%s < "+w.bind(int64(to)))
	}
	w.source("ended_at", conds)
}

// kinds makes a status and a workflow together a source. The status has an index in order, but there
// may be few of the workflow among its runs, or none.
func (w *where) kinds(f *store.Filter) {
	if w.d.Kinds == "" || !w.ordered || w.lead != "status" || len(f.Workflows) == 0 {
		return
	}
	of := &where{d: w.d, args: w.args}
	of.among("status", texts(f.Statuses))
	of.among("workflow", f.Workflows)
	of.among("version", f.Versions)
	w.args = of.args
	from := " FROM " + w.d.Runs + of.sql("")
	w.sources = append(w.sources, source{runs: "SELECT no" + from, rows: "SELECT *" + from, order: w.d.Kinds})
}

// source adds conditions of a column that has an index which is not in the order of a listing.
func (w *where) source(column string, conds []string) {
	text := strings.Join(conds, " AND ")
	from := " FROM " + w.d.Runs + " WHERE " + strings.ReplaceAll(text, "%s", column)
	w.sources = append(w.sources, source{
		column:  column,
		runs:    "SELECT no" + from,
		rows:    "SELECT *" + from,
		order:   column,
		instead: strings.ReplaceAll(text, "%s", w.d.Bar(column)),
	})
}

// first limits a SELECT of the runs. If more match than are few, these are not read, or only until
// that is known.
func (s *source) first(runs string) string {
	order := ""
	if s.order != "" {
		order = " ORDER BY " + s.order
	}
	return fmt.Sprintf("%s%s LIMIT %d", runs, order, few+1)
}

// all returns the conditions for a statement without an order.
func (w *where) all() string {
	var conds []string
	for _, s := range w.sources {
		conds = append(conds, "no IN ("+s.runs+")")
	}
	return w.sql(w.lead, conds...)
}

// An arm is a part of a statement with an order: its conditions, and which probes must have
// said what for it to be read at all.
type arm struct {
	from string
	sql  string
	when []string
}

// limit returns the size of the arm.
func (a *arm) limit(size string) string {
	if len(a.when) == 0 {
		return size
	}
	return "CASE WHEN " + strings.Join(a.when, " AND ") + " THEN " + size + " ELSE 0 END"
}

// arms returns the arms of a statement with an order.
func (w *where) arms() (arms []arm) {
	insteadOf := func(source int) (conds []string) {
		for i, s := range w.sources {
			if i != source && s.instead != "" {
				conds = append(conds, s.instead)
			}
		}
		return conds
	}
	instead := insteadOf(-1)
	add := func(from, lead string, conds, probes []string) {
		a := arm{from: from, when: probes}
		if !w.d.LimitFirst {
			// The server tests first what does not depend on a row.
			a.when, conds = nil, slices.Concat(probes, conds)
		}
		a.sql = w.sql(lead, conds...)
		arms = append(arms, a)
	}
	var many []string
	if w.lead == "" || w.lead == "status" || w.lead == "queue" {
		// The first source that few runs come from leads.
		var lead []string
		if len(w.values) > 0 && len(w.sources) > 0 {
			lead = []string{w.d.AnyOf(w.d.Bar(w.lead), w.bind(w.d.Array(w.values)))}
		}
		for i, s := range w.sources {
			from, conds := w.d.Runs, insteadOf(i)
			if s.rows != "" && !w.d.LimitFirst {
				// The planner cannot do anything but read these rows. It would sometimes read the whole
				// table to compare it with their numbers.
				from = "(" + s.first(s.rows) + ") AS found"
			} else {
				conds = append(conds, "no IN ("+s.first(s.runs)+")")
			}
			add(from, "no", slices.Concat(conds, lead), append(slices.Clone(many), fmt.Sprintf("(SELECT few FROM probe%d)", i)))
			many = append(many, fmt.Sprintf("NOT (SELECT few FROM probe%d)", i))
		}
	}
	if len(w.leads) == 0 {
		add(w.d.Runs, w.lead, instead, many)
	}
	for _, lead := range w.leads {
		add(w.d.Runs, w.lead, append(slices.Clone(instead), lead), many)
	}
	return arms
}

// probes begins a statement whose arms ask whether few runs come from the sources.
func (w *where) probes() string {
	var list []string
	for i, s := range w.sources {
		list = append(list, fmt.Sprintf("probe%d (few) AS (SELECT count(*) <= %d FROM (%s) AS found)", i, few, s.first(s.runs)))
	}
	if len(list) == 0 {
		return ""
	}
	return "WITH " + strings.Join(list, ", ") + " "
}

// sql returns the conditions, and more, with the columns barred but for lead.
func (w *where) sql(lead string, more ...string) string {
	conds := slices.Clone(more)
	for _, c := range w.conds {
		text, column := c.text, c.column
		inOrder := column == "created_at" && (lead == "status" || lead == "queue")
		if lead != "" && column != lead && column != "" && !inOrder {
			column = w.d.Bar(column)
		}
		if column != "" {
			text = strings.ReplaceAll(text, "%s", column)
		}
		conds = append(conds, text)
	}
	if len(conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(conds, " AND ")
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
