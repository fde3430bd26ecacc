package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

type draft struct {
	Text  string
	Score int
}

func TestSeekKeepsWhatItRefusesAndGoesOnThereAfterACrash(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		held := false
		var seenBy [][]draft
		wf := durable.Define("w", func(ctx context.Context, goal int) (draft, error) {
			return durable.Seek(ctx, "write", durable.Policy{MaxAttempts: 6, Initial: time.Second, Jitter: -1},
				func(ctx context.Context) (draft, error) {
					a := durable.Attempt(ctx)
					var before []draft
					for _, f := range a.Failures {
						var d draft
						ok, err := f.Output(&d)
						require.NoError(t, err)
						require.Equal(t, f.Attempt != 2, ok, "attempt 2 failed without an output")
						before = append(before, d)
					}
					seenBy = append(seenBy, before)
					if a.Number == 2 {
						return draft{}, errors.New("no idea")
					}
					if a.Number == 4 && !held {
						held = true
						<-ctx.Done()
						return draft{}, ctx.Err()
					}
					return draft{fmt.Sprint("draft ", a.Number), 10 * a.Number}, nil
				},
				func(d draft) error {
					if d.Score < goal {
						return fmt.Errorf("%d is not enough", d.Score)
					}
					return nil
				})
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 50)
		pass(time.Minute)
		require.True(t, held)
		w.reboot(t, with(wf))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, draft{"draft 5", 50}, out)
		one, three, four := draft{"draft 1", 10}, draft{"draft 3", 30}, draft{"draft 4", 40}
		require.Equal(t, [][]draft{nil, {one}, {one, {}}, {one, {}, three}, {one, {}, three}, {one, {}, three, four}}, seenBy)
		require.Equal(t, []string{
			"workflow_created", "workflow_started", "attempt_failed write 1", "attempt_failed write 2", "attempt_failed write 3",
			"run_resumed", "step_started write", "attempt_failed write 4", "step_completed write", "workflow_completed",
		}, w.story("r"))
	})
}

// The check sees what the replay will return, not what the body held in hand.
func TestSeekChecksTheValueAsItIsKept(t *testing.T) {
	live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) (any, error) {
		return durable.Seek(ctx, "s", durable.Policy{}, func(context.Context) (any, error) { return 7, nil },
			func(v any) error { require.IsType(t, 0.0, v); return nil })
	})
	require.Equal(t, live, replay)
}

func TestSeekGivesUpWithTheLastVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		verdict error
		bodies  int
	}{
		"retried":   {errStock, 3},
		"permanent": {durable.Permanent(errStock), 1},
	} {
		t.Run(name, func(t *testing.T) {
			bodies := 0
			live, replay := liveAndReplayed(t, registered(), func(ctx context.Context) (int, error) {
				return durable.Seek(ctx, "s", durable.Policy{MaxAttempts: 3, Initial: 1}, func(context.Context) (int, error) { bodies++; return 1, nil },
					func(int) error { return c.verdict })
			})
			require.ErrorIs(t, live.err, errStock)
			require.Equal(t, live, replay)
			require.Zero(t, live.value)
			require.Equal(t, c.bodies, bodies)
		})
	}
}

func TestAPanicInTheCheckIsAFailedAttempt(t *testing.T) {
	live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) (int, error) {
		return durable.Seek(ctx, "s", durable.Policy{MaxAttempts: 2, Initial: 1}, one, func(int) error { panic("judge is ill") })
	})
	require.ErrorContains(t, live.err, "attempt 2 of 2: panic: judge is ill")
	require.Equal(t, live, replay)
}

func TestNotesStayWithTheirAttempt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			durable.Note(ctx, "lost", 1) // not in a step
			return durable.Retry(ctx, "s", durable.Policy{Initial: time.Second}, func(ctx context.Context) (int, error) {
				n := durable.Attempt(ctx).Number
				durable.Note(ctx, "n", n)
				durable.Note(ctx, "n", n*10) // the later one counts
				durable.Note(ctx, "channel", make(chan int))
				durable.Note(ctx, "huge", strings.Repeat("x", 65<<10))
				done := make(chan struct{})
				for i := range 8 { // from goroutines, too
					go func() { durable.Note(ctx, fmt.Sprint("g", i), i); done <- struct{}{} }()
				}
				for range 8 {
					<-done
				}
				return untilThird(ctx, n)
			})
		})
		w.serve(t, wf)
		_, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		var notes []string
		for _, e := range w.events("r") {
			if e.Type == store.AttemptFailed || e.Type == store.StepCompleted {
				i := strings.Index(string(e.Data), `"notes":`)
				require.Positive(t, i, "%s", e.Data)
				notes = append(notes, string(e.Data[i:]))
				require.NotContains(t, string(e.Data), "huge")
				require.NotContains(t, string(e.Data), "channel")
				require.Contains(t, string(e.Data), `"g7":7`)
			}
		}
		require.Len(t, notes, 3)
		for i, n := range notes {
			require.Contains(t, n, fmt.Sprintf(`"n":%d`, (i+1)*10))
		}
		require.Len(t, w.log.find("a note is dropped"), 6)
		require.Len(t, w.log.find("Note was called outside a step"), 1)
	})
}
