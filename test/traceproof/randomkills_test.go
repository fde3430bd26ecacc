package traceproof_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/otlptest"
	"github.com/holdfast-dev/holdfast/test/tried"
)

// mortality counts the places that a process comes to: bodies that begin and end,
// commits before and after, spans before and after their export. At the one that
// was drawn it kills itself, as kill -9 does.
type mortality struct{ left atomic.Int64 }

func (m *mortality) place() {
	if m.left.Add(-1) == 0 {
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
		select {} // it takes a moment
	}
}

// mortalStore dies before or after commits.
type mortalStore struct {
	store.Store
	m *mortality
}

func (s mortalStore) Commit(ctx context.Context, batch []store.Change) []error {
	s.m.place()
	errs := s.Store.Commit(ctx, batch)
	s.m.place()
	return errs
}

// mortalExport dies before or after the export of spans.
type mortalExport struct {
	sdktrace.SpanExporter
	m *mortality
}

func (x mortalExport) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	x.m.place()
	err := x.SpanExporter.ExportSpans(ctx, spans)
	x.m.place()
	return err
}

// The run of the proof, and the one it starts.
const (
	theRun   = "everything-1"
	theChild = "everything-1/kid"
)

// everything is a run with a bit of everything, as often as it can be killed.
func everything(m *mortality) (wf *durable.Workflow[int, int], all []durable.Definition) {
	flaky := func(ctx context.Context, name string, fails int) (int, error) {
		return durable.Retry(ctx, name, durable.Policy{MaxAttempts: fails + 2, Initial: time.Millisecond, Max: 2 * time.Millisecond}, func(ctx context.Context) (int, error) {
			m.place()
			defer m.place()
			if durable.Attempt(ctx).Number <= fails {
				return 0, errors.New("busy")
			}
			return fails, nil
		})
	}
	several := func(ctx context.Context, name string, n int) error {
		for i := range n {
			if _, err := flaky(ctx, fmt.Sprint(name, i), i%3); err != nil {
				return err
			}
		}
		return nil
	}
	kid := durable.Define("kid", func(ctx context.Context, _ int) (int, error) { return 1, several(ctx, "play", 3) })
	wf = durable.Define("everything", func(ctx context.Context, _ int) (int, error) {
		if err := several(ctx, "first", 3); err != nil {
			return 0, err
		}
		beside := durable.Go(ctx, "beside", func(ctx context.Context) (int, error) { return 0, several(ctx, "walk", 4) })
		if _, err := durable.Map(ctx, "lines", []int{1, 2, 3, 4, 5, 6}, durable.MapOptions{Concurrency: 2}, func(ctx context.Context, n int) (int, error) {
			return flaky(ctx, "wrap", n%2)
		}); err != nil {
			return 0, err
		}
		if _, err := beside.Wait(ctx); err != nil {
			return 0, err
		}
		if err := durable.Sleep(ctx, 20*time.Millisecond); err != nil {
			return 0, err
		}
		if _, err := durable.Await[int](ctx, "go"); err != nil {
			return 0, err
		}
		if err := several(ctx, "middle", 3); err != nil {
			return 0, err
		}
		if _, err := durable.Await[int](ctx, "approve", durable.Prompt("go on?")); err != nil {
			return 0, err
		}
		if _, err := kid.Run(ctx, theChild, 1); err != nil {
			return 0, err
		}
		return 1, several(ctx, "last", 2)
	})
	return wf, []durable.Definition{wf, kid}
}

// liveAtRandom is one of the processes: it dies at its place, or when it is told to.
func (o orders) liveAtRandom() error {
	ctx := context.Background()
	m := &mortality{}
	m.left.Store(int64(o.DieAt))
	st, err := o.open()
	if err != nil {
		return err
	}
	spans, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(o.OTLP+"/v1/traces"))
	if err != nil {
		return err
	}
	tracing := sdktrace.NewTracerProvider(sdktrace.WithSyncer(mortalExport{spans, m}), sdktrace.WithIDGenerator(durable.SpanIDs{}))
	wf, all := everything(m)
	eng, err := durable.Open(ctx, mortalStore{st, m}, durable.Options{
		Workflows: all, Lease: lease, TracerProvider: tracing, QuarantineAfter: 100, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	ctx = durable.NewContext(ctx, eng)
	if _, err := durable.Recover(ctx); err != nil {
		return err
	}
	caller := trace.ContextWithRemoteSpanContext(ctx, callerOf(o.Caller))
	run, err := wf.Start(caller, theRun, 0)
	if err != nil {
		return err
	}
	for o.DieAt > 0 { // the last one is not killed
		at, err := eng.Get(ctx, theRun)
		if err != nil {
			return err
		}
		if at.Status == store.Waiting && at.WakeAt == 0 {
			fmt.Println("waiting") // for somebody who answers in a later life
			select {}
		}
		if at.Status.Terminal() {
			return errors.New("it has ended before it was killed often enough")
		}
		time.Sleep(5 * time.Millisecond)
	}
	if _, err := run.Wait(ctx); err != nil {
		return err
	}
	return errors.Join(eng.Close(), tracing.Shutdown(context.Background()), st.Close())
}

// callerOf reads "trace id-span id".
func callerOf(s string) trace.SpanContext {
	traceID, spanID, _ := strings.Cut(s, "-")
	t, _ := trace.TraceIDFromHex(traceID)
	p, _ := trace.SpanIDFromHex(spanID)
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: t, SpanID: p, TraceFlags: trace.FlagsSampled, Remote: true})
}

const kills = 6

// killedAtRandom executes the run in seven processes, of which six are killed, and
// returns the trace id of its caller.
func killedAtRandom(t *testing.T, o orders, dice *rand.Rand) (traceID string) {
	ctx := t.Context()
	o.Random = true
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(o.OTLP+"/v1/traces"))
	require.NoError(t, err)
	tracing := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	_, caller := tracing.Tracer("web").Start(ctx, "POST /everything")
	caller.End()
	o.Caller = caller.SpanContext().TraceID().String() + "-" + caller.SpanContext().SpanID().String()

	// The people who answer are in a process that nobody kills.
	st, err := o.open()
	require.NoError(t, err)
	eng, err := durable.Open(ctx, st, durable.Options{TracerProvider: tracing, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() {
		require.NoError(t, eng.Close())
		require.NoError(t, st.Close())
	}()
	answer := func(name string) {
		web, span := tracing.Tracer("web").Start(durable.NewContext(ctx, eng), "POST /"+name)
		require.NoError(t, durable.Signal(web, theRun, name, 1))
		span.End()
	}
	for o.Life = range kills + 1 {
		switch o.Life {
		case 3:
			answer("go")
		case 5:
			answer("approve")
		}
		if o.DieAt = 1 + dice.IntN(40); o.Life == kills {
			o.DieAt = 0
		}
		p := start(t, o)
		if o.Life < kills {
			waits := p.died(t)
			t.Logf("life %d: place %d, waiting: %v", o.Life, o.DieAt, waits)
			if waits {
				p.kill(t)
			}
			if o.Life == 2 {
				// What is answered must be there: a life that was killed before it had
				// started the run is followed by one that does.
				for _, err := eng.Get(ctx, theRun); err != nil; _, err = eng.Get(ctx, theRun) {
					require.ErrorIs(t, err, durable.ErrNotFound)
					o.DieAt = 20
					if p := start(t, o); p.died(t) {
						p.kill(t)
					}
				}
			}
			continue
		}
		require.NoError(t, p.Wait())
	}
	return caller.SpanContext().TraceID().String()
}

// died reads what the child says until it is dead, or waits for somebody.
func (c *child) died(t *testing.T) (waits bool) {
	t.Helper()
	for c.out.Scan() {
		switch {
		case c.out.Text() == "waiting":
			return true
		case strings.HasPrefix(c.out.Text(), "error"):
			t.Fatalf("child: %s", c.out.Text())
		}
	}
	var exit interface{ ExitCode() int }
	require.ErrorAs(t, c.Wait(), &exit)
	require.Equal(t, -1, exit.ExitCode(), "it was killed")
	return false
}

// told is a run as its history tells it.
type told struct {
	row    store.Run
	events []store.Event
}

func historyOf(t *testing.T, o orders, id string) told {
	st, err := o.open()
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	h, err := st.Load(t.Context(), id, store.Cursor{})
	require.NoError(t, err)
	r := told{row: h.Run}
	for e, err := range h.Events {
		require.NoError(t, err)
		r.events = append(r.events, e)
	}
	return r
}

// scopeOf is the part of a key before the last slash: the goroutine it was made on.
func scopeOf(key string) string { return key[:strings.LastIndexByte(key, '/')+1] }

// attempts are what the history has the outcome of, by what their spans say; of
// each whether its span may be lost: it is the last thing that its goroutine has
// recorded before the process was killed, so that this was perhaps between the write
// and the export.
func (r told) attempts() map[string]bool {
	all := map[string]bool{}
	last := r.events[len(r.events)-1].Epoch
	for i, e := range r.events {
		outcome := map[store.Type]string{store.StepCompleted: "ok", store.StepFailed: "failed", store.AttemptFailed: "failed"}[e.Type]
		if outcome == "" || e.Attempt == 0 {
			continue
		}
		later := slices.ContainsFunc(r.events[i+1:], func(n store.Event) bool { return n.Epoch == e.Epoch && n.Key != "" && scopeOf(n.Key) == scopeOf(e.Key) })
		all[fmt.Sprintf("%s %s %s %d %s", r.row.ID, r.row.Workflow, e.Key, e.Attempt, outcome)] = !later && e.Epoch < last-1
	}
	return all
}

// segments are the contexts of the segments, in order, as "trace id-span id".
func (r told) segments(t *testing.T) (all []string) {
	for _, e := range r.events {
		var d struct{ Segment string }
		if len(e.Data) > 0 {
			require.NoError(t, json.Unmarshal(e.Data, &d))
		}
		if p := strings.Split(d.Segment, "-"); len(p) == 4 && !slices.Contains(all, p[1]+"-"+p[2]) {
			all = append(all, p[1]+"-"+p[2])
		}
	}
	return all
}

// stamped reports whether a span tells of a time over several processes, which may
// have begun before the span of this process that it is below.
func stamped(name string) bool {
	first, _, _ := strings.Cut(name, " ")
	return slices.Contains([]string{"end", "wait", "sleep", "child"}, first)
}

// requireTraceOf compares everything that was received with the histories.
func requireTraceOf(t *testing.T, o orders, traceID string, spans []otlptest.Span) {
	parent, kid := historyOf(t, o, theRun), historyOf(t, o, theChild)
	require.Equal(t, store.Completed, parent.row.Status)
	require.Equal(t, store.Completed, kid.row.Status)

	byID := map[string]otlptest.Span{}
	var roots []otlptest.Span
	for _, s := range spans {
		if s.Name == "POST /go" || s.Name == "POST /approve" || s.Name == "signal go" || s.Name == "signal approve" {
			byID[s.ID] = s
			continue // of the people who answer: traces of their own
		}
		require.Equal(t, traceID, s.TraceID, "%s is of the one trace", s.Name)
		require.NotEmpty(t, s.ID)
		require.False(t, s.End.Before(s.Begin), s.Name)
		if before, twice := byID[s.ID]; twice {
			require.True(t, strings.HasPrefix(s.Name, "start "), "%s came twice", s.Name)
			require.Equal(t, before.Name, s.Name)
			require.Equal(t, before.Parent, s.Parent)
			require.Equal(t, before.Attributes, s.Attributes)
			require.True(t, before.Begin.Equal(s.Begin), "%s: %s and %s", s.Name, before.Begin, s.Begin)
		}
		byID[s.ID] = s
		if s.Parent == "" {
			roots = append(roots, s)
		}
	}
	require.Len(t, roots, 1)
	require.Equal(t, "POST /everything", roots[0].Name)
	want := parent.attempts()
	for k, v := range kid.attempts() {
		want[k] = v
	}
	got, named := map[string]int{}, map[string]int{}
	segments := map[string][]string{theRun: parent.segments(t), theChild: kid.segments(t)}
	for _, s := range byID {
		if s.Parent != "" {
			above, there := byID[s.Parent]
			require.True(t, there, "%s has a parent that never came", s.Name)
			if !stamped(s.Name) {
				require.False(t, s.Begin.Before(above.Begin), "%s begins at %s, before %s at %s", s.Name, s.Begin, above.Name, above.Begin)
			} else {
				require.False(t, s.Begin.Before(roots[0].Begin), "%s begins before everything", s.Name)
			}
			if strings.HasPrefix(s.Name, "item ") {
				require.Equal(t, "map lines", above.Name)
			}
		}
		named[s.Name]++
		id := fmt.Sprint(s.Attributes["durable.run.id"])
		switch kind, _, _ := strings.Cut(s.Name, " "); kind {
		case "attempt":
			if o := s.Attributes["durable.outcome"]; o == "ok" || o == "failed" {
				got[fmt.Sprintf("%v %v %v %v %v", id, s.Attributes["durable.workflow.name"], s.Attributes["durable.step.key"], s.Attributes["durable.step.attempt"], o)]++
				require.Equal(t, o == "failed", s.Failed)
			}
		case "segment":
			n := slices.Index(segments[id], s.TraceID+"-"+s.ID)
			require.GreaterOrEqual(t, n, 0, "a segment is in the history before it is a span")
			if n == 0 {
				require.Empty(t, s.Links)
			} else {
				require.Len(t, s.Links, 1)
				require.Equal(t, segments[id][n-1], s.Links[0].TraceID+"-"+s.Links[0].ID)
				require.Equal(t, "previous", s.Links[0].Attributes["durable.link"])
			}
		case "wait":
			require.Len(t, s.Links, 1, s.Name)
			require.Equal(t, strings.Replace(s.Name, "wait", "signal", 1), byID[s.Links[0].ID].Name)
			require.Equal(t, "sender", s.Links[0].Attributes["durable.link"])
		case "child":
			require.Len(t, s.Links, 1)
			require.Contains(t, segments[theChild], s.Links[0].TraceID+"-"+s.Links[0].ID)
			require.Equal(t, "child", s.Links[0].Attributes["durable.link"])
		}
	}
	for k, n := range got {
		require.Contains(t, want, k, "it is in the history")
		require.Equal(t, 1, n, k)
	}
	lost := 0
	for k, mayBeLost := range want {
		if got[k] == 0 {
			require.True(t, mayBeLost, "%s has no span", k)
			lost++
		}
	}
	t.Logf("%d spans, %d attempts, of which %d were lost between their write and their export", len(byID), len(want), lost)
	require.Equal(t, 1, named["start everything"])
	require.Equal(t, 1, named["start kid"])
	require.Equal(t, 1, named["end everything"])
	require.Equal(t, 1, named["signal go"])
	require.GreaterOrEqual(t, named["map lines"], 1)
}

// Wherever six of seven processes are killed, what has arrived at a receiver is one
// tree that tells what the history has, and nothing else.
func TestTheTraceOfSevenLivesThatAreKilledAtRandomEqualsTheHistory(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	rounds := 1
	if os.Getenv("DURABLE_SOAK") != "" {
		rounds = 50
	}
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			backends(t, func(t *testing.T, o orders, r *otlptest.Receiver) {
				traceID := killedAtRandom(t, o, dice)
				requireTraceOf(t, o, traceID, r.Spans())
				tried.Say(t, "traces", "traces=1 lives=%d wrong=0", kills+1)
			})
		})
	}
}
