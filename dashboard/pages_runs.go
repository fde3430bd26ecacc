package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// runsView is the list of runs and the cards above it.
type runsView struct {
	Total   int64
	Cards   cardsView
	Tabs    []tabView
	Tokens  []tokenView
	Query   string // what the field holds
	Problem string // what is wrong with the filter
	Rows    []runRow
	Older   string
	Newest  string // address of the first page, if this is another one
	Empty   bool   // there is no run at all
	NoMatch []dropView
	Clear   string
	stuck   map[string]bool
}

type tabView struct {
	Word    string
	Icon    icon
	Count   int64
	URL     string
	Current bool
}

// tokenView is a filter and the address without it.
type tokenView struct{ Text, Without string }

// dropView says what is found without one of the filters.
type dropView struct {
	Text, URL string
	Count     int64
}

// cardsView is what people come for, before the list.
type cardsView struct {
	Approvals     []waitRow
	MoreApprovals int
	OtherWaits    int64
	Stuck         []stuckView
	MoreStuck     int
	Failed        int64
	Recoverable   int
	Alike         int
	AlikeError    string
	AlikeURL      string
	FailedURL     string
	Ready         string // why not; empty: it is
	Processes     string
	Executing     int
	Backlog       int64
	Beat          string
}

type waitRow struct {
	API                                 string
	RunID, URL, Prompt, Key, Age, Until string
	Workflow                            string
}

// runRow is a line of the list.
type runRow struct {
	ID, URL, Workflow string
	Status            statusView
	Where, Detail     string
	Key               string
	Strip             []stripBar
	Since             string
	Process           string
}

// stripBar is a mark of a run's shape, in px of 186.
type stripBar struct {
	Shape, Class string
	X, W         int
}

// runsPerPage is how many runs a page lists; the events at the end of each are
// read for its shape.
const runsPerPage = 25

func (h *handler) runsPage(w http.ResponseWriter, r *http.Request) error {
	v := &runsView{Clear: h.options.Prefix + "/"}
	l := layout{Title: "Runs", Nav: "runs", Body: v, Stream: h.options.Prefix + "/api/stream"}
	values := r.URL.Query()
	query := strings.TrimSpace(strings.Join(values["q"], " "))
	if add := strings.TrimSpace(values.Get("add")); add != "" {
		query = strings.TrimSpace(query + " " + add)
	}
	v.Query = query
	terms := parseTerms(query)
	ask, err := terms.listing(time.Now())
	if err != nil {
		v.Problem, ask = err.Error(), &listing{filter: store.Filter{WithLast: true}}
	}
	ask.filter.Limit, ask.filter.After = runsPerPage, values.Get("after")
	if err := h.cards(r.Context(), v, &l); err != nil {
		return err
	}
	if err := h.tabs(r.Context(), v, terms, ask); err != nil {
		return err
	}
	v.Tokens = h.tokens(terms)
	rows, next, err := h.matching(r.Context(), ask)
	if err != nil {
		return err
	}
	executors, err := h.eng.Store().Executors(r.Context())
	if err != nil {
		return fmt.Errorf("dashboard: listing processes: %w", err)
	}
	for i := range rows {
		row := h.runRow(r.Context(), &rows[i], executors)
		if v.stuck[rows[i].ID] && rows[i].Status != store.Failed && !rows[i].Paused {
			row.Status = statusView{"fail", "stuck", "Stuck"}
		}
		v.Rows = append(v.Rows, row)
	}
	if next != "" {
		v.Older = h.listURL(query) + sep(query) + "after=" + url.QueryEscape(next)
	}
	if values.Has("after") {
		v.Newest = h.listURL(query)
	}
	if len(v.Rows) == 0 && v.Problem == "" {
		if err := h.nothing(r.Context(), v, terms); err != nil {
			return err
		}
	}
	return h.render(w, r, http.StatusOK, "runs", l)
}

func (h *handler) listURL(query string) string {
	if query == "" {
		return h.options.Prefix + "/"
	}
	return h.options.Prefix + "/?q=" + url.QueryEscape(query)
}

func sep(query string) string {
	if query == "" {
		return "?"
	}
	return "&"
}

// matching reads a page of rows, as the API does.
func (h *handler) matching(ctx context.Context, l *listing) (rows []store.Run, next string, err error) {
	f := l.filter
	for scanned := 0; ; {
		p, err := h.eng.List(ctx, f)
		if err != nil {
			return nil, "", err
		}
		for i := range p.Runs {
			if l.match(&p.Runs[i]) {
				rows = append(rows, p.Runs[i])
			}
		}
		scanned += len(p.Runs)
		next, f.After = p.Next, p.Next
		if next == "" || !l.scans() || len(rows) >= l.filter.Limit || scanned >= maxScanned {
			return rows, next, nil
		}
	}
}

// terms are the tokens of a query: "workflow:checkout status:failed order-4".
type terms []string

func parseTerms(query string) terms { return strings.Fields(query) }

// names that stand before a colon, and what they are to the API.
var termNames = map[string]string{
	"workflow": "workflow", "version": "version", "status": "status", "code": "code", "queue": "queue", "parent": "parent",
	"key": "key", "error": "error", "since": "since", "until": "until", "prefix": "prefix", "owner": "owner",
}

// split takes a term apart; a term without a known name is part of an id.
func (ts terms) split(t string) (name, value string) {
	if name, value, ok := strings.Cut(t, ":"); ok && termNames[name] != "" {
		return name, value
	}
	if strings.Contains(t, "=") {
		return "attribute", t
	}
	return "q", t
}

// listing makes of the terms what the API would of its parameters.
func (ts terms) listing(now time.Time) (*listing, error) {
	values := url.Values{}
	for _, t := range ts {
		name, value := ts.split(t)
		values.Add(name, value)
	}
	return parseListing(values, now)
}

// without returns the query without terms of a name.
func (ts terms) without(name string) string {
	var kept []string
	for _, t := range ts {
		if n, _ := ts.split(t); n != name {
			kept = append(kept, t)
		}
	}
	return strings.Join(kept, " ")
}

func (h *handler) tokens(ts terms) []tokenView {
	var out []tokenView
	for i, t := range ts {
		rest := slices.Concat(ts[:i:i], ts[i+1:])
		out = append(out, tokenView{Text: t, Without: h.listURL(strings.Join(rest, " "))})
	}
	return out
}

// tabs count by status what the rest of the filter matches.
func (h *handler) tabs(ctx context.Context, v *runsView, ts terms, ask *listing) error {
	f := ask.filter
	f.Statuses, f.After, f.WithLast = nil, "", false
	counts, err := h.eng.Store().Count(ctx, f, store.ByStatus)
	if err != nil {
		return fmt.Errorf("dashboard: counting runs: %w", err)
	}
	for _, n := range counts {
		v.Total += n
	}
	rest := ts.without("status")
	v.Tabs = append(v.Tabs, tabView{Word: "All", Count: v.Total, URL: h.listURL(rest), Current: len(ask.filter.Statuses) == 0})
	for _, s := range []store.Status{store.Running, store.Waiting, store.Failed, store.Resuming, store.Interrupted, store.Pending, store.Completed, store.Cancelled} {
		view := statusViews[s]
		if s == store.Failed {
			view.Icon = "recoverable"
		}
		v.Tabs = append(v.Tabs, tabView{
			Word: view.Word, Icon: icon{view.Icon, "c-" + view.Class}, Count: counts[string(s)], URL: h.listURL(strings.TrimSpace("status:" + string(s) + " " + rest)),
			Current: len(ask.filter.Statuses) == 1 && ask.filter.Statuses[0] == s,
		})
	}
	return nil
}

// nothing says why the list is empty: there is no run, or what dropping one of
// the filters would find.
func (h *handler) nothing(ctx context.Context, v *runsView, ts terms) error {
	if len(ts) == 0 {
		v.Empty = v.Newest == ""
		return nil
	}
	for i := range ts {
		rest := slices.Concat(ts[:i:i], ts[i+1:])
		ask, err := rest.listing(time.Now())
		if err != nil {
			continue
		}
		n, err := h.eng.Store().Count(ctx, ask.filter, "")
		if err != nil {
			return fmt.Errorf("dashboard: counting runs: %w", err)
		}
		if n[""] > 0 && !ask.scans() {
			v.NoMatch = append(v.NoMatch, dropView{Text: ts[i], URL: h.listURL(strings.Join(rest, " ")), Count: n[""]})
		}
	}
	return nil
}

// cards fills what stands above the list, and the numbers of the navigation.
func (h *handler) cards(ctx context.Context, v *runsView, l *layout) error {
	c := &v.Cards
	approvals, err := h.asked(ctx)
	if err != nil {
		return err
	}
	waiting, err := h.eng.Store().Count(ctx, store.Filter{Statuses: []store.Status{store.Waiting}}, "")
	if err != nil {
		return fmt.Errorf("dashboard: counting runs: %w", err)
	}
	asked := map[string]bool{}
	for i := range approvals {
		asked[approvals[i].RunID] = true
	}
	c.OtherWaits = max(waiting[""]-int64(len(asked)), 0)
	for i := range approvals[:min(len(approvals), 3)] {
		c.Approvals = append(c.Approvals, h.waitRow(&approvals[i]))
	}
	l.Approvals, c.MoreApprovals = len(approvals), max(len(approvals)-3, 0)

	stuck, err := h.eng.Stuck(ctx, 100)
	if err != nil {
		return err
	}
	v.stuck = map[string]bool{}
	for i := range stuck {
		v.stuck[stuck[i].RunID] = true
	}
	for i := range stuck[:min(len(stuck), 2)] {
		c.Stuck = append(c.Stuck, h.stuckRow(&stuck[i]))
	}
	l.Stuck, c.MoreStuck = len(stuck), max(len(stuck)-2, 0)
	if err := h.failures(ctx, c); err != nil {
		return err
	}
	return h.healthCard(ctx, c)
}

// failures groups what failed in the last day by its error.
func (h *handler) failures(ctx context.Context, c *cardsView) error {
	f := store.Filter{Statuses: []store.Status{store.Failed}, EndedFrom: now().Add(-24 * time.Hour)}
	n, err := h.eng.Store().Count(ctx, f, "")
	if err != nil {
		return fmt.Errorf("dashboard: counting failures: %w", err)
	}
	c.Failed, c.FailedURL = n[""], h.listURL("status:failed")
	if c.Failed == 0 {
		return nil
	}
	f.Limit = 200
	p, err := h.eng.List(ctx, f)
	if err != nil {
		return err
	}
	alike := map[string]int{}
	for i := range p.Runs {
		if p.Runs[i].Recoverable {
			c.Recoverable++
		}
		alike[outline.OneLine(p.Runs[i].Reason, 200)]++
	}
	for reason, n := range alike {
		if n > c.Alike || n == c.Alike && cmp.Compare(reason, c.AlikeError) < 0 {
			c.Alike, c.AlikeError = n, reason
		}
	}
	// A word of the error finds them again: filters are words.
	longest := ""
	for _, word := range strings.Fields(c.AlikeError) {
		if word = strings.Trim(word, ".,:;"); len(word) > len(longest) && !strings.ContainsAny(word, ":=") {
			longest = word
		}
	}
	c.AlikeURL = h.listURL("status:failed error:" + longest)
	c.AlikeError = h.redact(c.AlikeError)
	return nil
}

func (h *handler) healthCard(ctx context.Context, c *cardsView) error {
	health, err := h.eng.Health(ctx)
	if err != nil {
		return err
	}
	executors, err := h.eng.Store().Executors(ctx)
	if err != nil {
		return fmt.Errorf("dashboard: listing processes: %w", err)
	}
	live := 0
	for _, x := range executors {
		if x.Live {
			live++
		}
	}
	c.Processes = fmt.Sprintf("%d of %d", live, len(executors))
	c.Executing, c.Backlog, c.Beat = health.Executing, health.Backlog, outline.About(health.BeatAge)
	if err := health.Ready(); err != nil {
		c.Ready = err.Error()
	}
	return nil
}

func (h *handler) waitRow(a *durable.Approval) waitRow {
	at := now()
	w := waitRow{API: h.options.Prefix + "/api/runs/" + url.PathEscape(a.RunID), RunID: a.RunID, URL: h.runURL(a.RunID), Prompt: h.redact(outline.OneLine(a.Prompt, 300)), Key: a.Key, Age: outline.About(at.Sub(a.AskedAt)), Workflow: a.Workflow}
	if a.Until != 0 {
		w.Until = outline.Clock(a.Until, at, zone)
	}
	return w
}

func (h *handler) stuckRow(s *durable.Stuck) stuckView {
	out := stuckView{Stuck: *s, URL: h.runURL(s.RunID)}
	out.Reason = h.redact(s.Reason)
	return out
}

// runRow tells of a run in a line: where it is, and its shape. The newest events
// tell that; a history that cannot be read leaves the row to speak.
func (h *handler) runRow(ctx context.Context, row *store.Run, executors []store.Executor) runRow {
	at := now()
	v := runRow{ID: row.ID, URL: h.runURL(row.ID), Workflow: strings.TrimSpace(row.Workflow + " " + row.Version), Status: statusOf(row), Process: "none"}
	since := cmp.Or(row.EndedAt, row.UpdatedAt)
	v.Since = outline.About(at.Sub(since))
	for i := range executors {
		if executors[i].ID == row.Owner && row.Owner != "" {
			v.Process = executors[i].Name
		}
	}
	hist, err := h.eng.Store().Load(ctx, row.ID, store.Cursor{Tail: 24, AfterMessage: 1<<63 - 1})
	if err == nil {
		var o *outline.Outline
		if executors == nil {
			executors = []store.Executor{}
		}
		if o, err = outline.Of(outline.Input{Run: hist.Run, Branches: hist.Branches, Executors: executors, Now: at, Zone: zone}, hist.Events); err == nil {
			v.Strip = strip(o)
			h.where(&v, o)
			if n := len(o.Lives); n > 0 && v.Process == "none" && row.Status.Terminal() {
				v.Process = o.Lives[n-1].Name
			}
		}
	}
	if err != nil {
		v.Where, v.Detail = "its history cannot be read", h.redact(err.Error())
	}
	return v
}

// where says in two lines where a run is.
func (h *handler) where(v *runRow, o *outline.Outline) {
	r := o.Current
	if r != nil {
		v.Key = r.Key
	}
	redacted := func(s string, n int) string { return h.redact(outline.OneLine(s, n)) }
	switch {
	case o.Run.Status == store.Failed:
		v.Where = redacted(o.Verdict.Error, 140)
		v.Detail = "final"
		if o.Run.Recoverable {
			v.Detail = "can be resumed"
		}
		if r != nil && len(r.Attempts) > 1 {
			v.Detail = fmt.Sprintf("attempt %d of %d · %s", r.Attempts[len(r.Attempts)-1].N, max(r.Max, r.Attempts[len(r.Attempts)-1].N), v.Detail)
		}
	case r != nil && r.Kind == outline.Approval && r.State == outline.Waiting:
		v.Where = redacted(r.Prompt, 140)
		v.Detail = "asked " + outline.About(o.Now.Sub(r.Begin)) + " ago"
		if r.Until != 0 {
			v.Detail += " · times out " + outline.Clock(r.Until, o.Now, zone)
		}
	case r != nil && r.State == outline.Backoff:
		v.Where = r.Label() + ", next try in " + outline.About(r.NextAt.Sub(o.Now)+time.Second)
		v.Detail = "last: " + redacted(o.Verdict.Error, 140)
	case r != nil && (r.State == outline.Running || r.State == outline.Stopped) && len(r.Attempts) > 0:
		v.Where = r.Label()
		v.Detail = "last: " + redacted(o.Verdict.Error, 140)
	case r != nil && (r.Kind == outline.Map || r.Kind == outline.Branch):
		v.Where, v.Detail = string(r.Kind)+", "+string(r.State), plural(o.Steps, "step")+" done"
	case r != nil && (r.State == outline.Waiting || r.State == outline.Running):
		v.Where = string(r.Kind) + " since " + outline.Clock(cmp.Or(r.Begin, o.LastAt), o.Now, zone)
		if r.Kind == outline.Timer {
			v.Where = "until " + outline.Clock(r.Until, o.Now, zone)
		}
		v.Detail = plural(o.Steps, "step") + " done"
	default:
		v.Key = ""
		v.Where = h.redact(outline.OneLine(o.Verdict.Head.String(), 140))
		v.Detail = plural(o.Steps, "step") + " done"
	}
}

// strip draws the shape of a run: its last calls in order, with what went wrong
// on the way, without regard to time.
func strip(o *outline.Outline) []stripBar {
	type mark struct {
		at store.Time
		b  stripBar
	}
	var marks []mark
	for i := range o.Lives {
		if o.Lives[i].How == outline.Lost {
			marks = append(marks, mark{o.Lives[i].End, stripBar{"gap", "gap", 0, 14}})
		}
	}
	for _, l := range o.Lanes {
		if !l.Root && l.At != 0 {
			marks = append(marks, mark{l.At, stripBar{"cut", "cut", 0, 4}})
		}
		outline.Each(l.Rows, func(r *outline.Row) bool {
			marks = append(marks, stripRow(r, func(at store.Time, b stripBar) mark { return mark{at, b} })...)
			return true
		})
	}
	slices.SortStableFunc(marks, func(a, b mark) int { return int(a.at - b.at) })
	total := 0
	for _, m := range marks {
		total += m.b.W + 2
	}
	for len(marks) > 0 && total > 186 {
		total -= marks[0].b.W + 2
		marks = marks[1:]
	}
	x := 0
	out := make([]stripBar, len(marks))
	for i, m := range marks {
		m.b.X = x
		out[i] = m.b
		x += m.b.W + 2
	}
	return out
}

func stripRow[M any](r *outline.Row, at func(store.Time, stripBar) M) []M {
	var out []M
	if len(r.Rows) > 0 || r.Seq == 0 {
		return nil
	}
	switch r.Kind {
	case outline.Timer, outline.Wait, outline.Approval, outline.Request, outline.Child:
		class := "wto"
		if r.State == outline.Waiting {
			class = "wt"
		}
		return append(out, at(r.Begin, stripBar{"hollow", class, 0, 22}))
	}
	for _, a := range r.Attempts {
		switch a.State {
		case outline.AttemptFailed:
			out = append(out, at(a.End, stripBar{"fail", "bad", 0, 12}))
		case outline.AttemptDone:
			out = append(out, at(a.End, stripBar{"box", "ok", 0, widthOf(a.Took)}))
		}
	}
	if len(r.Attempts) == 0 && r.Outcome != 0 {
		class := "ok"
		if r.State == outline.Failed {
			class = "bad"
		}
		out = append(out, at(r.End, stripBar{"box", class, 0, 5}))
	}
	if r.State == outline.Running || r.State == outline.Backoff {
		out = append(out, at(1<<62, stripBar{"going", "go", 0, 9}))
	}
	return out
}

// widthOf grows with the time a step took, slowly.
func widthOf(d time.Duration) int {
	w := 5
	for limit := 50 * time.Millisecond; d > limit && w < 30; limit *= 4 {
		w += 4
	}
	return w
}
