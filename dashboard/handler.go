package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/act"
	"github.com/holdfast-dev/holdfast/dashboard/internal/api"
	"github.com/holdfast-dev/holdfast/dashboard/internal/pages"
	"github.com/holdfast-dev/holdfast/dashboard/internal/read"
	"github.com/holdfast-dev/holdfast/dashboard/internal/stream"
	"github.com/holdfast-dev/holdfast/dashboard/internal/view"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/durable"
)

// handler is the front: what every request passes before it reaches its route, which is a
// method of one of the internal packages. It is immutable.
type handler struct {
	*web.Env
	options Options
	mux     *http.ServeMux
	cross   *http.CrossOriginProtection

	// The internal packages behind the routes.
	api     *api.API
	acts    *act.Acts
	streams *stream.Streams
	shell   *pages.Shell
	lists   *pages.Lists
	runPage *pages.RunPage
}

// Handler returns a handler for the runs of eng. It starts no goroutine until a
// stream is opened, and none that outlives the last one. It may be used from any
// number of servers. A client that disconnects never stops a run.
//
// It panics when an entry of Options.Origins is not an origin.
func Handler(eng *durable.Engine, o Options) http.Handler {
	h := newHandler(eng, o)
	return h.guard()
}

func newHandler(eng *durable.Engine, o Options) *handler {
	o = o.withDefaults()
	h := &handler{options: o, mux: http.NewServeMux(), cross: http.NewCrossOriginProtection()}
	h.Env = web.NewEnv(eng, o.Logger, view.Site{Prefix: o.Prefix}, o.Redact)
	h.May = func(r *http.Request, action, runID string) error { return h.may(r, Action(action), runID) }
	h.User, h.ShowPayloads = o.User, o.ShowPayloads
	reader := read.New(h.Env)
	h.streams = stream.New(h.Env, reader, stream.Limits{Max: o.MaxStreams, PerClient: o.MaxStreamsPerClient, Heartbeat: o.Heartbeat})
	h.api = api.New(h.Env, reader, o.Archive, h.streams.Open)
	h.acts = act.New(h.Env, reader, o.Patience)
	h.shell = pages.NewShell(h.Env, reader, o.Archive)
	h.lists, h.runPage = pages.NewLists(h.shell, h.acts), pages.NewRunPage(h.shell, h.acts)
	for _, origin := range o.Origins {
		if err := h.cross.AddTrustedOrigin(origin); err != nil {
			panic(fmt.Sprintf("dashboard: Options.Origins: %v", err))
		}
	}
	h.cross.SetDenyHandler(h.refuser(web.ErrCrossOrigin))
	for _, rt := range h.routes() {
		h.mux.Handle(rt.method+" "+h.options.Prefix+rt.pattern, h.handle(rt))
	}
	return h
}

// guard wraps the mux with what every request passes: headers, the check of Host and
// origin, and the user's middleware.
func (h *handler) guard() http.Handler {
	var inner http.Handler = http.HandlerFunc(h.dispatch)
	if h.options.Middleware != nil {
		inner = h.options.Middleware(inner)
	}
	inner = h.cross.Handler(inner)
	var told sync.Once
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if prefix := stripped(r); prefix != "" {
			told.Do(func() {
				h.Log.Warn("dashboard: a prefix was cut off the path before the handler, so the links of the pages lead elsewhere; leave out http.StripPrefix, and name the whole path in Options.Prefix", "prefix", prefix)
			})
		}
		secure(w.Header())
		defer h.contain(w, r)
		if !h.hostAllowed(r) {
			h.refuse(w, r, errHost(r.Host))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, h.options.MaxBody)
		inner.ServeHTTP(w, r)
	})
}

// stripped returns what was cut off the path of a request within this program; empty: nothing.
func stripped(r *http.Request) string {
	asked, err := url.ParseRequestURI(r.RequestURI)
	if err != nil {
		return ""
	}
	prefix, cut := strings.CutSuffix(asked.Path, r.URL.Path)
	if !cut {
		return ""
	}
	return prefix
}

// dispatch passes a request to its route. If there is none it answers itself, in the form
// of the API.
func (h *handler) dispatch(w http.ResponseWriter, r *http.Request) {
	_, pattern := h.mux.Handler(r)
	if pattern == "" {
		// The mux knows which methods there are: its status and its Allow header are kept,
		// its text is not.
		probe := &statusOnly{header: w.Header()}
		h.mux.ServeHTTP(probe, r)
		w.Header().Del("Content-Type")
		h.refuseAs(w, r, errNoRoute(probe.status, w.Header().Get("Allow"), r), web.WantsPage(r))
		return
	}
	h.mux.ServeHTTP(w, traced(r))
}

// traced returns r with the trace and the baggage that it came with, if the program
// has set a propagator (otel.SetTextMapPropagator), unless a middleware has a span
// there already.
func traced(r *http.Request) *http.Request {
	if trace.SpanContextFromContext(r.Context()).IsValid() {
		return r
	}
	return r.WithContext(otel.GetTextMapPropagator().Extract(r.Context(), propagation.HeaderCarrier(r.Header)))
}

// handle makes a handler of a route.
func (h *handler) handle(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		plainIDs(r)
		err := h.check(rt, r)
		if err == nil {
			err = rt.serve(w, r)
		}
		if err != nil {
			h.refuseAs(w, r, err, rt.page)
		}
	})
}

// plainIDs undoes client.EscapeID in the ids of an address, before anything reads a path
// value.
func plainIDs(r *http.Request) {
	for _, name := range []string{"id", "run_id", "wait", "queue", "schedule"} {
		if id := r.PathValue(name); id != "" {
			r.SetPathValue(name, client.UnescapeID(id))
		}
	}
}

// check runs before every route: may the caller do this, and did the request come in a
// form that only a program, or one of our own pages, can send?
func (h *handler) check(rt route, r *http.Request) error {
	if rt.action == "" {
		return nil
	}
	if err := h.may(r, rt.action, rt.runOf(r)); err != nil {
		return err
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	if err := rt.checkQuery(r); err != nil {
		return err
	}
	return checkContentType(r, rt.page)
}

// contain turns the panic of a route, which is a defect, into an error, and keeps the
// server running.
func (h *handler) contain(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	h.options.Logger.Error("dashboard: a request panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	h.refuse(w, r, errors.New("dashboard: a defect; the log of the program has the details"))
}

// statusOnly records an answer of which only the head is used.
type statusOnly struct {
	header http.Header
	status int
}

func (s *statusOnly) Header() http.Header         { return s.header }
func (s *statusOnly) Write(b []byte) (int, error) { return len(b), nil }
func (s *statusOnly) WriteHeader(status int)      { s.status = status }
