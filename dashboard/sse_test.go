package dashboard_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
)

// message is one message of a stream, as it came.
type message struct{ event, id, data string }

// stream opens a stream and returns what comes.
func (s *site) stream(ctx context.Context, path, lastID string) (next func() (message, bool)) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, "GET", s.url+path, nil)
	require.NoError(s.t, err)
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(s.t, err)
	require.Equal(s.t, 200, resp.StatusCode)
	require.Equal(s.t, "text/event-stream", resp.Header.Get("Content-Type"))
	s.t.Cleanup(func() { resp.Body.Close() })
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 1<<20)
	return func() (message, bool) {
		var m message
		for in.Scan() {
			name, value, _ := strings.Cut(in.Text(), ": ")
			switch name {
			case "event":
				m.event = value
			case "id":
				m.id = value
			case "data":
				m.data = value
			case "":
				if m.event != "" {
					return m, true
				}
			}
		}
		return m, false
	}
}

func TestAStreamBeginsWithWhatIsAskedAndGoesOnBehindTheLastEvent(t *testing.T) {
	onEveryStore(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.asks("r")
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		next := s.stream(ctx, "/api/runs/r/stream", "3")
		var order []string
		var first string
		for range 5 {
			m, ok := next()
			require.True(t, ok)
			order = append(order, m.event)
			if m.event == "event" && first == "" {
				first = m.id
			}
		}
		require.Equal(t, []string{"run", "executor", "approval", "event", "event"}, order)
		require.Equal(t, "4", first, "behind Last-Event-ID")
		_, err := s.c.Approve(t.Context(), "r", "", "")
		require.NoError(t, err)
		var types []string
		for {
			m, ok := next()
			require.True(t, ok, "it says when it ends")
			if m.event == "end" {
				break
			}
			types = append(types, m.event)
			require.NotContains(t, m.data, "secret-shelf", "no user data in a stream")
		}
		require.Contains(t, types, "event")
		_, ok := next()
		require.False(t, ok)
	})
}

// The id of a run that was deleted may be used again.
func TestAClientThatHasSeenAnEarlierRunWithTheIDSeesAllOfThisOne(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.asks("r")
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		next := s.stream(ctx, "/api/runs/r/stream", "1000")
		for seen := ""; seen != "1"; {
			m, ok := next()
			require.True(t, ok)
			seen = m.id
		}
		_, err := s.c.Approve(t.Context(), "r", "", "")
		require.NoError(t, err)
		last := ""
		for m, ok := next(); ok && m.event != "end"; m, ok = next() {
			last = cmp.Or(m.id, last)
		}
		require.Equal(t, strconv.FormatInt(s.until("r", "completed").LastSeq, 10), last)
	})
}

func TestLateWatchersSeeAllThatEarlyOnesSaw(t *testing.T) {
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.shop.hang = make(chan struct{})
		s.start("r")
		seen := func() []int64 {
			var seqs []int64
			for u, err := range s.c.Watch(t.Context(), "r", 0) {
				require.NoError(t, err)
				if u.Event != nil {
					seqs = append(seqs, u.Event.Seq)
				}
				if u.Approval != nil {
					_, _ = s.c.Approve(t.Context(), "r", "", "")
				}
				if u.Event != nil && u.Event.Type == "wait_requested" {
					_, err := s.c.Approve(t.Context(), "r", "", "")
					if err != nil {
						require.ErrorIs(t, err, client.ErrConflict)
					}
				}
			}
			return seqs
		}
		early := make(chan []int64, 8)
		for range 8 {
			go func() { early <- seen() }()
		}
		s.shop.hang <- struct{}{}
		s.until("r", "completed")
		want := seen()
		require.NotEmpty(t, want)
		for i, n := range want {
			require.EqualValues(t, i+1, n, "no gap")
		}
		for range 8 {
			require.Equal(t, want, <-early)
		}
	})
}

func TestAClientThatLosesItsConnectionMissesNothing(t *testing.T) {
	t.Parallel() // it mostly waits
	s := open(t, memoryStore(t), dashboard.Options{})
	many := durable.Define("many", func(ctx context.Context, _ string) (int, error) {
		for i := range 60 {
			if err := durable.Do(ctx, fmt.Sprintf("s%d", i), func(context.Context) error { time.Sleep(2 * time.Millisecond); return nil }); err != nil {
				return 0, err
			}
		}
		return 60, nil
	})
	s.serve(durable.Options{Workflows: []durable.Definition{many}}, dashboard.Options{})
	_, err := s.c.Start(t.Context(), "many", client.StartRequest{ID: "r"})
	require.NoError(t, err)
	cut := &cutting{every: 3000}
	c, err := client.New(s.url, client.Options{HTTPClient: &http.Client{Transport: cut}})
	require.NoError(t, err)
	var seqs []int64
	again := 0
	for u, err := range c.Watch(t.Context(), "r", 0) {
		require.NoError(t, err)
		if u.Event != nil {
			seqs = append(seqs, u.Event.Seq)
		}
		if u.Reconnected {
			again++
		}
	}
	require.Positive(t, again)
	require.Len(t, seqs, 63)
	for i, n := range seqs {
		require.EqualValues(t, i+1, n)
	}
}

// cutting is a network that breaks after some bytes.
type cutting struct{ every int }

func (c *cutting) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		resp.Body = &cutBody{resp.Body, c.every}
	}
	return resp, err
}

type cutBody struct {
	body interface {
		Read([]byte) (int, error)
		Close() error
	}
	left int
}

func (b *cutBody) Close() error { return b.body.Close() }

func (b *cutBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the cable was cut: %w", http.ErrServerClosed)
	}
	n, err := b.body.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func TestAStreamSaysWhenNobodyExecutesTheRun(t *testing.T) {
	t.Parallel() // it mostly waits
	st := memoryStore(t)
	s := open(t, st, dashboard.Options{})
	s.asks("r")
	require.NoError(t, s.eng.Close())
	s.serve(durable.Options{}, dashboard.Options{Heartbeat: 1500 * time.Millisecond}) // knows no workflow; longer than the list of executors is kept
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	told := false
	for u, err := range s.c.Watch(ctx, "r", 0) {
		require.NoError(t, err)
		if u.Executor == nil {
			continue
		}
		if !told {
			require.False(t, u.Executor.Executed)
			require.Contains(t, u.Executor.Nobody, "nobody alive serves workflow checkout")
			told = true
			eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{s.shop.workflow()}})
			require.NoError(t, err)
			defer eng.Close()
			continue
		}
		require.True(t, u.Executor.Executed, "and when somebody does again")
		break
	}
	require.True(t, told)
}

func TestAStreamOfARunThatNobodyExecutesEndsAndSaysSo(t *testing.T) {
	st := memoryStore(t)
	s := open(t, st, dashboard.Options{})
	asked := s.asks("r")
	require.NoError(t, s.eng.Close())
	s.serve(durable.Options{}, dashboard.Options{Heartbeat: 50 * time.Millisecond}) // knows no workflow
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	watch := func(after int64) (events int, last *client.Executed) {
		for u, err := range s.c.Watch(ctx, "r", after) {
			require.NoError(t, err)
			if last = u.Executor; u.Event != nil {
				events++
			}
			require.False(t, u.Reconnected, "it is no broken connection")
		}
		require.NoError(t, ctx.Err(), "the stream does not end")
		return events, last
	}
	events, last := watch(0)
	require.EqualValues(t, asked.LastSeq, events, "all that was recorded came first")
	require.NotNil(t, last)
	require.False(t, last.Executed)
	require.Contains(t, last.Nobody, "nobody alive serves workflow checkout")
	_, last = watch(int64(events))
	require.NotNil(t, last, "and again for who comes back")

	raw := s.stream(ctx, "/api/runs/r/stream", "")
	end := ""
	for m, ok := raw(); ok; m, ok = raw() {
		end = m.event + " " + m.data
	}
	require.Contains(t, end, "end {")
	require.Contains(t, end, `"executed":false`)
	require.Contains(t, end, `"nobody":"nobody alive serves workflow checkout`)

	s.serve(durable.Options{Workflows: []durable.Definition{s.shop.workflow()}}, dashboard.Options{Heartbeat: 20 * time.Millisecond})
	live, leave := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer leave()
	for u, err := range s.c.Watch(live, "r", 0) {
		require.NoError(t, err)
		require.True(t, u.Executor == nil || u.Executor.Executed)
	}
	require.ErrorIs(t, live.Err(), context.DeadlineExceeded, "a run that waits for a person where it is served is followed on")
}

func TestAClientThatLeavesDoesNotStopARun(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.shop.hang = make(chan struct{})
	s.start("r")
	for range 5 {
		ctx, stop := context.WithCancel(t.Context())
		next := s.stream(ctx, "/api/runs/r/stream", "")
		_, ok := next()
		require.True(t, ok)
		stop()
	}
	require.Eventually(t, func() bool {
		h, err := s.c.Health(t.Context())
		return err == nil && h.Streams == 0
	}, time.Minute, 5*time.Millisecond, "what they used is freed")
	s.shop.hang <- struct{}{}
	s.until("r", "waiting")
}

func TestStreamsAreCounted(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{MaxStreams: 3, MaxStreamsPerClient: 2})
	s.asks("r")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range 2 {
		_, ok := s.stream(ctx, "/api/stream", "")()
		require.True(t, ok)
	}
	a := s.send("GET", "/api/runs/r/stream", "")
	require.Equal(t, http.StatusTooManyRequests, a.status)
	for _, err := range s.c.Watch(t.Context(), "r", 0) {
		require.ErrorIs(t, err, client.ErrBusy)
	}
	require.Equal(t, http.StatusForbidden, s.send("GET", "/api/stream", "", "Sec-Fetch-Site: cross-site").status)
	require.Equal(t, 200, s.send("HEAD", "/api/stream", "").status, "takes no place, and ends")
	require.Equal(t, 400, s.send("GET", "/api/runs/r/stream", "", "Last-Event-ID: x").status)
	require.Equal(t, 404, open(t, memoryStore(t), dashboard.Options{}).send("GET", "/api/runs/nobody/stream", "").status)
}

func TestTheListIsWatchedLive(t *testing.T) {
	t.Parallel() // it mostly waits
	onStores(t, dashboard.Options{}, func(t *testing.T, s *site) {
		s.asks("old")
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		statuses := map[string]bool{}
		asked := map[string]bool{}
		started := false
		for u, err := range s.c.WatchRuns(ctx) {
			require.NoError(t, err)
			switch {
			case u.Approval != nil:
				asked[u.Approval.RunID] = true
			case u.Run != nil:
				statuses[u.Run.ID+" "+u.Run.Status] = true
			}
			if u.Counts != nil && !started {
				started = true
				s.asks("new")
				_, err := s.c.Approve(ctx, "old", "", "")
				require.NoError(t, err)
			}
			if statuses["new waiting"] && statuses["old completed"] && asked["new"] && asked["old"] {
				return
			}
		}
		t.Fatalf("not everything came: %v %v", statuses, asked)
	})
}

func TestTwoHundredWatchersOfOneRunAllSeeItsEnd(t *testing.T) {
	s := open(t, memoryStore(t), dashboard.Options{})
	s.shop.hang = make(chan struct{})
	s.start("r")
	var all sync.WaitGroup
	ended := make(chan int, 200)
	for range 200 {
		all.Go(func() {
			n := 0
			for u, err := range s.c.Watch(t.Context(), "r", 0) {
				if err != nil {
					t.Error(err)
				}
				if u.Event != nil {
					n++
				}
			}
			ended <- n
		})
	}
	require.Eventually(t, func() bool {
		h, err := s.c.Health(t.Context())
		return err == nil && h.Streams == 200
	}, 20*time.Second, 10*time.Millisecond)
	s.shop.hang <- struct{}{}
	s.until("r", "waiting")
	_, err := s.c.Approve(t.Context(), "r", "", "")
	require.NoError(t, err)
	all.Wait()
	page, err := s.c.Events(t.Context(), "r", client.EventsOptions{})
	require.NoError(t, err)
	for range 200 {
		require.Equal(t, len(page.Events), <-ended)
	}
}
