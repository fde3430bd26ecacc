package dashboard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/store/sqlite"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		os.Exit(child(dir))
	}
	pgtest.Parallel(4)
	goleak.VerifyTestMain(m,
		// A server that other tests of this process will use.
		goleak.IgnoreAnyFunction("github.com/holdfast-dev/holdfast/test/pgtest.(*Cluster).start.func1"))
}

// Order is the input of the test's workflow.
type Order struct {
	ID    string
	Total int
}

// shop is a workflow with everything an operator meets: a step, one that may
// fail, a question, and a step after it.
type shop struct {
	broken  atomic.Bool   // charge fails for good
	nothing atomic.Bool   // it fails before any step
	hang    chan struct{} // a step of its own waits for it
	slow    chan struct{} // charge waits for it
	charged atomic.Int64
}

func (s *shop) checkout(ctx context.Context, o Order) (string, error) {
	if s.nothing.Load() {
		return "", errors.New("no goods today")
	}
	if _, err := durable.Step(ctx, "reserve", func(context.Context) (string, error) { return "shelf <b>7</b> secret-shelf", nil }); err != nil {
		return "", err
	}
	if s.hang != nil {
		if err := durable.Do(ctx, "hang", func(ctx context.Context) error {
			select {
			case <-s.hang:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}); err != nil {
			return "", err
		}
	}
	_, err := durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 2, Initial: time.Millisecond}, func(ctx context.Context) (int, error) {
		durable.Note(ctx, "bank", "secret-note")
		s.charged.Add(1)
		if s.slow != nil {
			<-s.slow
		}
		if s.broken.Load() {
			return 0, errors.New("bank says no: card 4111-secret")
		}
		return o.Total, nil
	})
	if err != nil {
		return "", err
	}
	ok, err := durable.Await[bool](ctx, "approve", durable.Prompt("Ship "+o.ID+"?"))
	if err != nil {
		return "", err
	}
	if !ok {
		return "rejected", nil
	}
	return durable.Step(ctx, "ship", func(context.Context) (string, error) { return "parcel of " + o.ID, nil })
}

func (s *shop) workflow() *durable.Workflow[Order, string] {
	return durable.Define("checkout", s.checkout, durable.Steps("reserve", "charge", "approve", "ship"))
}

// site is a server with an engine behind it, and a client in front.
type site struct {
	t    *testing.T
	st   store.Store
	eng  *durable.Engine
	shop *shop
	url  string
	c    *client.Client
}

// open starts a site on a store of the given kind.
func open(t *testing.T, st store.Store, o dashboard.Options) *site {
	t.Helper()
	s := &site{t: t, st: st, shop: new(shop)}
	s.serve(durable.Options{Workflows: []durable.Definition{s.shop.workflow()}}, o)
	return s
}

// serve starts the engine and the server of a site.
func (s *site) serve(eo durable.Options, o dashboard.Options) {
	s.t.Helper()
	if eo.Logger == nil {
		eo.Logger = slog.New(slog.DiscardHandler)
	}
	eo.Grace = -1
	eng, err := durable.Open(context.Background(), s.st, eo)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, eng.Close()) })
	_, err = eng.Recover(context.Background())
	require.NoError(s.t, err)
	s.eng = eng
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	srv := httptest.NewServer(dashboard.Handler(eng, o))
	s.t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	s.url = srv.URL + o.Prefix
	s.c, err = client.New(s.url, client.Options{HTTPClient: &http.Client{Transport: &checked{t: s.t, prefix: o.Prefix}}})
	require.NoError(s.t, err)
}

func memoryStore(*testing.T) store.Store { return memory.Open() }

func sqliteStore(t *testing.T) store.Store {
	st, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	return st
}

func postgresStore(t *testing.T) store.Store {
	st, err := postgres.Open(pgtest.DSN(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	return st
}

// onEveryStore runs a test on PostgreSQL, too.
func onEveryStore(t *testing.T, o dashboard.Options, test func(t *testing.T, s *site)) {
	onStores(t, o, test)
	t.Run("postgres", func(t *testing.T) { test(t, open(t, postgresStore(t), o)) })
}

// onStores runs a test on the stores that need no server.
func onStores(t *testing.T, o dashboard.Options, test func(t *testing.T, s *site)) {
	for name, make := range map[string]func(*testing.T) store.Store{"memory": memoryStore, "sqlite": sqliteStore} {
		t.Run(name, func(t *testing.T) { test(t, open(t, make(t), o)) })
	}
}

// start starts a run over HTTP.
func (s *site) start(id string) {
	s.t.Helper()
	_, err := s.c.Start(s.t.Context(), "checkout", client.StartRequest{ID: id, Input: json.RawMessage(`{"ID":"` + id + `","Total":42}`), Attributes: map[string]string{"customer": "ada"}})
	require.NoError(s.t, err)
}

// until waits for a run to be in a status.
func (s *site) until(id, status string) client.Run {
	s.t.Helper()
	var run client.Run
	require.Eventually(s.t, func() bool {
		var err error
		run, err = s.c.GetRun(s.t.Context(), id)
		return err == nil && run.Status == status
	}, time.Minute, 5*time.Millisecond, "%s is %s", id, run.Status)
	return run
}

// failed makes a run that has failed, recoverable, with a step done.
func (s *site) failed(id string) {
	s.t.Helper()
	s.shop.broken.Store(true)
	s.start(id)
	s.until(id, "failed")
	s.shop.broken.Store(false)
}

// asks makes a run that waits for a person.
func (s *site) asks(id string) client.Run {
	s.t.Helper()
	s.start(id)
	return s.until(id, "waiting")
}

// answer is what came back for a raw request.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) json(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.Unmarshal([]byte(a.body), &v), a.body)
	return v
}

// send sends a raw request; headers are "Name: value".
func (s *site) send(method, path, body string, headers ...string) answer {
	s.t.Helper()
	ctx, stop := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	resp, err := (&checked{t: s.t}).RoundTrip(r)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// checked is a transport that compares every JSON answer with what the OpenAPI
// document says of its route and status.
type checked struct {
	t      *testing.T
	prefix string
}

func (c *checked) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	c.compare(r, resp.StatusCode, body)
	return resp, nil
}

func (c *checked) compare(r *http.Request, status int, body []byte) {
	u := *r.URL
	u.Path, u.RawPath = strings.TrimPrefix(u.Path, c.prefix), strings.TrimPrefix(u.RawPath, c.prefix)
	_, pattern := described().mux.Handler(&http.Request{Method: r.Method, URL: &u, Host: "x"})
	if pattern == "" {
		return
	}
	_, path, _ := strings.Cut(pattern, " ")
	op := described().doc.Paths.Find(path).GetOperation(r.Method)
	answer := op.Responses.Status(status)
	if answer == nil && status >= 400 {
		answer = op.Responses.Default()
	}
	if answer == nil {
		c.t.Errorf("%s answers with a %d that openapi.json does not have", pattern, status)
		return
	}
	media := answer.Value.Content.Get("application/json")
	if media == nil {
		c.t.Errorf("%s answers %d with JSON, which openapi.json does not say", pattern, status)
		return
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		c.t.Errorf("%s: %v", pattern, err)
		return
	}
	if err := media.Schema.Value.VisitJSON(v); err != nil {
		c.t.Errorf("%s %d is not as openapi.json says: %v\n%s", pattern, status, err, body)
	}
}

// description is the OpenAPI document, and a mux of its paths.
type description struct {
	doc *openapi3.T
	mux *http.ServeMux
}

var described = func() func() *description {
	var d atomic.Pointer[description]
	return func() *description {
		if d.Load() == nil {
			data, err := os.ReadFile("openapi.json")
			if err != nil {
				panic(err)
			}
			doc, err := openapi3.NewLoader().LoadFromData(data)
			if err != nil {
				panic(err)
			}
			mux := http.NewServeMux()
			for path, item := range doc.Paths.Map() {
				for method := range item.Operations() {
					mux.Handle(method+" "+path, http.NotFoundHandler())
				}
			}
			d.Store(&description{doc, mux})
		}
		return d.Load()
	}
}()
