package durable_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

func TestAStepIsOneWriteAndNoReadAndARelaxedOneNone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n = 10
		count := func(id string, o ...durable.StepOption) store.Counts {
			wf := durable.Define("w"+id, func(ctx context.Context, _ int) (int, error) {
				for i := range n {
					if _, err := durable.Step(ctx, "s", func(context.Context) (int, error) { return i, nil }, o...); err != nil {
						return 0, err
					}
				}
				return n, nil
			})
			w.serve(t, wf)
			before := w.disk.Counts()
			_, err := run(t, w, wf, id, 0)
			require.NoError(t, err)
			after := w.disk.Counts()
			return store.Counts{Statements: after.Statements - before.Statements, Reads: after.Reads - before.Reads, Commits: after.Commits - before.Commits}
		}
		require.Equal(t, store.Counts{Statements: 2 + n, Commits: 2 + n}, count("plain"), "a start, n steps, an end")
		require.Equal(t, store.Counts{Statements: 2, Commits: 2}, count("relaxed", durable.Relaxed()))
		require.Equal(t, store.Counts{Statements: 2 + 2*n, Commits: 2 + 2*n}, count("long", durable.LongOperation()))
		require.Len(t, w.events("relaxed"), n+3, "recorded all the same")
	})
}

func TestRelaxedStepsRideInOrderWithTheNextWrite(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		ran := map[string]int{}
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			var out []string
			step := func(name string, o ...durable.StepOption) {
				v, err := durable.Step(ctx, name, func(context.Context) (string, error) {
					ran[name]++
					return fmt.Sprint(name, ran[name]), nil
				}, o...)
				require.NoError(t, err)
				out = append(out, v)
			}
			step("a", durable.Relaxed())
			step("b", durable.Relaxed())
			step("durable")
			step("c", durable.Relaxed())
			err := durable.Do(ctx, "hold", h.body)
			return strings.Join(out, " "), err
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		synctest.Wait()
		require.Equal(t, []string{"workflow_created", "workflow_started", "step_completed a", "step_completed b", "step_completed durable"}, w.story("r"))
		w.reboot(t, with(wf))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "a1 b1 durable1 c2", out, "only what no write followed is run again")
		require.Equal(t, map[string]int{"a": 1, "b": 1, "durable": 1, "c": 2}, ran)
	})
}

func TestCheckpointWritesWhatRelaxedHolds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			require.NoError(t, durable.Checkpoint(ctx)) // nothing to write
			for i := range 3 {
				_, err := durable.Step(ctx, "s", func(context.Context) (int, error) { return i, nil }, durable.Relaxed())
				require.NoError(t, err)
			}
			require.NoError(t, durable.Checkpoint(ctx))
			require.NoError(t, durable.Checkpoint(ctx))
			return 0, durable.Do(ctx, "hold", h.body)
		})
		w.serve(t, wf)
		before := w.disk.Counts().Commits
		start(t, w, wf, "r", 0)
		synctest.Wait()
		require.EqualValues(t, 2, w.disk.Counts().Commits-before, "the start and one checkpoint")
		require.Equal(t, []string{"workflow_created", "workflow_started", "step_completed s", "step_completed s#2", "step_completed s#3"}, w.story("r"))
	})
}

// A graceful stop is a write like any other: nothing is lost with it.
func TestRelaxedStepsSurviveAGracefulStop(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		ran := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			v, err := durable.Step(ctx, "s", func(context.Context) (int, error) { ran++; return ran, nil }, durable.Relaxed())
			require.NoError(t, err)
			return v, durable.Do(ctx, "hold", h.body)
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		synctest.Wait()
		require.NoError(t, w.eng.Close())
		w.boot(t, with(wf))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 1, out)
		require.Equal(t, 1, ran)
	})
}

func TestAFailureOfARelaxedStepIsDurableAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			_, err := durable.Step(ctx, "s", func(context.Context) (int, error) { return 0, errStock }, durable.Relaxed())
			require.Error(t, err)
			return 0, durable.Do(ctx, "hold", h.body)
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		synctest.Wait()
		require.Contains(t, w.story("r"), "step_failed s 1")
	})
}

// What is held back is bounded: a loop of relaxed steps must not outgrow what
// one change may carry.
func TestManyLargeRelaxedStepsAreKept(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n, size = 5, 15 << 20
		var h hold
		ran := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			sum := 0
			for range n {
				s, err := durable.Step(ctx, "s", func(context.Context) (string, error) { ran++; return strings.Repeat("x", size), nil }, durable.Relaxed())
				require.NoError(t, err)
				sum += len(s)
			}
			if err := durable.Do(ctx, "durable", func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			return sum, durable.Do(ctx, "hold", h.body)
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		synctest.Wait()
		w.reboot(t, with(wf))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, n*size, out)
		require.Equal(t, n, ran)
	})
}

func TestALongOperationIsSeenUnderWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return 0, durable.Do(ctx, "render", h.body, durable.LongOperation())
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		synctest.Wait()
		require.Equal(t, []string{"workflow_created", "workflow_started", "step_started render"}, w.story("r"))
		i, err := w.eng.Get(w.ctx(), "r")
		require.NoError(t, err)
		require.Equal(t, "render", i.Key)
		require.Equal(t, 1, i.Attempt)
		w.reboot(t, with(wf))
		_, err = wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, []string{
			// Again: after an end without a word a body begins on record.
			"workflow_created", "workflow_started", "step_started render", "run_resumed", "step_started render", "step_completed render", "workflow_completed",
		}, w.story("r"))
		require.Equal(t, 2, h.count())
	})
}

func TestARelaxedLongOperationFlushesWhatStandsBeforeIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			_, err := durable.Step(ctx, "a", one, durable.Relaxed())
			require.NoError(t, err)
			return 0, durable.Do(ctx, "render", h.body, durable.LongOperation(), durable.Relaxed())
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		synctest.Wait()
		require.Equal(t, []string{"workflow_created", "workflow_started", "step_completed a", "step_started render"}, w.story("r"))
	})
}

func TestWithInputNoticesAnotherValue(t *testing.T) {
	for name, c := range map[string]struct {
		second any
		parked bool
	}{
		"the same":  {map[string]int{"a": 1, "b": 2}, false},
		"different": {map[string]int{"a": 1, "b": 3}, true},
	} {
		for _, recorded := range []string{"a finished step", "a failed step", "a step that failed once", "a long operation"} {
			t.Run(name+", "+recorded, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					var in any = map[string]int{"b": 2, "a": 1}
					var h hold
					wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
						var err error
						switch recorded {
						case "a finished step":
							_, err = durable.Step(ctx, "s", one, durable.WithInput(in))
						case "a failed step":
							_ = durable.Do(ctx, "s", func(context.Context) error { return errStock }, durable.WithInput(in))
						case "a step that failed once":
							_, err = durable.Retry(ctx, "s", durable.Policy{Initial: 1}, func(ctx context.Context) (int, error) {
								if durable.Attempt(ctx).Number == 1 {
									return 0, errStock
								}
								return 1, h.body(ctx)
							}, durable.WithInput(in))
						case "a long operation":
							err = durable.Do(ctx, "s", h.body, durable.WithInput(in), durable.LongOperation())
						}
						if err != nil {
							return 0, err
						}
						return 0, durable.Do(ctx, "hold", h.body)
					})
					w.serve(t, wf)
					start(t, w, wf, "r", 0)
					w.expire()
					in = c.second
					w.reboot(t, with(wf))
					_, err := wait(t, w, wf, "r")
					if !c.parked {
						require.NoError(t, err)
						return
					}
					require.ErrorIs(t, err, durable.ErrDefinitionChanged)
					require.ErrorContains(t, err, "another input")
					require.ErrorContains(t, err, "relaxed_test.go:")
					require.Equal(t, durable.CodeDefinitionChanged, w.row("r").Code)
					in = map[string]int{"a": 1, "b": 2}
					require.NoError(t, resume(w.eng, w.ctx(), "r"))
					_, err = wait(t, w, wf, "r")
					require.NoError(t, err)
				})
			})
		}
	}
}

func TestAnInputThatCannotBeKeptIsNamed(t *testing.T) {
	live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) (int, error) {
		return durable.Step(ctx, "s", func(context.Context) (int, error) { t.Error("ran"); return 0, nil }, durable.WithInput(make(chan int)))
	})
	var enc *durable.EncodeError
	require.ErrorAs(t, live.err, &enc)
	require.Equal(t, "s", enc.Key)
	require.Equal(t, "chan int", enc.Type)
	require.Equal(t, live.err.Error(), replay.err.Error())
}
