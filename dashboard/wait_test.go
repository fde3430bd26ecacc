package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// hanging hears of each run that was told to hang and does.
var hanging = make(chan struct{}, 10)

// talk waits for a word and returns it with its input.
func talk(ctx context.Context, n int) (map[string]any, error) {
	word, err := durable.Await[string](ctx, "word")
	switch {
	case err != nil:
		return nil, err
	case word == "fail":
		return nil, durable.Permanent(errors.New("not that word"))
	case word == "hang":
		return nil, durable.Do(ctx, "hang", func(ctx context.Context) error {
			hanging <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		})
	case word == "long":
		word = strings.Repeat("long ", 100_000)
	}
	return map[string]any{"word": word, "n": n}, nil
}

var talking = durable.Define("talk", talk)

// apart starts a server whose process executes nothing, and a worker on the same store.
func apart(t *testing.T, st store.Store, o dashboard.Options, queues ...durable.Queue) (s *site, worker *durable.Engine) {
	t.Helper()
	s = &site{t: t, st: st}
	s.serve(durable.Options{}, o)
	worker, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{talking}, Queues: queues, Logger: slog.New(slog.DiscardHandler), Grace: -1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, worker.Close()) })
	_, err = worker.Recover(t.Context())
	require.NoError(t, err)
	return s, worker
}

func onApart(t *testing.T, o dashboard.Options, test func(t *testing.T, s *site, worker *durable.Engine)) {
	for name, open := range map[string]func(*testing.T) store.Store{"memory": memoryStore, "sqlite": sqliteStore, "postgres": postgresStore} {
		t.Run(name, func(t *testing.T) {
			s, worker := apart(t, open(t), o, durable.Queue{Name: "calls", Max: 2})
			test(t, s, worker)
		})
	}
}

// What a program does that executes nothing: start, signal, wait, list, cancel.
func TestAClientStartsSignalsAndWaitsForRunsOfOthers(t *testing.T) {
	onApart(t, dashboard.Options{ShowPayloads: true}, func(t *testing.T, s *site, _ *durable.Engine) {
		ctx := t.Context()
		req := client.StartRequest{ID: "r", Input: json.RawMessage("7"), Queue: "calls", Partition: "acme", Priority: 3, Dedup: "d"}
		done, err := s.c.Start(ctx, "talk", req)
		require.NoError(t, err)
		require.Equal(t, "r", done.RunID)
		_, err = s.c.Start(ctx, "talk", req)
		require.NoError(t, err, "again: the same run")

		_, err = s.c.Start(ctx, "talk", client.StartRequest{ID: "r2", Queue: "calls", Dedup: "d"})
		var e *client.Error
		require.ErrorAs(t, err, &e)
		require.ErrorIs(t, err, client.ErrConflict)
		require.Equal(t, "duplicate r", e.Code+" "+e.Holder)

		_, err = s.c.Signal(ctx, "r", "word", json.RawMessage(`"hello"`), "s-1")
		require.NoError(t, err)
		out, err := s.c.Wait(ctx, "r")
		require.NoError(t, err)
		var got struct {
			Word string
			N    int
		}
		require.NoError(t, out.Decode(&got))
		require.Equal(t, "hello 7", fmt.Sprint(got.Word, " ", got.N))
		require.Equal(t, "calls acme 3", fmt.Sprint(out.Run.Queue, " ", out.Run.Partition, " ", out.Run.Priority))

		runs, err := s.c.ListRuns(ctx, client.ListOptions{Queues: []string{"calls"}})
		require.NoError(t, err)
		require.Len(t, runs.Runs, 1)
	})
}

func TestWaitTellsHowARunEnded(t *testing.T) {
	onApart(t, dashboard.Options{ShowPayloads: true, Heartbeat: 50 * time.Millisecond}, func(t *testing.T, s *site, worker *durable.Engine) {
		ctx := t.Context()
		start := func(id string) {
			t.Helper()
			_, err := s.c.Start(ctx, "talk", client.StartRequest{ID: id, Input: json.RawMessage("1"), Enqueue: true})
			require.NoError(t, err)
		}
		say := func(id, word string) {
			t.Helper()
			_, err := s.c.Signal(ctx, id, "word", json.RawMessage(`"`+word+`"`), "")
			require.NoError(t, err)
		}

		start("failed")
		say("failed", "fail")
		_, err := s.c.Wait(ctx, "failed")
		var ended *client.RunError
		require.ErrorAs(t, err, &ended)
		require.ErrorIs(t, err, client.ErrRunFailed)
		require.Contains(t, ended.Reason, "not that word")

		start("cancelled")
		_, err = s.c.Cancel(ctx, "cancelled", "enough")
		require.NoError(t, err)
		_, err = s.c.Wait(ctx, "cancelled")
		require.ErrorIs(t, err, client.ErrRunCancelled)
		require.ErrorContains(t, err, "enough")

		start("long")
		say("long", "long")
		out, err := s.c.Wait(ctx, "long")
		require.NoError(t, err)
		var long struct{ Word string }
		require.NoError(t, out.Decode(&long), "what is longer than an answer is downloaded")
		require.Len(t, long.Word, 500_000)

		_, err = s.c.Wait(ctx, "nowhere")
		require.ErrorIs(t, err, client.ErrNotFound)

		// Several heartbeats pass, and then the context ends: the run goes on.
		start("later")
		soon, stop := context.WithTimeout(ctx, 200*time.Millisecond)
		defer stop()
		_, err = s.c.Wait(soon, "later")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		waited := make(chan error, 1)
		go func() {
			_, err := s.c.Wait(ctx, "later")
			waited <- err
		}()
		say("later", "now")
		require.NoError(t, <-waited)

		// Nobody is left who would continue it.
		start("left")
		say("left", "hang")
		<-hanging
		require.NoError(t, worker.Close())
		_, err = s.c.Wait(ctx, "left")
		var interrupted *client.InterruptedError
		require.ErrorAs(t, err, &interrupted)
		require.Contains(t, interrupted.Next, "nobody alive serves workflow talk")
	})
}

func TestWaitShowsAnOutputOnlyToWhoMaySeeIt(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.asks("r")
	_, err := s.c.Approve(t.Context(), "r", "", "")
	require.NoError(t, err)
	out, err := s.c.Wait(t.Context(), "r")
	require.NoError(t, err, "that it has completed is no user data")
	require.True(t, out.Output.Redacted)
	require.Nil(t, out.Output.Value)
	var v string
	require.ErrorIs(t, out.Decode(&v), client.ErrForbidden)
	require.NotContains(t, s.send("GET", "/api/runs/r/wait", "").body, "parcel")
}

// A server that goes away and one that comes back at the same address.
func TestWaitGoesOnWhenTheServerIsReplaced(t *testing.T) {
	st := memoryStore(t)
	s, _ := apart(t, st, dashboard.Options{ShowPayloads: true})
	_, err := s.c.Start(t.Context(), "talk", client.StartRequest{ID: "r", Input: json.RawMessage("1"), Enqueue: true})
	require.NoError(t, err)

	down, stop := context.WithCancel(context.Background())
	defer stop()
	l, err := dashboard.Listen(t.Context(), "127.0.0.1:0", dashboard.Options{})
	require.NoError(t, err)
	first := make(chan error, 1)
	go func() {
		first <- dashboard.Serve(down, l, s.eng, dashboard.Options{ShowPayloads: true, Logger: slog.New(slog.DiscardHandler)})
	}()
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	c, err := client.New("http://"+l.Addr().String(), client.Options{HTTPClient: &http.Client{Transport: transport}})
	require.NoError(t, err)
	waited := make(chan error, 1)
	go func() {
		_, err := c.Wait(t.Context(), "r")
		waited <- err
	}()
	require.Eventually(t, func() bool {
		h, err := c.Health(t.Context())
		return err == nil && h.Streams == 1
	}, time.Minute, time.Millisecond, "a wait is counted with the streams")
	stop()
	require.NoError(t, <-first)
	select {
	case err := <-waited:
		t.Fatalf("Wait has returned: %v", err)
	default:
	}

	again := httptest.NewUnstartedServer(dashboard.Handler(s.eng, dashboard.Options{ShowPayloads: true}))
	again.Listener.Close()
	again.Listener, err = dashboard.Listen(t.Context(), l.Addr().String(), dashboard.Options{})
	require.NoError(t, err)
	again.Start()
	defer again.Close()
	_, err = s.c.Signal(t.Context(), "r", "word", json.RawMessage(`"hi"`), "")
	require.NoError(t, err)
	require.NoError(t, <-waited)
}

// More waits than the server lets in at once: those beyond try again.
func TestMoreWaitsThanTheServerTakesAllEnd(t *testing.T) {
	s, _ := apart(t, memoryStore(t), dashboard.Options{ShowPayloads: true, MaxStreamsPerClient: 2, Heartbeat: 20 * time.Millisecond})
	waited := make(chan error, 5)
	for i := range cap(waited) {
		id := fmt.Sprint("r", i)
		_, err := s.c.Start(t.Context(), "talk", client.StartRequest{ID: id, Input: json.RawMessage("1"), Enqueue: true})
		require.NoError(t, err)
		go func() {
			_, err := s.c.Wait(t.Context(), id)
			waited <- err
		}()
	}
	for i := range cap(waited) {
		_, err := s.c.Signal(t.Context(), fmt.Sprint("r", i), "word", json.RawMessage(`"x"`), "")
		require.NoError(t, err)
	}
	for range cap(waited) {
		require.NoError(t, <-waited)
	}
}

func TestAStartOverHTTPTakesTheOptionsOfAQueue(t *testing.T) {
	s, _ := apart(t, memoryStore(t), dashboard.Options{}, durable.Queue{Name: "calls"})
	ctx := t.Context()
	at := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	_, err := s.c.Start(ctx, "talk", client.StartRequest{ID: "at", StartAt: at})
	require.NoError(t, err)
	run, err := s.c.GetRun(ctx, "at")
	require.NoError(t, err)
	require.Equal(t, "pending "+at.UTC().String(), run.Status+" "+run.WakeAt.UTC().String())

	_, err = s.c.Start(ctx, "talk", client.StartRequest{ID: "delay", DelayMS: 3_600_000, DeadlineMS: 7_200_000})
	require.NoError(t, err)
	run, err = s.c.GetRun(ctx, "delay")
	require.NoError(t, err)
	require.Equal(t, "1h0m0s 2h0m0s", run.WakeAt.Sub(run.CreatedAt).String()+" "+run.DeadlineAt.Sub(run.CreatedAt).String())

	one, err := s.c.Start(ctx, "talk", client.StartRequest{Input: json.RawMessage("1"), Debounce: &client.Debounce{Key: "k", WaitMS: 3_600_000, MostMS: 3_600_000}})
	require.NoError(t, err)
	two, err := s.c.Start(ctx, "talk", client.StartRequest{Input: json.RawMessage("2"), Debounce: &client.Debounce{Key: "k", WaitMS: 3_600_000, MostMS: 3_600_000}})
	require.NoError(t, err)
	require.Equal(t, one.RunID, two.RunID)

	for name, bad := range map[string]client.StartRequest{
		"partition without queue": {Partition: "a"},
		"priority":                {Priority: 1001},
		"delay":                   {DelayMS: -1},
		"a delay of ages":         {DelayMS: 1 << 62},
		"both times":              {DelayMS: 1, StartAt: at},
		"queue":                   {Queue: "a\nb"},
		"deadline":                {DeadlineMS: -5},
		"debounce with an id":     {ID: "x", Debounce: &client.Debounce{Key: "k", WaitMS: 1, MostMS: 1}},
	} {
		_, err := s.c.Start(ctx, "talk", bad)
		require.ErrorIs(t, err, client.ErrInvalid, name)
	}
	// Who only enqueues need not wait for a program that is being replaced.
	_, err = s.c.Start(ctx, "nowhere", client.StartRequest{ID: "n"})
	require.ErrorIs(t, err, client.ErrNotFound)
	_, err = s.c.Start(ctx, "nowhere", client.StartRequest{ID: "n", Enqueue: true})
	require.NoError(t, err)
	_, err = s.c.Cancel(ctx, "n", "")
	require.NoError(t, err)
}

// The run that has a deduplication key may be one that the caller may not know of.
func TestAConflictNamesARunOnlyToWhoMayReadIt(t *testing.T) {
	s, worker := apart(t, memoryStore(t), dashboard.Options{Authorize: func(_ context.Context, a dashboard.Action, run string) error {
		if a == dashboard.ActionRead && strings.HasPrefix(run, "secret") {
			return errors.New("not yours")
		}
		return nil
	}})
	_, err := talking.Enqueue(durable.NewContext(t.Context(), worker), "secret-1", 1, durable.Dedup("d"), durable.Delay(time.Hour))
	require.NoError(t, err)
	got := s.send("POST", "/api/workflows/talk/runs", `{"id":"r","dedup":"d","enqueue":true}`)
	require.Equal(t, 409, got.status)
	require.Contains(t, got.body, `"duplicate"`)
	require.NotContains(t, got.body, "secret-1")
	_, err = s.c.Wait(t.Context(), "secret-1")
	require.ErrorIs(t, err, client.ErrForbidden)
}
