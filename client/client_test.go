package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server that answers as it is told, and returns a client of it.
func serve(t *testing.T, h http.HandlerFunc, o client.Options) *client.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	o.HTTPClient = &http.Client{Transport: transport}
	c, err := client.New(srv.URL, o)
	require.NoError(t, err)
	return c
}

func TestAnAddressThatIsNoneIsRefused(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:80", "ftp://x", "http://", "http://a:b@x", "http://x?y", "http://x#y", "://"} {
		_, err := client.New(bad, client.Options{})
		require.Error(t, err, bad)
	}
	c, err := client.New("https://ops.example.com/durable/", client.Options{})
	require.NoError(t, err)
	require.Equal(t, "https://ops.example.com/durable", c.Server())
}

func TestAnAnswerThatIsNoSuccessIsAnErrorByItsCode(t *testing.T) {
	status := 0
	body := ""
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}, client.Options{})
	for code, want := range map[int]error{
		400: client.ErrInvalid, 401: client.ErrUnauthenticated, 403: client.ErrForbidden, 404: client.ErrNotFound, 409: client.ErrConflict,
		413: client.ErrInvalid, 421: client.ErrForbidden, 429: client.ErrBusy, 500: client.ErrServer, 503: client.ErrServer,
	} {
		status, body = code, `{"error":{"code":"c","message":"the server's words","next":"do this"},"message":"x"}`
		_, err := c.GetRun(t.Context(), "r")
		require.ErrorIs(t, err, want, "%d", code)
		require.Equal(t, "the server's words", err.Error())
		var e *client.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "do this", e.Next)
		require.Equal(t, code, e.Status)
	}
	status, body = 502, "<html>bad gateway</html>"
	_, err := c.GetRun(t.Context(), "r")
	require.ErrorIs(t, err, client.ErrServer)
	require.Equal(t, "502 Bad Gateway", err.Error(), "of a proxy, which sends a page")
	status, body = 200, "<html>"
	_, err = c.GetRun(t.Context(), "r")
	require.ErrorContains(t, err, "cannot be read")
}

func TestAServerThatIsNotThereIsSaidSo(t *testing.T) {
	c, err := client.New("http://127.0.0.1:1", client.Options{})
	require.NoError(t, err)
	_, err = c.GetRun(t.Context(), "r")
	require.ErrorIs(t, err, client.ErrUnreachable)
	require.Contains(t, err.Error(), "Server not running")
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("why")
	stop(why)
	_, err = c.GetRun(ctx, "r")
	require.ErrorIs(t, err, why)
}

func TestCredentialsGoToTheServerAlone(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other server was asked, with %q", r.Header.Get("X-Token"))
	}))
	defer other.Close()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "secret", r.Header.Get("X-Token"))
		http.Redirect(w, r, other.URL+"/api/runs/r", http.StatusTemporaryRedirect)
	}, client.Options{Header: http.Header{"X-Token": {"secret"}}})
	_, err := c.GetRun(t.Context(), "r")
	require.ErrorContains(t, err, "another one")
	_, err = c.Cancel(t.Context(), "r", "")
	require.ErrorContains(t, err, "another one")
}

func TestEveryIDIsOneSegmentOfThePath(t *testing.T) {
	path := ""
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.EscapedPath()
		_, _ = w.Write([]byte(`{}`))
	}, client.Options{})
	for id, want := range map[string]string{
		"order-42": "order-42", "a/b": "a%2Fb", "..": "~..", ".": "~.", "a b?c#d": "a%20b%3Fc%23d", "100%": "100%25",
	} {
		_, err := c.GetRun(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, "/api/runs/"+want, path)
	}
}

func TestWatchEndsWithItsContextAndWithARefusal(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/runs/gone/stream" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"error":{"code":"not_found","message":"no such run"}}`))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("event: run\ndata: {\"id\":\"r\"}\n\nevent: of a newer server\ndata: 1\n\n"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, client.Options{})
	for _, err := range c.Watch(t.Context(), "gone", 0) {
		require.ErrorIs(t, err, client.ErrNotFound)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	seen := 0
	for u, err := range c.Watch(ctx, "r", 0) {
		require.NoError(t, err)
		require.Equal(t, "r", u.Run.ID)
		seen++
		stop()
	}
	require.Equal(t, 1, seen)
}

func TestWatchOutlivesAServerThatRestarts(t *testing.T) {
	calls := 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		calls++
		switch calls {
		case 1:
			_, _ = w.Write([]byte("event: event\nid: 5\ndata: {\"seq\":5}\n\n"))
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			require.Equal(t, "5", r.Header.Get("Last-Event-ID"))
			_, _ = w.Write([]byte("event: event\nid: 6\ndata: {\"seq\":6}\n\nevent: end\ndata: {}\n\n"))
		}
	}, client.Options{})
	var seqs []int64
	for u, err := range c.Watch(t.Context(), "r", 0) {
		require.NoError(t, err)
		if u.Event != nil {
			seqs = append(seqs, u.Event.Seq)
		}
	}
	require.Equal(t, []int64{5, 6}, seqs)
	require.Equal(t, 3, calls)
}
