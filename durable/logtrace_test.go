package durable_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// brokenArchive takes nothing.
type brokenArchive struct{}

func (brokenArchive) Store(context.Context, string, []byte) error {
	return errors.New("the disk is full")
}

// eventful is a workflow of which much can be told.
func eventful(fail *bool) *durable.Workflow[int, int] {
	return durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		durable.Logger(ctx).Info("hello")
		a, err := durable.Step(ctx, "a", func(ctx context.Context) (int, error) {
			durable.Note(ctx, "bad", func() {})
			return 1, nil
		})
		if err != nil {
			return 0, err
		}
		if err := durable.Sleep(ctx, 24*time.Hour); err != nil {
			return 0, err
		}
		return durable.Retry(ctx, "b", durable.Policy{MaxAttempts: 2, Initial: time.Second}, func(context.Context) (int, error) {
			if *fail {
				return 0, errors.New("no")
			}
			return a, nil
		})
	})
}

// The walk below meets every line of the log that can be provoked without a
// broken store; those that remain go through the same functions, see
// TestLinesAboutARunAreWrittenWhereItsTraceIsKnown.
func TestEveryLineAboutARunNamesItsTrace(t *testing.T) {
	inTraceWorld(t, func(t *testing.T, w *traceWorld) {
		fail, log := true, new(lines)
		wf := eventful(&fail)
		holder := durable.Define("holder", func(ctx context.Context, _ int) (int, error) {
			return 0, durable.Do(ctx, "hold", func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
		})
		killer := durable.Define("killer", func(ctx context.Context, _ int) (int, error) {
			return 0, durable.Do(ctx, "die", func(ctx context.Context) error {
				time.Sleep(time.Second) // Recover has returned by then
				w.disk.cut()
				<-ctx.Done()
				return ctx.Err()
			})
		})
		boot := func(env string) {
			t.Setenv("HF_TEST_REGION", env)
			o := w.options(sdktrace.AlwaysSample(), wf, holder, killer)
			o.Logger = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			o.Capture = durable.Capture{Env: []string{"HF_TEST_REGION"}}
			w.boot(t, o)
		}
		begin := func(wf *durable.Workflow[int, int], id string) {
			_, err := wf.Start(w.ctx(), id, 0)
			require.NoError(t, err)
		}

		boot("eu")
		begin(killer, "killer")
		synctest.Wait()
		for w.row("killer").Status != store.Failed { // it is tried alone, and then set aside
			w.crash()
			w.expire()
			boot("us")
			pass(5 * time.Minute)
		}
		begin(holder, "cancelled")
		begin(holder, "paused")
		synctest.Wait()
		require.NoError(t, w.eng.Cancel(w.ctx(), "cancelled", "enough"))
		require.NoError(t, w.eng.Pause(w.ctx(), "paused", "later"))
		pass(time.Minute)

		// A failure, and what a person can do about one. While it sleeps the run
		// is unloaded, and cannot be read at once.
		begin(wf, "r")
		pass(time.Hour)
		reads := 0
		w.disk.tamperCalls(func(call string, forward func() error) error {
			if call == "load" && reads < 3 {
				reads++
				return errors.New("the network is down")
			}
			return forward()
		})
		pass(25 * time.Hour)
		w.disk.tamperCalls(nil)
		require.Equal(t, store.Failed, w.row("r").Status)
		var file bytes.Buffer
		require.NoError(t, operate.On(w.eng).Export(w.ctx(), "r", &file))
		_, err := operate.On(w.eng).Import(w.ctx(), &file, operate.ImportOptions{NewID: "imported"})
		require.NoError(t, err)
		fail = false
		_, err = operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: "forked"})
		require.NoError(t, err)
		_, err = operate.On(w.eng).Edit(w.ctx(), "r", "a", 5, operate.EditOptions{})
		require.NoError(t, err)
		_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{ResetFailures: true})
		require.NoError(t, err)
		pass(48 * time.Hour)
		require.Equal(t, store.Completed, w.row("r").Status)
		require.NoError(t, w.eng.Close())

		told := aboutRuns(t, w, log)
		for _, msg := range []string{
			"durable: run started", "hello", "durable: a note is dropped", "durable: attempt ended", "durable: run claimed", "durable: run cancelled",
			"durable: trying a run that ended its process before", "durable: run quarantined", "durable: step failed and is not tried again",
			"durable: the run is resumed in another environment than it was started in",
			"durable: a waiting run could not be loaded; it is tried again", "durable: run failed", "durable: run imported", "durable: run forked",
			"durable: a recorded result was edited", "durable: run completed",
		} {
			require.True(t, told[msg], "the walk did not come by %q, but by %v", msg, told)
		}
	})
}

func TestALineAboutAnArchiveThatFailsNamesTheTrace(t *testing.T) {
	inTraceWorld(t, func(t *testing.T, w *traceWorld) {
		log := new(lines)
		o := w.options(sdktrace.AlwaysSample(), twoSteps)
		o.Logger, o.Archive = slog.New(slog.NewJSONHandler(log, nil)), brokenArchive{}
		w.boot(t, o)
		_, err := twoSteps.Run(w.ctx(), "r", 0)
		require.NoError(t, err)
		synctest.Wait()
		require.True(t, aboutRuns(t, w, log)["[durable] git-store write failed for r: the disk is full"])
	})
}

// aboutRuns checks that all lines about runs name their traces, and returns
// their messages.
func aboutRuns(t *testing.T, w *traceWorld, log *lines) map[string]bool {
	t.Helper()
	told := map[string]bool{}
	for _, line := range log.all(t) {
		id, about := line["run"].(string)
		if !about {
			continue
		}
		trace := strings.Split(w.row(id).Trace, "-")
		require.Len(t, trace, 4, id)
		require.Equal(t, trace[1], line["trace_id"], line)
		told[line["msg"].(string)] = true
	}
	return told
}

// Lines about one run are written by run.logLine, runlog.Log.AboutRun and their like, which
// add its trace. Code that passes the id to the logger itself forgets the trace.
func TestLinesAboutARunAreWrittenWhereItsTraceIsKnown(t *testing.T) {
	raw := regexp.MustCompile(`log\.(Debug|Info|Warn|Error)\(.*("run",|row\.ID|[a-z]\.id\b|RunID)`)
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	room, err := filepath.Glob("../internal/runlog/*.go")
	require.NoError(t, err)
	require.NotEmpty(t, room)
	for _, name := range append(files, room...) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		code, err := os.ReadFile(name)
		require.NoError(t, err)
		for n, line := range strings.Split(string(code), "\n") {
			require.False(t, raw.MatchString(line) && !strings.Contains(line, `"executor"`), "%s:%d: %s", name, n+1, line)
		}
	}
}
