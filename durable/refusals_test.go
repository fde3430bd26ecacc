package durable_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// The items of a Map have longer keys than the Map: it is refused before it takes
// its place, and the function goes on.
func TestAMapWhoseItemsWouldHaveTooLongKeysIsRefusedAndTheFunctionGoesOn(t *testing.T) {
	var deep func(ctx context.Context, left int) (string, error)
	deep = func(ctx context.Context, left int) (string, error) {
		if left > 0 {
			n := min(left, store.MaxName)
			return durable.Go(ctx, strings.Repeat("n", n), func(ctx context.Context) (string, error) {
				return deep(ctx, max(left-n-1, 0))
			}).Wait(ctx)
		}
		items := func(name string) error {
			_, err := durable.Map(ctx, name, []int{1}, durable.MapOptions{}, func(_ context.Context, n int) (int, error) { return n, nil })
			return err
		}
		// The scope has 3888 bytes: with "/" and the name it is 4089, and the key of
		// item 0 would be 4092, that of the last one possible too long.
		var refused *store.NameError
		if err := items(strings.Repeat("m", 200)); !errors.As(err, &refused) {
			return "", fmt.Errorf("want a NameError, got %w", err)
		}
		if err := items("m"); err != nil {
			return "", err
		}
		return durable.Step(ctx, "after", func(context.Context) (string, error) { return "went on: " + refused.Reason, nil })
	}
	live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) (string, error) {
		return deep(ctx, 3888)
	})
	require.NoError(t, live.err)
	require.Contains(t, live.value, "went on")
	require.Contains(t, live.value, "at most 4084 are allowed for a Map")
	require.Equal(t, live, replay)
}

// A goroutine that a body has left behind asks for its own attempt, which does not
// change while others follow.
func TestWhatAnAttemptKnowsOfTheFailuresBeforeItDoesNotChangeWhileOthersFail(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		seen := make(chan int, 1)
		others := make(chan int, 50)
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Retry(ctx, "s", durable.Policy{MaxAttempts: 50, Initial: time.Microsecond}, func(ctx context.Context) (int, error) {
				n := durable.Attempt(ctx).Number
				if n == 1 {
					go func() {
						most := 0
						for range others {
							most = max(most, len(durable.Attempt(ctx).Failures))
						}
						seen <- most
					}()
				}
				others <- n
				if n < 50 {
					return 0, errors.New("again")
				}
				return len(durable.Attempt(ctx).Failures), nil
			})
		})
		w.serve(t, wf)
		got, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		require.Equal(t, 49, got)
		close(others)
		require.Zero(t, <-seen)
	})
}

func TestANoteThatReplacesAnotherTakesItsPlace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Step(ctx, "s", func(ctx context.Context) (int, error) {
				for n := range 30 {
					durable.Note(ctx, "progress", fmt.Sprint(n, strings.Repeat("x", 4<<10)))
				}
				return 0, nil
			})
		})
		w.serve(t, wf)
		_, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		for _, ev := range w.events("r") {
			if ev.Type == store.StepCompleted {
				require.Contains(t, string(ev.Data), `"29xxx`)
			}
		}
	})
}

// A pause that was acknowledged while a Jump has the run stopped holds.
func TestAPauseThatIsAskedForWhileAJumpStopsTheRunHolds(t *testing.T) {
	for _, when := range []string{"before the run has stopped", "once it is paused", "before the jump"} {
		t.Run(when, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				j := &journal{}
				wf := patient(j, "works")
				w.boot(t, with(wf))
				start(t, w, wf, "r", 0)
				pass(time.Minute)
				if when == "before the jump" {
					require.NoError(t, w.eng.Pause(w.ctx(), "r", "to jump back to event 7"))
				}
				jumped := make(chan error, 1)
				if when == "once it is paused" {
					asked := false
					w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
						if len(batch[0].Events) > 0 && batch[0].Events[0].Type == store.JumpRequested && !asked {
							asked = true
							require.NoError(t, w.eng.Pause(w.ctx(), "r", "lunch"))
						}
						return forward()
					})
				}
				go func() {
					_, err := operate.On(w.eng).Jump(w.ctx(), "r", seqOf(t, w, "r", "one"), operate.JumpOptions{})
					jumped <- err
				}()
				synctest.Wait()
				if when == "before the run has stopped" {
					require.NoError(t, w.eng.Pause(w.ctx(), "r", "lunch"))
				}
				require.NoError(t, <-jumped)
				pass(time.Hour)
				row := w.row("r")
				require.True(t, row.Paused)
				require.EqualValues(t, 1, row.Branch)
				require.Equal(t, []int{1}, j.counts("two/1"))

				// So it does when the run is taken back again.
				_, err := operate.On(w.eng).Jump(w.ctx(), "r", seqOf(t, w, "r", "one"), operate.JumpOptions{})
				require.NoError(t, err)
				require.True(t, w.row("r").Paused)
				require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
				_, err = wait(t, w, wf, "r")
				require.NoError(t, err)
			})
		})
	}
}

func TestARunThatIsMatchedByNameStaysSoWhenItIsTakenBackToBeforeThatWasSaid(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		code := func(names ...string) *durable.Workflow[int, string] {
			return durable.Define("w", func(ctx context.Context, _ int) (string, error) {
				for _, name := range names {
					if err := durable.Do(ctx, name, func(context.Context) error { return nil }); err != nil {
						return "", err
					}
				}
				return durable.Await[string](ctx, "go")
			})
		}
		w.boot(t, with(code("a", "b")))
		_, err := durable.Ref[int, string]("w").Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		w.eventually("r", store.Waiting)
		w.crash()
		w.expire()
		changed := code("new", "a", "b")
		w.boot(t, with(changed))
		require.NoError(t, durable.Signal(w.ctx(), "r", "other", 1)) // it is looked at
		require.Equal(t, durable.CodeDefinitionChanged, w.eventually("r", store.Interrupted).Code)
		_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{Force: true})
		require.NoError(t, err)
		w.eventually("r", store.Waiting)
		_, err = operate.On(w.eng).Jump(w.ctx(), "r", seqOf(t, w, "r", "a"), operate.JumpOptions{})
		require.NoError(t, err)
		w.eventually("r", store.Waiting)
		require.NoError(t, durable.Signal(w.ctx(), "r", "go", "on"))
		out, err := wait(t, w, changed, "r")
		require.NoError(t, err)
		require.Equal(t, "on", out)
	})
}

func TestARunThatHasLeftAChildBehindIsImportedUnderAnotherId(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		again := false
		wf := durable.Define("writer", func(ctx context.Context, _ int) (string, error) {
			if err := durable.Do(ctx, "before", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			if again {
				return durable.Await[string](ctx, "go")
			}
			return letter.Run(ctx, durable.AutoID, "")
		})
		w.boot(t, with(wf, letter))
		start(t, w, wf, "p", 0)
		w.eventually("p", store.Waiting)
		again = true
		_, err := operate.On(w.eng).Jump(w.ctx(), "p", seqOf(t, w, "p", "before"), operate.JumpOptions{})
		require.NoError(t, err)
		w.eventually("p", store.Waiting)
		file := export(t, w, "p")
		got, err := operate.On(w.eng).Import(w.ctx(), bytes.NewReader(file), operate.ImportOptions{NewID: "copy"})
		require.NoError(t, err)
		_, err = operate.On(w.eng).Resume(w.ctx(), got.RunID, operate.ResumeOptions{})
		require.NoError(t, err)
		require.NoError(t, durable.Signal(w.ctx(), "copy", "go", "on"))
		out, err := wait(t, w, wf, "copy")
		require.NoError(t, err)
		require.Equal(t, "on", out)
	})
}

func TestAForkIsToldOfAChildWhoseIdTheWorkflowHasChosen(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("writer", func(ctx context.Context, _ int) (string, error) {
			return letter.Run(ctx, "mine", "")
		})
		w.boot(t, with(wf, letter))
		start(t, w, wf, "p", 0)
		w.eventually("mine", store.Waiting)
		plan, err := operate.On(w.eng).PlanFork(w.ctx(), "p", operate.ForkOptions{ID: "f"})
		require.NoError(t, err)
		require.Len(t, plan.Warnings, 1)
		require.Contains(t, plan.Warnings[0], "started child mine, an id that the workflow has chosen")
		require.NoError(t, durable.Signal(w.ctx(), "mine", "end", "yes"))
		_, err = wait(t, w, wf, "p")
		require.NoError(t, err)
		plan, err = operate.On(w.eng).PlanFork(w.ctx(), "p", operate.ForkOptions{ID: "f"})
		require.NoError(t, err)
		require.Empty(t, plan.Warnings)
	})
}
