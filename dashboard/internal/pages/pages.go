package pages

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/act"
	"github.com/holdfast-dev/holdfast/dashboard/internal/read"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/visible"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

//go:embed templates/*.html
var templateFiles embed.FS

var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"icon":   func(name, class string) view.Icon { return view.Icon{Name: name, Class: class} },
		"asset":  assetURL,
		"plural": func(n any, one string) string { return count.Of(reflect.ValueOf(n).Int(), one) },
		"verb":   func(n any, one, many string) string { return count.Verb(reflect.ValueOf(n).Int(), one, many) },
		"num":    func(n any) string { return count.Number(reflect.ValueOf(n).Int()) },
		"odd":    func(n int) bool { return n%2 == 1 },
		"prev":   func(n int) int { return n - 1 },
		"add":    func(a, b int) int { return a + b },
	}).ParseFS(templateFiles, "templates/*.html"))
})

// A Shell is what the pages have in common: the frame of each page, the error page, and
// the files that they need.
type Shell struct {
	*web.Env
	read    *read.Reader
	archive read.Archive // nil: there is none
}

// NewShell makes a Shell; archive may be nil.
func NewShell(env *web.Env, reader *read.Reader, archive read.Archive) *Shell {
	return &Shell{Env: env, read: reader, archive: archive}
}

// Lists are the pages of many runs.
type Lists struct {
	*Shell
	acts *act.Acts
}

// NewLists makes the pages of many runs.
func NewLists(shell *Shell, acts *act.Acts) *Lists { return &Lists{shell, acts} }

// RunPage is the page of one run, and the forms on it.
type RunPage struct {
	*Shell
	acts *act.Acts
}

// NewRunPage makes the page of one run.
func NewRunPage(shell *Shell, acts *act.Acts) *RunPage { return &RunPage{shell, acts} }

// A layout is the frame of every page.
type layout struct {
	Title, Nav string
	Prefix     string
	Approvals  int
	Stuck      int
	Archive    bool
	Queues     bool // there are some
	Schedules  bool
	Stream     string // address of the stream that says when to look again; empty: none
	Ended      bool   // nothing will happen to what the page shows
	Zone       string
	Notice     string // the outcome of an act
	Body       any
}

// notices are the only messages that a page may show about a finished act, whatever its
// address says.
var notices = map[string]string{
	"resume": "Resumed.", "cancel": "Cancelled.", "cancelling": "The cancel is recorded.", "pause": "Paused.", "unpause": "It goes on.", "approve": "Approved.", "reject": "Rejected.",
	"pauseschedule": "The schedule is paused.", "resumeschedule": "The schedule fires again.", "triggerschedule": "A run was started.", "backfillschedule": "The runs were started.", "deleteschedule": "The schedule was deleted. Its runs stay.",
	"pausequeue": "The queue is paused: its runs stay in line.", "resumequeue": "The queue goes on.",
	"fork": "Forked: this is the copy.", "jump": "Taken back.", "edit": "The result was replaced. Resume the run to go on with it.",
}

// render answers with a page. Nothing is written before the page is complete, so that an
// error becomes an error page.
func (sh *Shell) render(w http.ResponseWriter, r *http.Request, status int, name string, l layout) error {
	l.Prefix = sh.Site.Prefix
	l.Archive = sh.archive != nil
	l.Zone, _ = time.Now().In(view.Zone).Zone()
	if sh.May(r, web.ActionList, "") == nil {
		// An error is no reason to lose the page, which is about something else.
		l.Queues, _ = sh.read.UsesQueues(r.Context())
		l.Schedules, _ = sh.read.UsesSchedules(r.Context())
	}
	if l.Notice == "" {
		l.Notice = notices[r.URL.Query().Get("done")]
	}
	return writePage(w, status, name, l)
}

// page is the output of a template, at most MaxAnswer bytes.
type page struct {
	bytes.Buffer
	name string
}

func (p *page) Write(b []byte) (int, error) {
	if p.Len()+len(b) > web.MaxAnswer {
		return 0, &web.TooLargeError{What: "the page " + p.name}
	}
	return p.Buffer.Write(b)
}

// writePage is the only place that sends HTML: bounded, and without invisible characters
// that could mislead a reader. Nothing is written before the page is complete.
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
func (sh *Shell) badges(ctx context.Context, l *layout) error {
	asking, err := sh.read.Asking(ctx)
	if err != nil {
		return err
	}
	l.Approvals = int(asking)
	stuck, err := operate.On(sh.Engine).Stuck(ctx, 100)
	if err != nil {
		return err
	}
	l.Stuck = len(stuck)
	return nil
}

// ErrorPage answers with an error as a page. It returns false if it has not answered.
func (sh *Shell) ErrorPage(w http.ResponseWriter, r *http.Request, status int, p client.Problem) bool {
	if !web.WantsPage(r) && r.Header.Get("Accept") != "" && !strings.Contains(r.Header.Get("Accept"), "*/*") {
		return false
	}
	back := sh.Site.Prefix + "/"
	if id := r.PathValue("id"); id != "" && status != http.StatusNotFound {
		back = sh.Site.Run(id)
	}
	l := layout{Title: p.Error.Message, Body: problemView{Status: status, Problem: p, Back: back}}
	if status < http.StatusInternalServerError && sh.May(r, web.ActionList, "") == nil {
		if err := sh.badges(r.Context(), &l); err != nil {
			l.Approvals, l.Stuck = 0, 0 // the page is about another error
		}
	}
	return sh.render(w, r, status, "problem", l) == nil
}

type problemView struct {
	Status int
	client.Problem
	Back string
}

// GoTo leads from the field in the page's head to a run, or to the list of runs whose ids
// contain what was typed.
func (sh *Shell) GoTo(w http.ResponseWriter, r *http.Request) error {
	q := strings.TrimSpace(r.URL.Query().Get("q"))
	if len(q) > store.MaxRunID {
		return web.BadRequest("what was typed has %d bytes: no id of a run has more than %d", len(q), store.MaxRunID)
	}
	to := sh.Site.Prefix + "/?q=" + url.QueryEscape(q)
	if q != "" {
		if _, err := sh.Engine.Store().Load(r.Context(), q, store.Cursor{NoEvents: true, AfterMessage: 1<<63 - 1}); err == nil {
			to = sh.Site.Run(q)
		}
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

var errNotHere = errors.New("there is no such page")
