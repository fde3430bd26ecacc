package dashboard

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/internal/visible"
	"github.com/holdfast-dev/holdfast/store"
)

// The pages. Each is complete when it comes from the server and works without a
// script: what can be folded, filtered or chosen is an address, what acts is a
// form. The script (assets/) only follows those addresses without a reload, asks
// for the same page again when the stream says that something has happened, and
// puts in what differs. So there is one place where a run becomes HTML: here,
// through html/template.

//go:embed templates/*.html
var templateFiles embed.FS

var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"icon":   func(name, class string) icon { return icon{name, class} },
		"asset":  assetURL,
		"plural": func(n int, one string) string { return plural(n, one) },
		"num":    func(n int64) string { return number(n) },
		"odd":    func(n int) bool { return n%2 == 1 },
		"prev":   func(n int) int { return n - 1 },
		"len2":   func(shown []waitRow, more int) int { return len(shown) + more },
		"len3":   func(shown []stuckView, more int) int { return len(shown) + more },
	}).ParseFS(templateFiles, "templates/*.html"))
})

// pageRoutes are the routes of the pages.
func (h *handler) pageRoutes() []route {
	page := func(method, pattern string, a Action, run string, serve func(http.ResponseWriter, *http.Request) error) route {
		return route{method: method, pattern: pattern, action: a, run: run, page: true, serve: serve}
	}
	routes := []route{
		page("GET", "/{$}", ActionList, "", h.runsPage),
		page("GET", "/waiting", ActionList, "", h.waitingPage),
		page("GET", "/stuck", ActionList, "", h.stuckPage),
		page("GET", "/history", ActionList, "", h.historyPage),
		page("GET", "/bulk", ActionList, "", h.bulkPage),
		page("POST", "/bulk/resume", ActionResume, "", h.bulkDo(bulkActs["resume"])),
		page("POST", "/bulk/cancel", ActionCancel, "", h.bulkDo(bulkActs["cancel"])),
		page("GET", "/go", ActionList, "", h.goToRun),
		// The page of a run is at /runs/{id}, an address of the API, too.
		page("GET", "/runs/{id}/rows", ActionRead, "id", h.rowsPage),
		page("GET", "/assets/{name}", "", "", h.asset),
	}
	for _, a := range h.pageActs() {
		routes = append(routes, page("POST", "/runs/{id}/do/"+a.name, a.action, "id", h.act(a)))
	}
	return routes
}

// wantsPage reports whether an address that is both, a page and JSON, was asked
// for by a browser.
func wantsPage(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded")
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// A layout is what is around every page.
type layout struct {
	Title, Nav string
	Prefix     string
	Approvals  int
	Stuck      int
	Archive    bool
	Stream     string // address of the stream that says when to look again; empty: none
	Ended      bool   // nothing will happen to what the page shows
	Zone       string
	Notice     string // what an act came to
	Body       any
}

// render answers with a page. Nothing is written before the page is complete, so
// an error becomes an error page.
func (h *handler) render(w http.ResponseWriter, r *http.Request, status int, name string, l layout) error {
	l.Prefix = h.options.Prefix
	l.Archive = h.options.Archive != nil
	l.Zone, _ = time.Now().In(zone).Zone()
	if l.Notice == "" {
		l.Notice = notices[r.URL.Query().Get("done")]
	}
	return writePage(w, status, name, l)
}

// maxAnswer bounds a page and an answer of the API, in bytes. What a route makes is
// far smaller by its own bounds; this one keeps a route that has none from filling
// the memory of server and browser. Downloads are as large as what is recorded.
const maxAnswer = 2 << 20

// A tooLargeError says that an answer would be beyond maxAnswer.
type tooLargeError struct{ what string }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("%s would have more than %d MiB", e.what, maxAnswer>>20)
}

// page is what a template has written, maxAnswer bytes at most.
type page struct {
	bytes.Buffer
	name string
}

func (p *page) Write(b []byte) (int, error) {
	if p.Len()+len(b) > maxAnswer {
		return 0, &tooLargeError{"the page " + p.name}
	}
	return p.Buffer.Write(b)
}

// writePage is the one place where HTML leaves: bounded, and with nothing in it that
// acts on a reader. Nothing is written before it is complete.
func writePage(w http.ResponseWriter, status int, name string, data any) error {
	b := page{name: name}
	if err := templates().ExecuteTemplate(&b, name, data); err != nil {
		return fmt.Errorf("dashboard: page %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(visible.HTML(b.Bytes()))
	return nil
}

// badges fills in the numbers of the navigation.
func (h *handler) badges(ctx context.Context, l *layout) error {
	asking, err := h.asking(ctx)
	if err != nil {
		return err
	}
	l.Approvals = int(asking)
	stuck, err := h.eng.Stuck(ctx, 100)
	if err != nil {
		return err
	}
	l.Stuck = len(stuck)
	return nil
}

// pageProblem answers with an error as a page; false: it has not.
func (h *handler) pageProblem(w http.ResponseWriter, r *http.Request, status int, p client.Problem) bool {
	if !wantsPage(r) && r.Header.Get("Accept") != "" && !strings.Contains(r.Header.Get("Accept"), "*/*") {
		return false
	}
	back := h.options.Prefix + "/"
	if id := r.PathValue("id"); id != "" && status != http.StatusNotFound {
		back = h.runURL(id)
	}
	l := layout{Title: p.Error.Message, Body: problemView{Status: status, Problem: p, Back: back}}
	if status < http.StatusInternalServerError && h.may(r, ActionList, "") == nil {
		if err := h.badges(r.Context(), &l); err != nil {
			l.Approvals, l.Stuck = 0, 0 // the page is about another error
		}
	}
	return h.render(w, r, status, "problem", l) == nil
}

type problemView struct {
	Status int
	client.Problem
	Back string
}

func (h *handler) runURL(id string) string { return h.options.Prefix + "/runs/" + segment(id) }

// segment is an id as one segment of an address; see plainIDs.
func segment(id string) string { return client.EscapeID(id) }

// goToRun leads from the field in the head to a run, or to the list of those
// whose ids begin with what was typed.
func (h *handler) goToRun(w http.ResponseWriter, r *http.Request) error {
	q := strings.TrimSpace(r.URL.Query().Get("q"))
	if len(q) > store.MaxRunID {
		return badRequest("what was typed has %d bytes: no id of a run has more than %d", len(q), store.MaxRunID)
	}
	to := h.options.Prefix + "/?q=" + url.QueryEscape(q)
	if q != "" {
		if _, err := h.eng.Store().Load(r.Context(), q, store.Cursor{NoEvents: true, AfterMessage: 1<<63 - 1}); err == nil {
			to = h.runURL(q)
		}
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// tell reads a run and tells its story.
func (h *handler) tell(ctx context.Context, id string) (*outline.Outline, error) {
	// The row before the executors: one that took the run in between is known.
	hist, err := h.eng.Store().Load(ctx, id, store.Cursor{All: true})
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	executors, err := h.eng.Store().Executors(ctx)
	if err != nil {
		return nil, fmt.Errorf("dashboard: listing processes: %w", err)
	}
	o, err := h.outlineOf(hist, executors)
	if err != nil {
		return nil, fmt.Errorf("run %s: reading its history: %w", id, err)
	}
	return o, nil
}

// outlineOf tells the story of what was read of a run.
func (h *handler) outlineOf(hist *store.History, executors []store.Executor) (*outline.Outline, error) {
	if executors == nil {
		executors = []store.Executor{} // it is known that there are none
	}
	// Redacted before the story is told: that cuts texts, and what is left of a secret
	// is not known for one.
	run, branches := hist.Run, slices.Clone(hist.Branches)
	run.Reason = h.redact(run.Reason)
	for i := range branches {
		branches[i].Reason = h.redact(branches[i].Reason)
	}
	return outline.Of(outline.Input{Run: run, Executing: h.executing(&hist.Run), Branches: branches, Executors: executors, Now: now(), Zone: zone}, h.redactEvents(hist.Events))
}

// executing is the key of the step that this process executes for a run.
func (h *handler) executing(run *store.Run) string {
	if run.Owner != h.eng.ID() {
		return ""
	}
	key, _ := h.eng.Executing(run.ID)
	return key
}

var errNotHere = errors.New("there is no such page")
