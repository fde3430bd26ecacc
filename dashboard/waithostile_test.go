package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// enqueue puts runs of talk in line.
func (s *site) enqueue(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		_, err := s.c.Start(s.t.Context(), "talk", client.StartRequest{ID: id, Input: json.RawMessage("1"), Enqueue: true})
		require.NoError(s.t, err)
	}
}

func (s *site) say(id, word string) {
	s.t.Helper()
	_, err := s.c.Signal(s.t.Context(), id, "word", json.RawMessage(`"`+word+`"`), "")
	require.NoError(s.t, err)
}

// streams waits until n streams are open.
func (s *site) streams(n int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		h, err := s.c.Health(s.t.Context())
		return err == nil && h.Streams == n
	}, time.Minute, time.Millisecond, "%d streams", n)
}

// Callers whose runs go on ask again and again, and would leave no place to the others.
func TestTheEndOfARunIsToldThoughAllPlacesForWaitsAreTaken(t *testing.T) {
	for name, o := range map[string]dashboard.Options{"of an address": {MaxStreamsPerClient: 2}, "of the server": {MaxStreams: 2}} {
		t.Run(name, func(t *testing.T) {
			o.ShowPayloads = true
			s, _ := apart(t, memoryStore(t), o)
			ctx, leave := context.WithCancel(t.Context())
			var waiting sync.WaitGroup
			defer waiting.Wait()
			defer leave()
			s.enqueue("long-1", "long-2", "short")
			for _, id := range []string{"long-1", "long-2"} {
				waiting.Go(func() {
					_, err := s.c.Wait(ctx, id)
					require.ErrorIs(t, err, context.Canceled)
				})
			}
			s.streams(2)
			require.Contains(t, s.send("GET", "/api/runs/short/wait", "").body, "too_many_streams", "it goes on")
			require.Equal(t, 404, s.send("GET", "/api/runs/nowhere/wait", "").status)
			s.say("short", "x")
			soon, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			_, err := s.c.Wait(soon, "short")
			require.NoError(t, err)
		})
	}
}

// A server of one's own has as a rule limits of time, made for short requests.
func TestAWaitAndAStreamOutliveTheLimitsOfTheServer(t *testing.T) {
	t.Parallel() // it mostly waits
	s, _ := apart(t, memoryStore(t), dashboard.Options{})
	s.enqueue("r")
	for name, limit := range map[string]func(*http.Server){
		"reading": func(srv *http.Server) { srv.ReadTimeout = 50 * time.Millisecond },
		"writing": func(srv *http.Server) { srv.WriteTimeout = 50 * time.Millisecond },
		"both":    func(srv *http.Server) { srv.ReadTimeout, srv.WriteTimeout = 50*time.Millisecond, 60*time.Millisecond },
		"neither": func(*http.Server) {},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewUnstartedServer(dashboard.Handler(s.eng, dashboard.Options{Heartbeat: 300 * time.Millisecond}))
			limit(srv.Config)
			srv.Start()
			defer srv.Close()
			begun := time.Now()
			resp, err := srv.Client().Get(srv.URL + "/api/runs/r/wait")
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			require.NoError(t, err)
			require.Contains(t, string(body), `"done":false`)
			require.GreaterOrEqual(t, time.Since(begun), 300*time.Millisecond, "it was not asked to leave earlier")

			resp, err = srv.Client().Get(srv.URL + "/api/runs/r/stream")
			require.NoError(t, err)
			defer resp.Body.Close()
			said, one := "", make([]byte, 4096)
			for !strings.Contains(said, "still here") {
				n, err := resp.Body.Read(one)
				said += string(one[:n])
				require.NoError(t, err, said)
			}
		})
	}
}

// spoiling passes requests on to a server, and breaks the first answers of an address.
type spoiling struct {
	to   *site
	cut  func(w http.ResponseWriter, body []byte)
	of   string // end of the path
	left atomic.Int64
}

func (c *spoiling) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resp, err := http.Get(c.to.url + r.URL.RequestURI())
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if strings.HasSuffix(r.URL.Path, c.of) && c.left.Add(-1) >= 0 {
		c.cut(w, body)
		return
	}
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(body)
}

// raw writes to the connection what is no whole answer, and closes it, with a reset if
// asked to.
func raw(w http.ResponseWriter, text string, reset bool) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(conn, text)
	if reset {
		time.Sleep(20 * time.Millisecond) // so that the reader has it before the reset, which drops what is under way
		_ = conn.(*net.TCPConn).SetLinger(0)
	}
	_ = conn.Close()
}

func TestAWaitOutlivesWhatProxiesDoToAnswers(t *testing.T) {
	head := func(body []byte) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(body))
	}
	for name, cut := range map[string]func(w http.ResponseWriter, body []byte){
		"closed before the answer": func(w http.ResponseWriter, _ []byte) { raw(w, "", false) },
		"reset before the answer":  func(w http.ResponseWriter, _ []byte) { raw(w, "", true) },
		"closed after the head":    func(w http.ResponseWriter, b []byte) { raw(w, head(b), false) },
		"closed within the answer": func(w http.ResponseWriter, b []byte) { raw(w, head(b)+string(b[:len(b)/2]), false) },
		"reset within the answer":  func(w http.ResponseWriter, b []byte) { raw(w, head(b)+string(b[:len(b)/2]), true) },
		"chunks that end": func(w http.ResponseWriter, b []byte) {
			raw(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n"+string(b[:5])+"\r\n", false)
		},
		"the timeout of a proxy":      func(w http.ResponseWriter, _ []byte) { http.Error(w, "<html>", http.StatusGatewayTimeout) },
		"the timeout of another one":  func(w http.ResponseWriter, _ []byte) { http.Error(w, "slow", http.StatusRequestTimeout) },
		"too early":                   func(w http.ResponseWriter, _ []byte) { http.Error(w, "early", http.StatusTooEarly) },
		"an empty answer":             func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusOK) },
		"no content":                  func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusNoContent) },
		"a status beyond all":         func(w http.ResponseWriter, _ []byte) { http.Error(w, "origin", 524) },
		"a page in place of an error": func(w http.ResponseWriter, _ []byte) { http.Error(w, "<html>wait</html>", http.StatusBadGateway) },
	} {
		for _, of := range []string{"/wait", "/payload"} {
			if of == "/payload" && (name == "an empty answer" || name == "no content") {
				continue // a download has no form by which it could be told
			}
			t.Run(name+of, func(t *testing.T) {
				t.Parallel()
				s, _ := apart(t, memoryStore(t), dashboard.Options{ShowPayloads: true})
				s.enqueue("r")
				s.say("r", "long")
				p := &spoiling{to: s, cut: cut, of: of}
				p.left.Store(2)
				srv := httptest.NewServer(p)
				defer srv.Close()
				tr := new(http.Transport)
				defer tr.CloseIdleConnections()
				c, err := client.New(srv.URL, client.Options{HTTPClient: &http.Client{Transport: tr}})
				require.NoError(t, err)
				out, err := c.Wait(t.Context(), "r")
				require.NoError(t, err)
				var got struct{ Word string }
				require.NoError(t, out.Decode(&got))
				require.Len(t, got.Word, 500_000)
			})
		}
	}
}

// A program that waits for all that it has started, and loses patience with a part.
func TestHundredsOfWaitsEnd(t *testing.T) {
	onApart(t, dashboard.Options{ShowPayloads: true}, func(t *testing.T, s *site, worker *durable.Engine) {
		const runs, each = 5, 48
		var waiting, leaving sync.WaitGroup
		impatient, leave := context.WithCancel(t.Context())
		defer leave()
		var told, left atomic.Int64
		for r := range runs {
			id := fmt.Sprint("r", r)
			s.enqueue(id)
			for i := range each {
				ctx, wg := t.Context(), &waiting
				if i%3 == 0 {
					ctx, wg = impatient, &leaving
				}
				wg.Go(func() {
					_, err := s.c.Wait(ctx, id)
					switch {
					case err == nil:
						told.Add(1)
					case errors.Is(err, context.Canceled):
						left.Add(1)
					default:
						t.Error(err)
					}
				})
			}
		}
		s.streams(runs * each)
		leave()
		leaving.Wait()
		s.streams(runs * each * 2 / 3)
		for r := range runs {
			s.say(fmt.Sprint("r", r), "x")
		}
		waiting.Wait()
		s.streams(0)
		require.EqualValues(t, runs*each*2/3, told.Load())
		require.EqualValues(t, runs*each/3, left.Load())
	})
}

// again waits for a word in each of its lives.
var again = durable.Define("again", func(ctx context.Context, n int) (string, error) {
	word, err := durable.Await[string](ctx, "word")
	if err != nil || n == 0 {
		return word, err
	}
	return "", durable.Continue(ctx, n-1)
})

func TestAWaitGoesOnOverContinue(t *testing.T) {
	for name, open := range map[string]func(*testing.T) store.Store{"memory": memoryStore, "sqlite": sqliteStore} {
		t.Run(name, func(t *testing.T) {
			s := &site{t: t, st: open(t)}
			s.serve(durable.Options{Workflows: []durable.Definition{again}}, dashboard.Options{ShowPayloads: true, Heartbeat: 50 * time.Millisecond})
			_, err := s.c.Start(t.Context(), "again", client.StartRequest{ID: "r", Input: json.RawMessage("3")})
			require.NoError(t, err)
			waited := make(chan error, 1)
			var out client.Outcome
			go func() {
				var err error
				out, err = s.c.Wait(t.Context(), "r")
				waited <- err
			}()
			for i := range 4 {
				s.say("r", fmt.Sprint("w", i))
			}
			require.NoError(t, <-waited)
			var word string
			require.NoError(t, out.Decode(&word))
			require.Equal(t, "w3", word)
		})
	}
}

// An id that is not one of a run is refused, and never taken for another address.
func TestNoIDIsTakenForAnAddress(t *testing.T) {
	s, worker := apart(t, memoryStore(t), dashboard.Options{ShowPayloads: true})
	ctx := durable.NewContext(t.Context(), worker)
	odd := []string{"wait", "events", "cancel", "plan", "stream", "export", "branches", ".", "..", "history", "~.", "a%2Fb", "%", "a?b", "a#b", "a;b", "a b", "ä", "a+b", "a//b", "/a", "a/"}
	var made []string
	for _, id := range odd {
		if _, err := talking.Enqueue(ctx, id, 1); err == nil {
			made = append(made, id)
		}
	}
	require.GreaterOrEqual(t, len(made), 18)
	for _, id := range made {
		err := worker.Cancel(ctx, id, "because of "+id)
		_ = err
		soon, stop := context.WithTimeout(t.Context(), time.Minute)
		out, err := s.c.Wait(soon, id)
		stop()
		require.ErrorIs(t, err, client.ErrRunCancelled, id)
		require.Equal(t, id, out.Run.ID)
	}
	soon, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	_, err := s.c.Wait(soon, "")
	require.ErrorIs(t, err, client.ErrInvalid)
	_, err = s.c.GetRun(soon, "")
	require.ErrorIs(t, err, client.ErrInvalid)
	_, err = s.c.Signal(soon, "", "word", nil, "")
	require.ErrorIs(t, err, client.ErrInvalid)
	_, err = s.c.PauseQueue(soon, "", "")
	require.ErrorIs(t, err, client.ErrInvalid)
	_, err = s.c.TriggerSchedule(soon, "", "")
	require.ErrorIs(t, err, client.ErrInvalid)
}
