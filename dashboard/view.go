package dashboard

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// zone is that of the program: pages say so.
var zone = time.Local

// An icon is a symbol of the sheet and its colour.
type icon struct{ Name, Class string }

// A statusView is a status with its shape and colour; always with the word.
type statusView struct {
	Class string
	Icon  string
	Word  string
}

// statusOf returns how the status of a run is shown.
func statusOf(r *store.Run) statusView {
	switch {
	case r.Status == store.Failed && r.Recoverable:
		return statusView{"fail", "recoverable", "Failed"}
	case r.CancelAsked && !r.Status.Terminal():
		return statusView{"off", "cancelled", "Cancelling"}
	case r.Paused:
		return statusView{"off", "interrupted", "Paused"}
	case r.Status == store.Interrupted && r.Code != "":
		return statusView{"fail", "stuck", "Parked"}
	}
	return statusViews[r.Status]
}

var statusViews = map[store.Status]statusView{
	store.Pending:     {"off", "pending", "Pending"},
	store.Running:     {"run", "running", "Running"},
	store.Resuming:    {"resume", "resuming", "Resuming"},
	store.Waiting:     {"wait", "waiting", "Waiting"},
	store.Interrupted: {"off", "interrupted", "Interrupted"},
	store.Completed:   {"done", "done", "Completed"},
	store.Failed:      {"fail", "failed", "Failed"},
	store.Cancelled:   {"off", "cancelled", "Cancelled"},
}

// toneIcons are the symbols of verdicts.
var toneIcons = map[outline.Tone]icon{
	outline.ToneDone:    {"done", "c-done"},
	outline.ToneRun:     {"running", "c-run"},
	outline.ToneResume:  {"resuming", "c-resume"},
	outline.ToneWait:    {"waiting", "c-wait"},
	outline.ToneIdle:    {"timer", "c-wait"},
	outline.ToneFail:    {"recoverable", "c-fail"},
	outline.ToneStuck:   {"stuck", "c-fail"},
	outline.ToneOff:     {"interrupted", "c-off"},
	outline.TonePending: {"pending", "c-off"},
}

// rowIcon is the symbol of a row of the timeline.
func rowIcon(r *outline.Row) icon {
	if r.Kind == outline.Map && r.ItemsFailed > 0 {
		return icon{"recoverable", "c-fail"} // whatever the function made of it
	}
	switch r.State {
	case outline.Expected:
		return icon{"pending", "c-off"}
	case outline.Failed:
		if r.Kind == outline.Child {
			return icon{"child", "c-fail"}
		}
		return icon{"recoverable", "c-fail"}
	case outline.Backoff:
		return icon{"retry", "c-fail"}
	case outline.Stopped:
		return icon{"interrupted", "c-off"}
	case outline.Closed:
		return icon{"cancelled", "c-off"}
	case outline.TimedOut:
		return icon{"timer", "c-fail"}
	case outline.Waiting:
		switch r.Kind {
		case outline.Timer:
			return icon{"timer", "c-wait"}
		case outline.Child:
			return icon{"child", "c-wait"}
		}
		return icon{"waiting", "c-wait"}
	case outline.Running:
		return icon{"running", "c-run"}
	}
	switch {
	case r.Edited != nil:
		return icon{"done", "c-resume"}
	case r.Kind == outline.Timer:
		return icon{"timer", "c-off"}
	case r.Kind == outline.Child:
		return icon{"child", "c-done"}
	}
	return icon{"done", "c-done"}
}

// plural returns "1 event", "3 events".
func plural[N int | int64 | int32](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "s") || strings.HasSuffix(one, "ch") {
		return number(n) + " " + one + "es"
	}
	return number(n) + " " + one + "s"
}

// number writes a number with separators: 12,408.
func number[N int | int64 | int32](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func size(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// A textView is a sentence of an outline, redacted.
type textView []spanView

type spanView struct {
	Text         string
	Code, Strong bool
	At           string // RFC 3339; empty: no moment
	URL          string // of a link
}

func (h *handler) text(t outline.Text) textView {
	out := make(textView, len(t))
	for i, s := range t {
		out[i] = spanView{Text: h.redact(s.Text), Code: s.Code, Strong: s.Strong}
		if s.At != 0 {
			out[i].At = s.At.Time().UTC().Format(time.RFC3339)
		}
	}
	return out
}

// runQuery is what the address of a run's page says, beside the run.
type runQuery struct {
	prefix     string
	values     url.Values
	step       string // the row that is selected
	open       []string
	shut       []string
	noFold     bool
	failures   bool
	branchOnly bool
	find       string
	zoom       string // the row in whose time is looked
	panel      string // resume, fork, jump, edit, cancel, pause
}

// Bounds of what the links of a run's page repeat, each in every row.
const (
	maxFolds = 800 // bytes of the names of rows that are opened and shut
	maxFind  = 200 // bytes of what is looked for
	maxLink  = 200 // bytes of a key that stands in a link as it is
)

// runParams are the names that the page of a run looks at, and which values each may
// have. Others are dropped: every link of a page would repeat them.
var runParams = map[string]func(value string) bool{
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

// parseRunQuery reads the address of the page of a run.
func parseRunQuery(prefix string, v url.Values, o *outline.Outline) *runQuery {
	q := &runQuery{prefix: prefix, values: url.Values{}}
	for name, fits := range runParams {
		for _, value := range v[name] {
			if !fits(value) {
				continue
			}
			switch name {
			case "open", "shut", "edit":
				q.values.Add(name, value)
			default:
				q.values.Set(name, value)
			}
		}
	}
	// Those that were folded last stay.
	left := maxFolds
	for _, name := range []string{"open", "shut"} {
		kept := q.values[name]
		for i := len(kept) - 1; i >= 0; i-- {
			if left -= len(kept[i]) + len("open=&"); left < 0 {
				kept = kept[i+1:]
				break
			}
		}
		q.values[name] = kept
	}
	q.values["edit"] = q.values["edit"][:min(len(q.values["edit"]), maxEdits)]
	for _, name := range []string{"open", "shut", "edit"} {
		if len(q.values[name]) == 0 {
			q.values.Del(name)
		}
	}
	q.step, q.zoom = keyIn(o, q.values.Get("step")), keyIn(o, q.values.Get("zoom"))
	for _, name := range []string{"step", "zoom"} {
		if len(q.values.Get(name)) > maxLink {
			q.values.Del(name)
			if r := o.Row(map[string]string{"step": q.step, "zoom": q.zoom}[name]); r != nil {
				q.values.Set(name, linkName(r))
			}
		}
	}
	q.open, q.shut = q.values["open"], q.values["shut"]
	q.noFold, q.failures, q.branchOnly = q.values.Has("fold"), q.values.Has("only"), q.values.Has("branch")
	q.find, q.panel = strings.ToLower(q.values.Get("find")), q.values.Get("panel")
	return q
}

// linkName is what a row is called in an address: its key, or, where that is long,
// the number of its first event.
func linkName(r *outline.Row) string {
	if len(r.Key) <= maxLink || r.Seq == 0 {
		return r.Key
	}
	return "@" + strconv.FormatInt(r.Seq, 10)
}

// keyIn is the key of the row that an address names.
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

// with returns the query with some names set, in pairs; an empty value removes.
func (q *runQuery) with(pairs ...string) url.Values {
	v := url.Values{}
	for name, values := range q.values {
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

func (q *runQuery) selecting(r *outline.Row, left bool) url.Values {
	if left {
		return q.with("step", "")
	}
	return q.with("step", linkName(r))
}

// isOpen reports whether the rows in a row are shown: by default those of a
// branch, and of a small Map.
func (q *runQuery) isOpen(r *outline.Row) bool {
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

func (q *runQuery) folding(r *outline.Row) url.Values {
	v := q.with()
	add, remove := "open", "shut"
	if q.isOpen(r) {
		add, remove = "shut", "open"
	}
	v[remove] = slices.DeleteFunc(v[remove], func(k string) bool { return k == linkName(r) })
	v[add] = append(v[add], linkName(r))
	return v
}

// filters reports whether only some rows are shown.
func (q *runQuery) filters() bool { return q.failures || q.find != "" }

func (q *runQuery) shows(r *outline.Row) bool {
	if q.find != "" && !strings.Contains(strings.ToLower(r.Key), q.find) {
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

// now is the time of the store as near as the engine's clock comes.
func now() store.Time { return store.Time(time.Now().UnixMicro()) }

// stuckView is a run that cannot go on, for the cards and the page.
type stuckView struct {
	durable.Stuck
	URL     string
	Age     string       // how long the run stands as it does; empty: not known
	Buttons []toggleView // that open the panels of its page
}
