package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/internal/visible"
	"github.com/holdfast-dev/holdfast/store"
)

// A runView is the page of a run.
type runView struct {
	O        *outline.Outline
	ID       string
	URL      string
	API      string
	Workflow string
	Version  string
	Status   statusView
	Meta     []metaView
	Failed   bool
	Buttons  []buttonView
	Step     string // that the address names: a panel is about it
	Tone     string
	Icon     icon
	Head     textView
	Error    string
	More     []textView
	Prompt   string // of what is asked, where Head has not all of it
	Ask      *askView
	Axis     []bar
	Life     []bar
	LifeSays string
	Lives    int
	Summary  string
	Lines    []lineView
	Total    int
	RowsURL  string // of rows that a script puts in; empty: the page has others than the first
	// Where the other rows are without a script, and which of all have failed.
	RowsBefore, RowsAfter, RowsSelected string
	SelectedRow                         int // its number, where it is not among Lines
	FailedRows                          []string
	Find                                string
	Toggles                             []toggleView
	Inspect                             *inspectView
	Panel                               *panelView
	Events                              []eventView
	Earlier                             string // address of older events
	Download                            string
	Hidden                              []string // of the find form: names and values in turn
}

// metaView is a word and what it says: "started 14:02:10".
type metaView struct {
	Before, Value, After, URL string
	Mono                      bool
}

// A buttonView opens a panel.
type buttonView struct {
	Panel, Label, Class string
	Icon                string
	Pressed             bool
}

// askView is the form that answers an approval.
type askView struct {
	Key, User string
	Command   string
	May       bool
	Action    string // address of the form
	API       string
	Others    int
}

type toggleView struct {
	Label, URL string
	On         bool
	Wide       bool
}

// pageRun shows one run. Its address is one of the API, too, so it makes a page of
// an error itself.
func (h *handler) pageRun(w http.ResponseWriter, r *http.Request) error {
	if err := h.showRun(w, r); err != nil {
		h.refuseAs(w, r, err, true)
	}
	return nil
}

func (h *handler) showRun(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	o, err := h.tell(r.Context(), id)
	if err != nil {
		return err
	}
	q := parseRunQuery(h.options.Prefix, r.URL.Query(), o)
	v, err := h.viewRun(r, o, q)
	if err != nil {
		return err
	}
	l := layout{Title: id, Nav: "runs", Body: v, Stream: h.options.Prefix + "/api/runs/" + segment(id) + "/stream"}
	switch o.Run.Status {
	case store.Completed, store.Cancelled:
		l.Stream, l.Ended = "", true
	}
	if err := h.badges(r.Context(), &l); err != nil {
		return err
	}
	return h.render(w, r, http.StatusOK, "run", l)
}

func (h *handler) viewRun(r *http.Request, o *outline.Outline, q *runQuery) (*runView, error) {
	id := o.Run.ID
	v := &runView{
		O: o, ID: id, URL: h.runURL(id), API: h.options.Prefix + "/api/runs/" + segment(id),
		Workflow: o.Run.Workflow, Version: o.Run.Version, Status: statusOf(&o.Run), Find: q.find,
		Tone: string(o.Verdict.Tone), Icon: toneIcons[o.Verdict.Tone], Head: h.text(o.Verdict.Head), Error: h.redact(o.Verdict.Error),
	}
	if o.Run.Status == store.Failed {
		v.Failed = true
		v.Status.Word = "Failed, final"
		if o.Run.Recoverable {
			v.Status.Word = "Failed, can be resumed"
		} else {
			v.Icon = icon{"failed", "c-fail"}
		}
	}
	if isStuck(o) {
		v.Status = statusView{"fail", "stuck", "Stuck"} // as the list says it
	}
	for _, m := range o.Verdict.More {
		v.More = append(v.More, h.text(m))
	}
	others, err := h.alike(r.Context(), o)
	if err != nil {
		return nil, err
	}
	if others != nil {
		v.More = append(v.More, others)
	}
	if q.step == "" && o.Current != nil {
		q.step = o.Current.Key
	}
	link := func(values url.Values) string {
		if len(values) == 0 {
			return v.URL
		}
		return v.URL + "?" + values.Encode()
	}
	v.Meta = h.runMeta(o)
	v.Buttons, v.Step = h.runButtons(r, o, q), q.values.Get("step")
	h.fillTimeline(v, o, q, link)
	if err := h.fillAsk(r, v, o); err != nil {
		return nil, err
	}
	panel, err := h.panel(r, o, q, link)
	if err != nil {
		return nil, err
	}
	v.Panel = panel
	if v.Inspect, err = h.inspect(r, o, q, link); err != nil {
		return nil, err
	}
	return v, h.fillEvents(r.Context(), v, o, q, link)
}

// maxFailedRows bounds how many failures the key for the next one knows.
const maxFailedRows = 500

func (h *handler) fillTimeline(v *runView, o *outline.Outline, q *runQuery, link func(url.Values) string) {
	t := newTimeline(o, q, link, h.redact)
	v.Axis, v.Life, v.LifeSays, v.Lives = t.axisBars(), t.lifeBars(), t.lifeSentence(), len(o.Lives)
	v.Total = len(t.lines)
	from, _ := strconv.Atoi(q.values.Get("from"))
	from = max(min(from, len(t.lines)-1), 0) / firstRows * firstRows
	v.Lines = t.lines[from:min(len(t.lines), from+firstRows)]
	if from == 0 {
		v.RowsURL = v.URL + "/rows?" + q.with().Encode()
	}
	for i := range t.lines {
		l := &t.lines[i]
		if l.Selected && (i < from || i >= from+firstRows) {
			v.SelectedRow, v.RowsSelected = l.N, link(q.with("from", strconv.Itoa(i)))
		}
		if l.Lane == nil && !l.Sub && l.Icon.Class == "c-fail" && len(v.FailedRows) < maxFailedRows {
			v.FailedRows = append(v.FailedRows, strconv.Itoa(l.N))
		}
	}
	if from > 0 {
		v.RowsBefore = link(q.with("from", strconv.Itoa(from-firstRows)))
	}
	if from+firstRows < len(t.lines) {
		v.RowsAfter = link(q.with("from", strconv.Itoa(from+firstRows)))
	}
	processes := map[string]bool{}
	for i := range o.Lives {
		processes[o.Lives[i].Executor] = true
	}
	v.Summary = plural(len(processes), "process")
	if n := len(o.Lanes); n > 1 {
		v.Summary += ", " + plural(n, "branch")
	}
	toggle := func(label, name, on string, wide bool) {
		t := toggleView{Label: label, On: q.values.Get(name) == on, Wide: wide}
		next := on
		if t.On {
			next = ""
		}
		t.URL = link(q.with(name, next))
		v.Toggles = append(v.Toggles, t)
	}
	toggle("Fold idle time", "fold", "0", false)
	v.Toggles[0].On = !v.Toggles[0].On
	toggle("Failures only", "only", "failures", true)
	if len(o.Lanes) > 1 {
		toggle("This branch only", "branch", "current", true)
	}
	for _, z := range q.zooms(o, q.step) {
		z.URL = v.URL + "?" + z.URL
		v.Toggles = append(v.Toggles, z)
	}
	for name, values := range q.with("find", "", "step", "") {
		for _, value := range values {
			v.Hidden = append(v.Hidden, name, value)
		}
	}
}

func (h *handler) runMeta(o *outline.Outline) []metaView {
	run := &o.Run
	m := []metaView{{Before: "started", Value: outline.Clock(o.Begin, o.Now, zone)}}
	alive := outline.About(o.End.Sub(o.Begin))
	switch {
	case run.Status == store.Failed:
		m = append(m, metaView{Before: "failed", Value: outline.About(o.Now.Sub(run.EndedAt)), After: "ago"})
	case run.Status.Terminal():
		m = append(m, metaView{Before: "ended", Value: outline.About(o.Now.Sub(run.EndedAt)), After: "ago"}, metaView{Before: "took", Value: alive})
	default:
		m = append(m, metaView{Before: "alive", Value: alive}, metaView{Before: "active", Value: outline.Duration(o.Active)})
	}
	m = append(m, metaView{Value: number(o.Steps), After: strings.TrimPrefix(plural(o.Steps, "step"), number(o.Steps)+" ") + " done"})
	if o.FailedAttempts > 0 {
		m = append(m, metaView{Value: number(o.FailedAttempts), After: strings.TrimPrefix(plural(o.FailedAttempts, "failed attempt"), number(o.FailedAttempts)+" ")})
	}
	if n := len(o.Lives); n > 0 && o.Lives[n-1].How == outline.Alive {
		m = append(m, metaView{Before: "on", Value: o.Lives[n-1].Name})
	}
	if run.Parent != "" {
		m = append(m, metaView{Before: "child of", Value: run.Parent, URL: h.runURL(run.Parent)})
	}
	if o.ForkedFrom != "" {
		m = append(m, metaView{Before: "forked from", Value: o.ForkedFrom, URL: h.runURL(o.ForkedFrom)})
	}
	if run.Generation > 0 {
		m = append(m, metaView{Before: "generation", Value: number(run.Generation + 1)})
	}
	keys := make([]string, 0, len(run.Attributes))
	for k := range run.Attributes {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for i, k := range keys {
		if i == 4 {
			m = append(m, metaView{After: fmt.Sprintf("and %s", plural(len(keys)-4, "other attribute"))})
			break
		}
		m = append(m, metaView{Before: k, Value: h.redact(run.Attributes[k])})
	}
	return m
}

// runButtons are the acts that a run is open to and its viewer may do. Resume is
// offered only for a failure that is recoverable (and for a run that is parked);
// the API takes it for others, too.
func (h *handler) runButtons(r *http.Request, o *outline.Outline, q *runQuery) []buttonView {
	run := &o.Run
	var out []buttonView
	add := func(offered bool, a Action, b buttonView) {
		if offered && cannot(b.Panel, o) == "" && h.may(r, a, run.ID) == nil {
			b.Pressed = q.panel == b.Panel
			out = append(out, b)
		}
	}
	abandoned := (run.Status == store.Running || run.Status == store.Resuming) && !o.Attended
	add(run.Status == store.Failed && run.Recoverable || run.Status == store.Interrupted && run.Code != "" && (o.Served || run.Code != store.CodeNotRegistered) || abandoned, ActionResume,
		buttonView{Panel: "resume", Label: "Resume", Class: "pri", Icon: "retry"})
	add(run.Status != store.Pending, ActionFork, buttonView{Panel: "fork", Label: "Fork", Icon: "branch"})
	add(run.Status == store.Failed && o.Row(q.step) != nil && isEditable(o.Row(q.step)), ActionEdit, buttonView{Panel: "edit", Label: "Edit…", Icon: "pencil"})
	add(run.Paused, ActionUnpause, buttonView{Panel: "unpause", Label: "Unpause", Class: "pri", Icon: "running"})
	add(run.Status != store.Interrupted, ActionPause, buttonView{Panel: "pause", Label: "Pause"})
	add(!run.CancelAsked, ActionCancel, buttonView{Panel: "cancel", Label: "Cancel", Class: "no", Icon: "cancelled"})
	return out
}

// fillAsk makes the form that answers what the run asks of a person.
func (h *handler) fillAsk(r *http.Request, v *runView, o *outline.Outline) error {
	if o.Current == nil || o.Current.Kind != outline.Approval || o.Run.Status.Terminal() || o.Run.Paused {
		return nil
	}
	others := 0
	for _, w := range o.Waits {
		if w.Kind == outline.Approval && w != o.Current {
			others++
		}
	}
	if prompt := h.redact(o.Current.Prompt); prompt != "" && !strings.Contains(h.redact(o.Verdict.Head.String()), prompt) {
		v.Prompt = prompt
	}
	v.Ask = &askView{
		Key: o.Current.Key, User: h.user(r), May: h.may(r, ActionAnswer, v.ID) == nil, Action: v.URL + "/do/answer",
		API: v.API, Command: command("approve", v.ID).String(), Others: others,
	}
	return nil
}

// rowsPage answers with lines of the timeline behind the first ones.
func (h *handler) rowsPage(w http.ResponseWriter, r *http.Request) error {
	o, err := h.tell(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	values := r.URL.Query()
	from, _ := strconv.Atoi(values.Get("from"))
	n, _ := strconv.Atoi(values.Get("n"))
	q := parseRunQuery(h.options.Prefix, values, o)
	if q.step == "" && o.Current != nil {
		q.step = o.Current.Key
	}
	base := h.runURL(o.Run.ID)
	t := newTimeline(o, q, func(v url.Values) string { return base + "?" + v.Encode() }, h.redact)
	from = min(max(from, 0), len(t.lines))
	lines := t.lines[from:min(len(t.lines), from+min(max(n, 1), firstRows))]
	w.Header().Set("X-Total-Rows", strconv.Itoa(len(t.lines)))
	return writePage(w, http.StatusOK, "lines", lines)
}

// A shellCommand is a command of the durable tool on one run, to be pasted.
type shellCommand struct{ name, id, flags string }

func command(name, id string) shellCommand { return shellCommand{name: name, id: id} }

// flag adds a flag and its value.
func (c *shellCommand) flag(words ...string) {
	c.flags += " " + words[0]
	for _, w := range words[1:] {
		c.flags += " " + shellQuote(w)
	}
}

// String puts an id that could be taken for a flag behind "--", at the end.
func (c shellCommand) String() string {
	switch {
	case c.name == "":
		return ""
	case strings.HasPrefix(c.id, "-"):
		return "durable " + c.name + c.flags + " -- " + shellQuote(c.id)
	}
	return "durable " + c.name + " " + shellQuote(c.id) + c.flags
}

// shellQuote quotes a word for a shell, where it needs that.
func shellQuote(s string) string {
	plain := s != "" && !strings.HasPrefix(s, "-") && strings.IndexFunc(s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./:@%+=,", c))
	}) < 0
	if plain {
		return s
	}
	if visible.Line(s) != s {
		// What is shown acts nowhere, and makes the same word where it is pasted.
		var b strings.Builder
		for _, c := range []byte(s) {
			fmt.Fprintf(&b, `\0%03o`, c)
		}
		return `"$(printf '%b' '` + b.String() + `')"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
