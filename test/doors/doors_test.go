package doors_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/cli"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// A world is a store, a program with an engine and a server on it, and a run "r" in
// some state.
type world struct {
	t      *testing.T
	data   *memory.Store
	eng    *durable.Engine // that executes what begin starts
	desk   *durable.Engine // that the doors lead to
	server *httptest.Server
	how    atomic.Value
	ran    atomic.Int64 // bodies
	child  *durable.Workflow[string, string]
	bare   atomic.Bool // the events of "r" are lost
}

// bareStore is a store that has lost the events of "r": the one that these tests use
// makes no run without one.
type bareStore struct {
	store.Store
	w *world
}

func (s *bareStore) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	h, err := s.Store.Load(ctx, id, c)
	if err == nil && id == "r" && s.w.bare.Load() {
		h.Run.Last, h.Branches = nil, nil
		h.Events = func(func(store.Event, error) bool) {}
	}
	return h, err
}

func newWorld(t *testing.T, s *state) *world {
	w := &world{t: t, data: memory.Open()}
	w.mood("fine")
	w.desk = w.engine()
	w.eng = w.desk
	s.make(w)
	w.server = httptest.NewServer(dashboard.Handler(w.desk, dashboard.Options{Logger: slog.New(slog.DiscardHandler), ShowPayloads: true}))
	t.Cleanup(w.server.Close)
	return w
}

func (w *world) engine() *durable.Engine {
	sleeper := durable.Define("sleeper", func(ctx context.Context, _ string) (string, error) {
		return "", durable.Sleep(ctx, time.Hour)
	})
	w.child = sleeper
	eng, err := durable.Open(context.Background(), &bareStore{w.data.Handle(), w}, durable.Options{
		Workflows: []durable.Definition{durable.Define("order", w.order), durable.Define("waits", w.waits), sleeper},
		Logger:    slog.New(slog.DiscardHandler), Grace: -1,
	})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = eng.Close() })
	return eng
}

// other lets a second program execute what is begun.
func (w *world) other() { w.eng = w.engine() }

func (w *world) ctx() context.Context { return durable.NewContext(context.Background(), w.eng) }

// begin starts the run in this mood, and waits until it has come to this status.
func (w *world) begin(workflow, how string, until store.Status, o ...durable.StartOption) {
	w.t.Helper()
	w.mood(how)
	_, err := durable.Ref[string, string](workflow).Start(w.ctx(), "r", "", o...)
	require.NoError(w.t, err)
	w.until("r", until)
	if how == "child" {
		w.until("r/sleeper", store.Waiting) // which its parent does not wait for
	}
	if how == "hang" {
		require.Eventually(w.t, func() bool { return w.ran.Load() == 2 }, time.Minute, time.Millisecond)
	}
}

// unserved starts a run that nobody has the code of.
func (w *world) unserved(workflow string) {
	_, err := durable.Ref[string, string](workflow).Start(w.ctx(), "r", "")
	require.NoError(w.t, err)
}

func (w *world) row(id string) store.Run {
	w.t.Helper()
	h, err := w.data.Load(context.Background(), id, store.Cursor{NoEvents: true})
	require.NoError(w.t, err)
	return h.Run
}

func (w *world) until(id string, s store.Status) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return w.row(id).Status == s }, 20*time.Second, time.Millisecond, "status of %s", id)
}

// retell makes the run from the first n events of a template that has completed.
func (w *world) retell(template string, s store.Status, n int, edit func(*store.Run)) {
	w.t.Helper()
	w.mood("fine")
	_, err := durable.Ref[string, string]("order").Start(w.ctx(), template, "")
	require.NoError(w.t, err)
	w.until(template, store.Completed)
	w.create(template, s, n, edit, func(*store.Event) {})
	_, err = w.data.Delete(context.Background(), store.Deletion{RunIDs: []string{template}, Force: true})
	require.NoError(w.t, err)
	w.ran.Store(0)
}

// create makes the run from another one's events.
func (w *world) create(from string, s store.Status, n int, edit func(*store.Run), spoil func(*store.Event)) {
	w.t.Helper()
	h, err := w.data.Load(context.Background(), from, store.Cursor{})
	require.NoError(w.t, err)
	row := h.Run
	row.ID, row.Status, row.Owner, row.EndedAt, row.Last, row.Code, row.Reason = "r", s, "", 0, nil, "", ""
	if s == store.Running {
		row.Owner = "gone"
	}
	var events []store.Event
	var before uint32
	for e, err := range h.Events {
		require.NoError(w.t, err)
		if len(events) == n {
			break
		}
		if len(events) == 0 && edit != nil {
			probe := row
			edit(&probe)
			var d map[string]any
			if probe.InitialVersion != row.InitialVersion && json.Unmarshal(e.Data, &d) == nil {
				born := d["run"].(map[string]any)
				born["workflow"], born["version"] = probe.Workflow, probe.InitialVersion
				e.Data, _ = json.Marshal(d)
			}
		}
		e.Sum = store.Seal("r", before, &e)
		before = e.Sum
		spoil(&e)
		events = append(events, e)
	}
	if edit != nil {
		edit(&row)
	}
	errs := w.data.Commit(context.Background(), []store.Change{{RunID: "r", Expect: store.Expect{Absent: true}, Create: &row, Events: events}})
	require.NoError(w.t, errs[0])
}

// damage makes the run with an event that was changed.
func (w *world) damage(s store.Status) {
	w.t.Helper()
	_, err := durable.Ref[string, string]("order").Start(w.ctx(), "template", "")
	require.NoError(w.t, err)
	w.until("template", store.Completed)
	w.create("template", s, 4, func(r *store.Run) { r.Recoverable = s == store.Failed }, func(e *store.Event) {
		if e.Type == store.StepCompleted && len(e.Payload) > 4 {
			e.Payload = append([]byte{}, e.Payload...)
			e.Payload[len(e.Payload)-2] ^= 1
		}
	})
	_, err = w.data.Delete(context.Background(), store.Deletion{RunIDs: []string{"template"}, Force: true})
	require.NoError(w.t, err)
	w.ran.Store(0)
}

// look is everything that is stored of all runs.
func (w *world) look() string {
	w.t.Helper()
	var b strings.Builder
	p, err := w.data.List(context.Background(), store.Filter{WithLast: true, OldestFirst: true, Limit: 100})
	require.NoError(w.t, err)
	for _, r := range p.Runs {
		last := r.Last
		r.Last = nil
		fmt.Fprintf(&b, "%+v %+v\n", r, last)
	}
	return b.String()
}

// said is what a door has answered.
type said struct {
	code string // of the refusal; empty: done
	text string // all of it
	http int    // 0: it is no HTTP
	exit int    // -1: it is no terminal
	next string // commands that were printed
}

// A door is a way to resume the run.
type door struct {
	name string
	dry  bool
	do   func(w *world) said
	// takesWaiting: it is for a run that waits, too.
	takesWaiting bool
}

func library(o operate.ResumeOptions) func(w *world) said {
	return func(w *world) said {
		_, err := operate.On(w.desk).Resume(context.Background(), "r", o)
		return ofError(err)
	}
}

func ofError(err error) said {
	s := said{exit: -1}
	if err != nil {
		s.code, s.text = "error", err.Error()
	}
	return s
}

func route(method, path, body string) func(w *world) said {
	return func(w *world) said {
		workflow := "order"
		if h, err := w.data.Load(context.Background(), "r", store.Cursor{NoEvents: true}); err == nil {
			workflow = h.Run.Workflow
		}
		status, text := w.send(method, strings.ReplaceAll(path, "{workflow}", workflow), body, "application/json")
		s := said{http: status, exit: -1, text: text}
		if status >= 400 {
			var p struct {
				Error   struct{ Code string }
				Message string
			}
			require.NoError(w.t, json.Unmarshal([]byte(text), &p), text)
			s.code, s.text = p.Error.Code, p.Message
		}
		return s
	}
}

func (w *world) send(method, path, body, kind string) (status int, text string) {
	w.t.Helper()
	r, err := http.NewRequest(method, w.server.URL+path, strings.NewReader(body))
	require.NoError(w.t, err)
	if body != "" {
		r.Header.Set("Content-Type", kind)
	}
	if method == "GET" && strings.HasPrefix(path, "/runs/") {
		r.Header.Set("Accept", "text/html")
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Timeout: 30 * time.Second}
	resp, err := client.Do(r)
	require.NoError(w.t, err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	return resp.StatusCode, string(b)
}

// bulk resumes all runs that are in the status of the run.
func bulk(dry bool) func(w *world) said {
	return func(w *world) said {
		body := fmt.Sprintf(`{"filter":{"status":["failed","interrupted"]},"dry_run":%t,"matching":1}`, dry)
		status, text := w.send("POST", "/api/bulk/resume", body, "application/json")
		require.Equal(w.t, 200, status, text)
		var b struct {
			Runs []struct {
				Done          bool
				Code, Message string
			}
		}
		require.NoError(w.t, json.Unmarshal([]byte(text), &b))
		if len(b.Runs) == 0 {
			return said{exit: -1, code: "not selected"}
		}
		return said{exit: -1, code: b.Runs[0].Code, text: b.Runs[0].Message}
	}
}

// form is the button of the page, without a script.
func form(w *world) said {
	status, text := w.send("POST", "/runs/r/do/resume", url.Values{"planned": {"1"}}.Encode(), "application/x-www-form-urlencoded")
	s := said{exit: -1, http: status, text: text}
	if status >= 400 {
		s.code = "page"
	}
	return s
}

// refusedPanel is where a panel says why its act cannot be done.
var refusedPanel = regexp.MustCompile(`(?s)<p class="note">[^\n]*<span role="alert">`)

// panel is the dry run that the page shows.
func panel(w *world) said {
	status, text := w.send("GET", "/runs/r?panel=resume", "", "")
	s := said{exit: -1, http: status, text: text}
	if status >= 400 || refusedPanel.MatchString(text) {
		s.code = "page"
	}
	return s
}

// terminal runs a command of the program in which the workflows are.
func terminal(args ...string) func(w *world) said {
	return func(w *world) said { return w.run(append(args, "--no-color")...) }
}

func (w *world) run(args ...string) said {
	w.t.Helper()
	root := &cobra.Command{Use: "shop"}
	root.AddCommand(cli.Command(w.desk, cli.Program("shop")))
	var out, errs bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errs)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "{server}", w.server.URL)
	}
	root.SetArgs(append([]string{"durable"}, args...))
	s := said{exit: cli.ExitCode(root.Execute()), text: errs.String() + out.String()}
	if s.exit != 0 {
		s.code = "exit"
	}
	for _, line := range strings.Split(s.text, "\n") {
		if _, command, ok := strings.Cut(line, "shop durable "); ok && s.exit != 0 {
			s.next = strings.TrimSpace(command)
		}
	}
	return s
}

func doors() []door {
	return []door{
		{name: "library, dry run", dry: true, do: library(operate.ResumeOptions{DryRun: true})},
		{name: "GET /api/runs/{id}/plan", dry: true, do: route("GET", "/api/runs/r/plan", "")},
		{name: "POST /api/runs/{id}/resume?dry_run=1", dry: true, do: route("POST", "/api/runs/r/resume?dry_run=1", "")},
		{name: "POST /api/bulk/resume, dry run", dry: true, do: bulk(true)},
		{name: "page, panel", dry: true, do: panel},
		{name: "terminal, --dry-run", dry: true, do: terminal("resume", "r", "--dry-run")},
		{name: "terminal over --server, --dry-run", dry: true, do: terminal("resume", "r", "--dry-run", "--server", "{server}")},
		{name: "library", do: library(operate.ResumeOptions{})},
		{name: "library, ResumeAll", do: func(w *world) said {
			s := said{exit: -1, code: "not selected"}
			for _, err := range operate.On(w.desk).ResumeAll(context.Background(), store.Filter{IDs: []string{"r"}}, operate.ResumeOptions{}) {
				s = ofError(err)
			}
			return s
		}},
		{name: "POST /api/runs/{id}/resume", do: route("POST", "/api/runs/r/resume", "")},
		{name: "POST /api/workflows/{id}/resume", do: route("POST", "/api/workflows/r/resume", "")},
		{name: "POST /workflows/{workflow}/resume/{id}", do: route("POST", "/workflows/{workflow}/resume/r", ""), takesWaiting: true},
		{name: "POST /api/bulk/resume", do: bulk(false)},
		{name: "page, button", do: form},
		{name: "terminal", do: terminal("resume", "r")},
		{name: "terminal over --server", do: terminal("resume", "r", "--server", "{server}"), takesWaiting: true},
	}
}

func TestARunIsResumedTheSameWayThroughEveryDoor(t *testing.T) {
	for _, s := range states() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			var shared *world
			for _, d := range doors() {
				if s.waits && d.takesWaiting {
					continue // below
				}
				w := shared
				if w == nil || s.code == "" && !d.dry {
					w = newWorld(t, &s)
				}
				if shared == nil {
					shared = w
				}
				before, ran := w.look(), w.ran.Load()
				got := d.do(w)
				where := fmt.Sprintf("%s, %s: %+v", s.name, d.name, got)
				if got.code == "not selected" {
					require.Equal(t, before, w.look(), where)
					continue
				}
				if s.code != "" || d.dry {
					require.Equal(t, before, w.look(), "%s\nsomething was written", where)
					require.Equal(t, ran, w.ran.Load(), "%s\na body has run", where)
				}
				if s.code == "" || s.late && d.dry {
					s.taken(t, w, &d, got, where)
				} else {
					s.refusal(t, &d, got, where)
				}
			}
			if s.waits && !t.Failed() {
				for _, d := range doors() {
					if d.takesWaiting {
						w := newWorld(t, &s)
						got := d.do(w)
						require.Empty(t, got.code, "%s, %s: %+v", s.name, d.name, got)
						require.Equal(t, store.Waiting, w.row("r").Status)
					}
				}
			}
		})
	}
}

// taken checks what a door says of a run that it resumes, and what becomes of it.
func (s *state) taken(t *testing.T, w *world, d *door, got said, where string) {
	t.Helper()
	if s.ends == store.Failed && !d.dry && got.exit > 0 {
		require.Equal(t, 1, got.exit, where) // the terminal stays, and sees it fail
		return
	}
	if s.ends == store.Interrupted && got.exit > 0 {
		require.Equal(t, refusedExit, got.exit, where) // it would wait for a program that nobody runs
		return
	}
	require.Empty(t, got.code, where)
	if got.http != 0 {
		require.Less(t, got.http, 400, where)
	}
	if !d.dry && s.ends != store.Interrupted {
		w.until("r", s.ends)
	}
}

// refusal checks what a door says of a run that it does not resume.
func (s *state) refusal(t *testing.T, d *door, got said, where string) {
	t.Helper()
	require.NotEmpty(t, got.code, where)
	if d.takesWaiting && strings.Contains(got.text, "run r waits at no checkpoint that somebody could answer") {
		// The route for waiting runs says why it does not take this one.
		require.True(t, got.http == s.http || got.exit == s.exit, where)
		return
	}
	if got.http != 0 && got.code != "page" {
		require.Equal(t, s.http, got.http, where)
		require.Equal(t, s.code, got.code, where)
	}
	if got.exit >= 0 {
		require.Equal(t, s.exit, got.exit, where)
	}
	if got.code != "page" {
		require.Contains(t, got.text, s.says, where)
	}
}

// The page of the documentation is this table.
func TestThePageOfDoorsIsTheTable(t *testing.T) {
	const page = "../../docs/internals/doors.md"
	var b strings.Builder
	b.WriteString(head)
	for _, s := range states() {
		outcome, status, exit := "resumed: "+s.says, "200 (202, 303)", "0"
		if s.code != "" {
			outcome, status, exit = "refused: `"+s.code+"`", fmt.Sprint(s.http), fmt.Sprint(s.exit)
		}
		switch {
		case s.late:
			outcome += "; a dry run does not look at the keys"
		case s.waits:
			outcome += "; taken by `POST /workflows/{workflow}/resume/{id}` and by the terminal over `--server`, which see to it that it can be answered"
		case s.ends == store.Failed:
			exit = "1"
		case s.ends == store.Interrupted:
			exit = "4, but with `--detach`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s.name, outcome, status, exit)
	}
	b.WriteString("\nThe doors:\n\n")
	for _, d := range doors() {
		fmt.Fprintf(&b, "- %s\n", d.name)
	}
	if os.Getenv("HOLDFAST_WRITE_DOCS") != "" {
		require.NoError(t, os.WriteFile(page, []byte(b.String()), 0o644))
	}
	have, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(have), "write it again with HOLDFAST_WRITE_DOCS=1 go test ./test/doors")
}

const head = `# What does a resume answer in each state, through each door?

A run is resumed through the library, the HTTP API, the form of a page, or the
terminal. All of them call ` + "`Operator.Resume`" + `, which makes one set of checks before
anything is written or answered, in this order:

1. the run exists;
2. its row and its events agree, or can be repaired ([recovery.md](../recovery.md));
3. its status allows it;
4. it has a checkpoint, and what is recorded can be read;
5. the code that is here fits the history: the function is replayed to the point that it had reached. No body of a step runs, and nothing is recorded;
6. its exclusive keys are free.

A dry run makes all checks but the last, and writes nothing. A program without the
workflow's code cannot make the fifth check: it says so (` + "`unchecked`" + ` in the plan), and
hands the run to a program that has it. After a refusal nothing has changed.

A run that failed continues from the failure that ended it: the step has all its
attempts again, whichever door it came through ([ADR 28](../adr/0028-a-door-is-a-door.md)).

A test drives every state through every door. This table is what it has found
(` + "`test/doors`" + `).

| the run is | a resume is | HTTP | exit code |
|---|---|---|---|
`
