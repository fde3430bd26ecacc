package dashboard_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
)

func TestEveryAnswerHasTheHeadersThatKeepABrowserSafe(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{ShowPayloads: true})
	s.failed("r")
	for _, path := range []string{"/api/runs", "/api/runs/nobody", "/nowhere", "/api/runs/r/events/3/payload", "/api/openapi.json"} {
		h := s.send("GET", path, "").header
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), path)
		require.Contains(t, h.Get("Content-Security-Policy"), "default-src 'self'")
		require.Contains(t, h.Get("Content-Security-Policy"), "frame-ancestors 'none'")
		require.NotContains(t, h.Get("Content-Security-Policy"), "unsafe")
		require.Equal(t, "no-store", h.Get("Cache-Control"))
		require.NotContains(t, h.Get("Content-Type"), "html", path)
		require.Empty(t, h.Get("Access-Control-Allow-Origin"))
	}
}

func TestARequestUnderAForeignNameIsRefused(t *testing.T) {
	// A name of elsewhere is for others than this machine: Authorize says for whom.
	anybody := func(context.Context, dashboard.Action, string) error { return nil }
	s := open(t, memoryStore(t), dashboard.Options{Hosts: []string{"ops.example.com"}, Authorize: anybody})
	for host, status := range map[string]int{
		"evil.example.com": 421, "localhost.evil.com": 421, "127.0.0.1.evil.com": 421, "10.0.0.7": 421, "[2001:db8::1]": 421, "ops.example.com.evil": 421,
		"localhost": 200, "localhost:8233": 200, "127.0.0.1": 200, "[::1]:80": 200, "app.localhost": 200, "ops.example.com": 200, "OPS.example.com.:443": 200,
	} {
		require.Equal(t, status, s.send("GET", "/api/runs", "", "Host: "+host).status, host)
		require.Equal(t, map[bool]int{true: 404, false: 421}[status == 200], s.send("POST", "/api/runs/x/resume", "{}", "Host: "+host).status, host)
	}
	any := open(t, memoryStore(t), dashboard.Options{Hosts: []string{"*"}, Authorize: anybody})
	require.Equal(t, 200, any.send("GET", "/api/runs", "", "Host: evil.example.com").status)
}

func TestAPageOfAnotherOriginCannotAct(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{Origins: []string{"https://ops.example.com"}})
	s.failed("r")
	for _, evil := range []string{"Origin: https://evil.example.com", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: null"} {
		for _, path := range []string{"/api/runs/r/resume", "/api/workflows/r/resume", "/workflows/checkout/resume/r", "/api/runs/r/cancel", "/checkpoints/r"} {
			a := s.send("POST", path, "", evil)
			require.Equal(t, http.StatusForbidden, a.status, path+" "+evil)
		}
		require.Equal(t, 200, s.send("GET", "/api/runs", "", evil).status, "reading is what a browser keeps from it itself")
	}
	require.Equal(t, "failed", s.until("r", "failed").Status)
	require.Equal(t, 200, s.send("POST", "/api/runs/r/resume", "", "Origin: https://ops.example.com", "Sec-Fetch-Site: cross-site").status)
}

func TestABodyThatAFormCouldHaveSentIsRefused(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.failed("r")
	for _, typ := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json-patch", "; ;"} {
		a := s.send("POST", "/api/runs/r/resume", `{}`, "Content-Type: "+typ)
		require.Equal(t, http.StatusUnsupportedMediaType, a.status, typ)
		a = s.send("POST", "/api/runs/r/resume", ``, "Content-Type: "+typ)
		require.Equal(t, http.StatusUnsupportedMediaType, a.status, typ)
	}
	require.Equal(t, "failed", s.until("r", "failed").Status)
	require.Equal(t, 200, s.send("POST", "/api/runs/r/resume", `{}`, "Content-Type: application/json; charset=utf-8").status)
}

func TestALargeBodyIsRefused(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{MaxBody: 1000})
	a := s.send("POST", "/api/workflows/checkout/runs", `{"id":"r","input":{"ID":"`+strings.Repeat("x", 2000)+`"}}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, a.status, a.body)
	require.Equal(t, 404, s.send("GET", "/api/runs/r", "").status)
}

func TestNothingIsChangedByReading(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.failed("r")
	for _, path := range []string{"/api/runs/r/resume", "/api/runs/r/cancel", "/api/runs/r/fork", "/workflows/checkout/resume/r", "/checkpoints/r", "/api/workflows/r/resume", "/api/runs/r/edit"} {
		for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"} {
			a := s.send(method, path, "")
			require.Equal(t, http.StatusMethodNotAllowed, a.status, method+path)
			require.Contains(t, a.header.Get("Allow"), "POST")
		}
	}
	a := s.send("GET", "/nowhere", "")
	require.Equal(t, 404, a.status)
	require.Equal(t, "no_route", a.json(t)["error"].(map[string]any)["code"])
}

func TestHostileTextComesBackAsText(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{ShowPayloads: true})
	evil := `<img src=x onerror=alert(1)>"'</script><svg onload=alert(2)>`
	s.asks(evil[:27])
	a := s.send("GET", "/api/runs/"+"%3Cimg%20src=x%20onerror=alert%281", "")
	require.NotContains(t, a.body, "<img")
	_ = s.send("POST", "/api/runs/nobody%3Cscript%3E/resume", "")
	a = s.send("GET", "/api/runs/%3Cscript%3Ealert(1)%3C%2Fscript%3E", "")
	require.Equal(t, 404, a.status)
	require.NotContains(t, a.body, "<script>")
	require.Contains(t, a.header.Get("Content-Type"), "application/json")
}

func TestWithoutAuthorizeNobodyBeyondLoopbackIsServed(t *testing.T) {
	_, err := dashboard.Listen(t.Context(), "0.0.0.0:0", dashboard.Options{})
	require.ErrorIs(t, err, dashboard.ErrExposed)
	_, err = dashboard.Listen(t.Context(), ":0", dashboard.Options{})
	require.ErrorIs(t, err, dashboard.ErrExposed)
	s := open(t, memoryStore(t), dashboard.Options{})
	require.ErrorIs(t, dashboard.ListenAndServe(t.Context(), "0.0.0.0:0", s.eng, dashboard.Options{}), dashboard.ErrExposed)
	raw, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "0.0.0.0:0")
	require.NoError(t, err)
	require.ErrorIs(t, dashboard.Serve(t.Context(), raw, s.eng, dashboard.Options{}), dashboard.ErrExposed)
	l, err := dashboard.Listen(t.Context(), "0.0.0.0:0", dashboard.Options{Authorize: func(context.Context, dashboard.Action, string) error { return nil }})
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

// served sends a request to a handler as if it had come in at an address.
func served(h http.Handler, local net.Addr, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host = "localhost"
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	if local != nil {
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestAHandlerWithoutAuthorizeLooksWhereARequestCameIn(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.failed("r")
	loop := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	world := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}
	quiet := slog.New(slog.DiscardHandler)
	plain := dashboard.Handler(s.eng, dashboard.Options{Logger: quiet})
	signed := dashboard.Handler(s.eng, dashboard.Options{Logger: quiet, Middleware: func(h http.Handler) http.Handler { return h }})
	require.Equal(t, 200, served(plain, loop, "GET", "/api/runs").Code)
	require.Equal(t, 200, served(plain, &net.UnixAddr{Name: "s"}, "GET", "/api/runs").Code)
	require.Equal(t, 200, served(plain, &net.UnixAddr{Name: "s"}, "GET", "/api/runs", "Host", "anything").Code, "no name leads to a socket")
	require.Equal(t, 421, served(plain, loop, "GET", "/api/runs", "Host", "anything").Code)
	require.Equal(t, 403, served(plain, world, "GET", "/api/runs").Code)
	require.Equal(t, 403, served(plain, nil, "GET", "/api/runs").Code)
	require.Equal(t, 403, served(plain, world, "POST", "/api/runs/r/resume").Code)
	require.Equal(t, 403, served(plain, loop, "POST", "/api/runs/r/resume", "X-Forwarded-For", "192.0.2.7").Code, "a proxy lets the world in")
	require.Equal(t, 200, served(signed, world, "GET", "/api/runs").Code)
	w := served(signed, world, "POST", "/api/runs/r/resume")
	require.Equal(t, 403, w.Code)
	require.Contains(t, w.Body.String(), "Authorize")
	require.Equal(t, "failed", s.until("r", "failed").Status)
	require.Equal(t, 200, served(plain, loop, "POST", "/api/runs/r/resume").Code)
}

func TestAuthorizeIsAskedWhatIsDoneToWhichRun(t *testing.T) {
	type ask struct {
		a  dashboard.Action
		id string
	}
	var asked []ask
	s := open(t, memoryStore(t), dashboard.Options{Authorize: func(_ context.Context, a dashboard.Action, id string) error {
		asked = append(asked, ask{a, id})
		switch {
		case id == "secret":
			return errors.New("not yours")
		case id == "who":
			return dashboard.ErrUnauthenticated
		}
		return nil
	}})
	for _, path := range []string{"/api/runs/secret/resume", "/api/workflows/secret/resume", "/workflows/checkout/resume/secret", "/checkpoints/secret", "/checkpoints/secret:5", "/api/approvals/secret:7"} {
		asked = nil
		a := s.send("POST", path, "{}")
		require.Equal(t, 403, a.status, path)
		require.Contains(t, a.body, "not yours")
		require.Len(t, asked, 1)
		require.Equal(t, "secret", asked[0].id, path)
		require.True(t, asked[0].a.Writes())
	}
	require.Equal(t, 401, s.send("GET", "/api/runs/who", "").status)
	require.Equal(t, 403, s.send("GET", "/api/runs/secret/stream", "").status)
	require.Equal(t, 404, s.send("GET", "/api/runs/mine", "").status)
}

func TestAPanicInARouteLeavesTheServerRunning(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{Authorize: func(_ context.Context, _ dashboard.Action, id string) error {
		if id == "boom" {
			panic("boom, with a secret")
		}
		return nil
	}})
	a := s.send("GET", "/api/runs/boom", "")
	require.Equal(t, 500, a.status)
	require.NotContains(t, a.body, "secret")
	require.Equal(t, 200, s.send("GET", "/api/runs", "").status)
}

func TestAServerThatEndsDoesNotWaitForItsStreams(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	ctx, stop := context.WithCancel(t.Context())
	l, err := dashboard.Listen(ctx, "127.0.0.1:0", dashboard.Options{})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		ended <- dashboard.Serve(ctx, l, s.eng, dashboard.Options{Logger: slog.New(slog.DiscardHandler)})
	}()
	resp, err := http.Get("http://" + l.Addr().String() + "/api/stream")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
	began := time.Now()
	stop()
	require.NoError(t, <-ended, "open streams do not keep it")
	require.Less(t, time.Since(began), 8*time.Second)
	http.DefaultClient.CloseIdleConnections()
}
