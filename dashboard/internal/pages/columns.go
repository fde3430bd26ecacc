package pages

import (
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// A column of the list that a viewer may choose. Status and run are always there.
type column struct {
	Name, Head string
	Wide       string // class of its col
	cell       func(row *store.Run, redact func(string) string) string
}

// columns are all that there are, in the order in which they stand.
var columns = []column{
	{Name: "where", Head: "Where it is"},
	{Name: "shape", Head: "Shape", Wide: "w-sh"},
	{Name: "state", Head: "In this state", Wide: "w-t"},
	{Name: "started", Head: "Started", Wide: "w-t", cell: func(r *store.Run, _ func(string) string) string {
		return outline.Clock(r.CreatedAt, view.Now(), view.Zone)
	}},
	{Name: "took", Head: "Took", Wide: "w-t", cell: func(r *store.Run, _ func(string) string) string {
		if r.EndedAt == 0 {
			return outline.About(view.Now().Sub(r.CreatedAt)) + " so far"
		}
		return outline.Duration(r.EndedAt.Sub(r.CreatedAt))
	}},
	{Name: "version", Head: "Version", Wide: "w-t", cell: func(r *store.Run, _ func(string) string) string { return r.Version }},
	{Name: "queue", Head: "Queue", Wide: "w-t", cell: func(r *store.Run, _ func(string) string) string { return r.Queue }},
	{Name: "parent", Head: "Parent", Wide: "w-t", cell: func(r *store.Run, _ func(string) string) string { return r.Parent }},
	{Name: "attributes", Head: "Attributes", Wide: "w-id", cell: func(r *store.Run, redact func(string) string) string {
		var list []string
		for _, name := range slices.Sorted(maps.Keys(r.Attributes)) {
			list = append(list, name+"="+r.Attributes[name])
		}
		return redact(outline.OneLine(strings.Join(list, " "), 140))
	}},
	{Name: "process", Head: "Process", Wide: "w-x"},
}

// usualColumns are shown if nothing was chosen.
const usualColumns = "where,shape,state,process"

// columnsView is the choice of columns.
type columnsView struct {
	Choices []columnChoice
	Usual   bool
	Reset   string // address of the list with the usual columns
}

type columnChoice struct {
	Name, Head string
	On         bool
}

// columnsOf returns the columns that a query asks for, and those that it may.
func columnsOf(site view.Site, ts terms) (shown []column, v columnsView) {
	want := ts.value(columnsTerm)
	v.Usual = want == ""
	if v.Usual {
		want = usualColumns
	}
	names := strings.Split(want, ",")
	for _, c := range columns {
		on := slices.Contains(names, c.Name)
		if on {
			shown = append(shown, c)
		}
		v.Choices = append(v.Choices, columnChoice{c.Name, c.Head, on})
	}
	v.Reset = site.List(ts.without(columnsTerm))
	return shown, v
}

// withColumns returns the query with these columns in place of its own.
func withColumns(query string, names []string) string {
	var known []string
	for _, c := range columns {
		if slices.Contains(names, c.Name) {
			known = append(known, c.Name)
		}
	}
	rest, chosen := terms(strings.Fields(query)).without(columnsTerm), strings.Join(known, ",")
	if chosen == usualColumns || chosen == "" {
		return rest
	}
	return strings.TrimSpace(rest + " " + columnsTerm + ":" + chosen)
}

// cellView is what a line says in a column that was chosen.
type cellView struct{ Head, Text string }

func cells(shown []column, row *store.Run, redact func(string) string) []cellView {
	var out []cellView
	for _, c := range shown {
		if c.cell != nil {
			out = append(out, cellView{c.Head, c.cell(row, redact)})
		}
	}
	return out
}

// shows reports whether a column is among those.
func shows(list []column, name string) bool {
	return slices.ContainsFunc(list, func(c column) bool { return c.Name == name })
}
