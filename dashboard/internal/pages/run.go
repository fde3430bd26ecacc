package pages

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/outline"
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
	Status   view.Status
	Meta     []metaView
	Failed   bool
	Buttons  []buttonView
	Step     string // that the address names: a panel is about it
	Tone     string
	Icon     view.Icon
	Head     view.Text
	Error    string
	More     []view.Text
	Prompt   string // of what is asked, if Head does not have all of it
	Ask      *askView
	Axis     []view.Bar
	Life     []view.Bar
	LifeSays string
	Lives    int
	Summary  string
	Lines    []view.Line
	Total    int
	RowsURL  string // of the rows that the script puts in; empty: this is not the first page
	// Addresses of the other rows, for use without a script; and which of all rows have failed.
	RowsBefore, RowsAfter, RowsSelected string
	SelectedRow                         int // its number, if it is not among Lines
	FailedRows                          []string
	Find                                string
	Toggles                             []view.Toggle
	Inspect                             *inspectView
	Panel                               *panelView
	eventsView
	Hidden []string // of the find form: names and values in turn
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

// Show serves the page of a run.
func (rp *RunPage) Show(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	o, err := rp.read.Outline(r.Context(), id)
	if err != nil {
		return err
	}
	q := view.ParseQuery(rp.Site.Prefix, r.URL.Query(), o)
	v, err := rp.viewRun(r, o, q)
	if err != nil {
		return err
	}
	l := layout{Title: id, Nav: "runs", Body: v, Stream: rp.Site.Prefix + "/api/runs/" + client.EscapeID(id) + "/stream"}
	switch o.Run.Status {
	case store.Completed, store.Cancelled:
		l.Stream, l.Ended = "", true
	}
	if err := rp.badges(r.Context(), &l); err != nil {
		return err
	}
	return rp.render(w, r, http.StatusOK, "run", l)
}

func (rp *RunPage) viewRun(r *http.Request, o *outline.Outline, q *view.Query) (*runView, error) {
	id := o.Run.ID
	v := &runView{
		O: o, ID: id, URL: rp.Site.Run(id), API: rp.Site.Prefix + "/api/runs/" + client.EscapeID(id),
		Workflow: o.Run.Workflow, Version: o.Run.Version, Status: view.StatusOf(&o.Run), Find: q.Find,
		Tone: string(o.Verdict.Tone), Icon: view.ToneIcons[o.Verdict.Tone], Head: rp.Redact.Sentence(o.Verdict.Head), Error: rp.Redact.Text(o.Verdict.Error),
	}
	if o.Run.Status == store.Failed {
		v.Failed = true
		v.Status.Word = view.HowFailed(o)
		if !o.Run.Recoverable {
			v.Icon = view.Icon{Name: "failed", Class: "c-fail"}
		}
	}
	if view.IsStuck(o) {
		v.Status = view.Status{Class: "fail", Icon: "stuck", Word: "Stuck"} // as in the list
	}
	for _, m := range o.Verdict.More {
		v.More = append(v.More, rp.Redact.Sentence(m))
	}
	others, err := rp.alike(r.Context(), o)
	if err != nil {
		return nil, err
	}
	if others != nil {
		v.More = append(v.More, others)
	}
	if q.Step == "" && o.Current != nil {
		q.Step = o.Current.Key
	}
	link := func(values url.Values) string {
		if len(values) == 0 {
			return v.URL
		}
		return v.URL + "?" + values.Encode()
	}
	v.Meta = rp.runMeta(o)
	v.Buttons, v.Step = rp.runButtons(r, o, q), q.Values.Get("step")
	rp.fillTimeline(v, o, q, link)
	if err := rp.fillAsk(r, v, o); err != nil {
		return nil, err
	}
	panel, err := rp.panel(r, o, q, link)
	if err != nil {
		return nil, err
	}
	v.Panel = panel
	if v.Inspect, err = rp.inspect(r, o, q, link); err != nil {
		return nil, err
	}
	v.eventsView, err = rp.events(r.Context(), o, q, link)
	return v, err
}

// maxFailedRows bounds the failures that the key for the next failure can reach.
const maxFailedRows = 500

func (rp *RunPage) fillTimeline(v *runView, o *outline.Outline, q *view.Query, link func(url.Values) string) {
	t := view.NewTimeline(o, q, link, rp.Redact.Text)
	v.Axis, v.Life, v.LifeSays, v.Lives = t.AxisBars(), t.LifeBars(), t.LifeSentence(), len(o.Lives)
	v.Total = len(t.Lines)
	from, _ := strconv.Atoi(q.Values.Get("from"))
	from = max(min(from, len(t.Lines)-1), 0) / view.FirstRows * view.FirstRows
	v.Lines = t.Lines[from:min(len(t.Lines), from+view.FirstRows)]
	if from == 0 {
		v.RowsURL = v.URL + "/rows?" + q.With().Encode()
	}
	for i := range t.Lines {
		l := &t.Lines[i]
		if l.Selected && (i < from || i >= from+view.FirstRows) {
			v.SelectedRow, v.RowsSelected = l.N, link(q.With("from", strconv.Itoa(i)))
		}
		if l.Lane == nil && !l.Sub && l.Icon.Class == "c-fail" && len(v.FailedRows) < maxFailedRows {
			v.FailedRows = append(v.FailedRows, strconv.Itoa(l.N))
		}
	}
	if from > 0 {
		v.RowsBefore = link(q.With("from", strconv.Itoa(from-view.FirstRows)))
	}
	if from+view.FirstRows < len(t.Lines) {
		v.RowsAfter = link(q.With("from", strconv.Itoa(from+view.FirstRows)))
	}
	processes := map[string]bool{}
	for i := range o.Lives {
		processes[o.Lives[i].Executor] = true
	}
	v.Summary = count.Of(len(processes), "process")
	if n := len(o.Lanes); n > 1 {
		v.Summary += ", " + count.Of(n, "branch")
	}
	toggle := func(label, name, on string, wide bool) {
		t := view.Toggle{Label: label, On: q.Values.Get(name) == on, Wide: wide}
		next := on
		if t.On {
			next = ""
		}
		t.URL = link(q.With(name, next))
		v.Toggles = append(v.Toggles, t)
	}
	toggle("Fold idle time", "fold", "0", false)
	v.Toggles[0].On = !v.Toggles[0].On
	toggle("Failures only", "only", "failures", true)
	if len(o.Lanes) > 1 {
		toggle("This branch only", "branch", "current", true)
	}
	for _, z := range q.Zooms(o, q.Step) {
		z.URL = v.URL + "?" + z.URL
		v.Toggles = append(v.Toggles, z)
	}
	for name, values := range q.With("find", "", "step", "") {
		for _, value := range values {
			v.Hidden = append(v.Hidden, name, value)
		}
	}
}

func (rp *RunPage) runMeta(o *outline.Outline) []metaView {
	run := &o.Run
	m := []metaView{{Before: "started", Value: outline.Clock(o.Begin, o.Now, view.Zone)}}
	alive := outline.About(o.End.Sub(o.Begin))
	switch {
	case run.Status == store.Failed:
		m = append(m, metaView{Before: "failed", Value: outline.About(o.Now.Sub(run.EndedAt)), After: "ago"})
	case run.Status.Terminal():
		m = append(m, metaView{Before: "ended", Value: outline.About(o.Now.Sub(run.EndedAt)), After: "ago"}, metaView{Before: "took", Value: alive})
	default:
		m = append(m, metaView{Before: "alive", Value: alive}, metaView{Before: "active", Value: outline.Duration(o.Active)})
	}
	m = append(m, metaView{Value: count.Number(o.Steps), After: strings.TrimPrefix(count.Of(o.Steps, "step"), count.Number(o.Steps)+" ") + " done"})
	if o.FailedAttempts > 0 {
		m = append(m, metaView{Value: count.Number(o.FailedAttempts), After: strings.TrimPrefix(count.Of(o.FailedAttempts, "failed attempt"), count.Number(o.FailedAttempts)+" ")})
	}
	if n := len(o.Lives); n > 0 && o.Lives[n-1].How == outline.Alive {
		m = append(m, metaView{Before: "on", Value: o.Lives[n-1].Name})
	}
	if run.Parent != "" {
		m = append(m, metaView{Before: "child of", Value: run.Parent, URL: rp.Site.Run(run.Parent)})
	}
	if o.ForkedFrom != "" {
		m = append(m, metaView{Before: "forked from", Value: o.ForkedFrom, URL: rp.Site.Run(o.ForkedFrom)})
	}
	if run.Generation > 0 {
		m = append(m, metaView{Before: "generation", Value: count.Number(run.Generation + 1)})
	}
	keys := make([]string, 0, len(run.Attributes))
	for k := range run.Attributes {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for i, k := range keys {
		if i == 4 {
			m = append(m, metaView{After: fmt.Sprintf("and %s", count.Of(len(keys)-4, "other attribute"))})
			break
		}
		m = append(m, metaView{Before: k, Value: rp.Redact.Text(run.Attributes[k])})
	}
	return m
}

// runButtons returns the acts that are possible for the run and allowed for the viewer. Resume
// is offered for a recoverable failure, for a parked run and for one whose process is gone; the
// API resumes others, too.
func (rp *RunPage) runButtons(r *http.Request, o *outline.Outline, q *view.Query) []buttonView {
	run := &o.Run
	var out []buttonView
	add := func(offered bool, a string, b buttonView) {
		if offered && view.Cannot(b.Panel, o) == "" && rp.May(r, a, run.ID) == nil {
			b.Pressed = q.Panel == b.Panel
			out = append(out, b)
		}
	}
	abandoned := (run.Status == store.Running || run.Status == store.Resuming) && !o.Attended
	add(run.Status == store.Failed && run.Recoverable || run.Status == store.Interrupted && run.Code != "" && (o.Served || run.Code != store.CodeNotRegistered) || abandoned, web.ActionResume,
		buttonView{Panel: "resume", Label: "Resume", Class: "pri", Icon: "retry"})
	add(run.Status != store.Pending, web.ActionFork, buttonView{Panel: "fork", Label: "Fork", Icon: "branch"})
	add(run.Status == store.Failed && o.Row(q.Step) != nil && view.IsEditable(o.Row(q.Step)), web.ActionEdit, buttonView{Panel: "edit", Label: "Edit…", Icon: "pencil"})
	add(run.Paused, web.ActionUnpause, buttonView{Panel: "unpause", Label: "Unpause", Class: "pri", Icon: "running"})
	add(run.Status != store.Interrupted, web.ActionPause, buttonView{Panel: "pause", Label: "Pause"})
	add(!run.CancelAsked, web.ActionCancel, buttonView{Panel: "cancel", Label: "Cancel", Class: "no", Icon: "cancelled"})
	return out
}

// Rows answers with lines of the timeline after the first ones.
func (rp *RunPage) Rows(w http.ResponseWriter, r *http.Request) error {
	o, err := rp.read.Outline(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	values := r.URL.Query()
	from, _ := strconv.Atoi(values.Get("from"))
	n, _ := strconv.Atoi(values.Get("n"))
	q := view.ParseQuery(rp.Site.Prefix, values, o)
	if q.Step == "" && o.Current != nil {
		q.Step = o.Current.Key
	}
	base := rp.Site.Run(o.Run.ID)
	t := view.NewTimeline(o, q, func(v url.Values) string { return base + "?" + v.Encode() }, rp.Redact.Text)
	from = min(max(from, 0), len(t.Lines))
	lines := t.Lines[from:min(len(t.Lines), from+min(max(n, 1), view.FirstRows))]
	w.Header().Set("X-Total-Rows", strconv.Itoa(len(t.Lines)))
	return writePage(w, http.StatusOK, "lines", lines)
}
