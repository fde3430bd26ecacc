package view

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// A Query is what the address of a run's page says besides the run.
type Query struct {
	prefix     string
	Values     url.Values
	Step       string // the row that is selected
	open       []string
	shut       []string
	noFold     bool
	failures   bool
	branchOnly bool
	Find       string
	zoom       string // the row whose time fills the timeline
	Panel      string // resume, fork, jump, edit, cancel, pause
}

// Bounds of what every link in every row of a run's page repeats.
const (
	maxFolds = 800 // bytes of the names of rows that were opened or shut
	maxFind  = 200 // bytes of the text to find
	maxLink  = 200 // bytes of a key that a link spells out
)

// Params are the parameters that the page of a run reads, and which values each may have.
// Others are dropped, since every link of a page would repeat them.
var Params = map[string]func(value string) bool{
	"step": isKey, "zoom": isKey, "open": isKey, "shut": isKey, "edit": isKey, "find": func(v string) bool { return len(v) <= maxFind },
	"fold": oneOf("0"), "only": oneOf("failures"), "branch": oneOf("current"), "panel": oneOf("resume", "jump", "fork", "edit", "pause", "unpause", "cancel"),
	"reset": oneOf("1"), "force": oneOf("1"), "planned": oneOf("1"), "at": isNumber, "from": isNumber, "before": isNumber, "n": isNumber,
}

func isKey(v string) bool { return v != "" && len(v) <= store.MaxKey }

func isNumber(v string) bool {
	_, err := strconv.ParseUint(v, 10, 63)
	return err == nil
}

func oneOf(words ...string) func(string) bool {
	return func(v string) bool { return slices.Contains(words, v) }
}

// ParseQuery reads the address of the page of a run.
func ParseQuery(prefix string, v url.Values, o *outline.Outline) *Query {
	q := &Query{prefix: prefix, Values: url.Values{}}
	for name, fits := range Params {
		for _, value := range v[name] {
			if !fits(value) {
				continue
			}
			switch name {
			case "open", "shut", "edit":
				q.Values.Add(name, value)
			default:
				q.Values.Set(name, value)
			}
		}
	}
	// The ones that were folded last stay.
	left := maxFolds
	for _, name := range []string{"open", "shut"} {
		kept := q.Values[name]
		for i := len(kept) - 1; i >= 0; i-- {
			if left -= len(kept[i]) + len("open=&"); left < 0 {
				kept = kept[i+1:]
				break
			}
		}
		q.Values[name] = kept
	}
	q.Values["edit"] = q.Values["edit"][:min(len(q.Values["edit"]), MaxEdits)]
	for _, name := range []string{"open", "shut", "edit"} {
		if len(q.Values[name]) == 0 {
			q.Values.Del(name)
		}
	}
	q.Step, q.zoom = keyIn(o, q.Values.Get("step")), keyIn(o, q.Values.Get("zoom"))
	for _, name := range []string{"step", "zoom"} {
		if len(q.Values.Get(name)) > maxLink {
			q.Values.Del(name)
			if r := o.Row(map[string]string{"step": q.Step, "zoom": q.zoom}[name]); r != nil {
				q.Values.Set(name, linkName(r))
			}
		}
	}
	q.open, q.shut = q.Values["open"], q.Values["shut"]
	q.noFold, q.failures, q.branchOnly = q.Values.Has("fold"), q.Values.Has("only"), q.Values.Has("branch")
	q.Find, q.Panel = strings.ToLower(q.Values.Get("find")), q.Values.Get("panel")
	return q
}

// linkName is what an address calls a row: its key, or the number of its first event if
// the key is long.
func linkName(r *outline.Row) string {
	if len(r.Key) <= maxLink || r.Seq == 0 {
		return r.Key
	}
	return "@" + strconv.FormatInt(r.Seq, 10)
}

// keyIn returns the key of the row that an address names.
func keyIn(o *outline.Outline, name string) string {
	seq, numbered := strings.CutPrefix(name, "@")
	if !numbered || o.Row(name) != nil {
		return name
	}
	key := name
	for _, l := range o.Lanes {
		outline.Each(l.Rows, func(r *outline.Row) bool {
			if r.Seq != 0 && strconv.FormatInt(r.Seq, 10) == seq {
				key = r.Key
			}
			return key == name
		})
	}
	return key
}

// With returns the query with some names set, in pairs; an empty value removes.
func (q *Query) With(pairs ...string) url.Values {
	v := url.Values{}
	for name, values := range q.Values {
		v[name] = slices.Clone(values)
	}
	for _, name := range []string{"panel", "at", "reset", "force", "from", "n", "edit", "planned", "done"} {
		v.Del(name)
	}
	for i := 0; i < len(pairs); i += 2 {
		v.Del(pairs[i])
		if pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	return v
}

func (q *Query) selecting(r *outline.Row, left bool) url.Values {
	if left {
		return q.With("step", "")
	}
	return q.With("step", linkName(r))
}

// isOpen reports whether the rows inside a row are shown: by default those of a branch and
// of a small item.
func (q *Query) isOpen(r *outline.Row) bool {
	switch {
	case slices.Contains(q.open, linkName(r)):
		return true
	case slices.Contains(q.shut, linkName(r)), len(r.Rows) == 0:
		return false
	case r.Kind == outline.Map:
		return false
	case r.Kind == outline.Item:
		return len(r.Rows) <= 20
	}
	return true
}

func (q *Query) folding(r *outline.Row) url.Values {
	v := q.With()
	add, remove := "open", "shut"
	if q.isOpen(r) {
		add, remove = "shut", "open"
	}
	v[remove] = slices.DeleteFunc(v[remove], func(k string) bool { return k == linkName(r) })
	v[add] = append(v[add], linkName(r))
	return v
}

// filters reports whether only some rows are shown.
func (q *Query) filters() bool { return q.failures || q.Find != "" }

func (q *Query) shows(r *outline.Row) bool {
	if q.Find != "" && !strings.Contains(strings.ToLower(r.Key), q.Find) {
		return false
	}
	if !q.failures {
		return true
	}
	if r.State == outline.Failed || r.State == outline.TimedOut {
		return true
	}
	return slices.ContainsFunc(r.Attempts, func(a outline.Attempt) bool { return a.State != outline.AttemptDone })
}

// Zooms are the links that change which time is shown.
func (q *Query) Zooms(o *outline.Outline, step string) []Toggle {
	link := func(label, key string) Toggle {
		return Toggle{Label: label, URL: q.With("zoom", key).Encode(), Wide: true}
	}
	var list []Toggle
	if step != q.zoom && zoomed(o, step) != nil {
		list = append(list, link(zoomIn, step))
	}
	if q.zoom != "" {
		list = append(list, link(zoomOut, ""))
	}
	return list
}

// The labels of those links, by which the script finds them.
const (
	zoomIn  = "Zoom in"
	zoomOut = "Whole time"
)

// A Toggle is a link that turns something on or off.
type Toggle struct {
	Label, URL string
	On         bool
	Wide       bool
}

// MaxEdits bounds the fields of a form.
const MaxEdits = 20
