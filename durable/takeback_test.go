package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// seqOf finds a checkpoint by key.
func seqOf(t *testing.T, w *world, id, key string) int64 {
	t.Helper()
	at, err := operate.On(w.eng).CheckpointOf(w.ctx(), id, key)
	require.NoError(t, err)
	return at
}

// everything tells the whole log of a run, over all branches.
func (w *world) everything(id string) (lines []string) {
	w.t.Helper()
	h, err := w.data.Load(context.Background(), id, store.Cursor{All: true})
	require.NoError(w.t, err)
	for ev, err := range h.Events {
		require.NoError(w.t, err)
		lines = append(lines, strings.TrimSpace(string(ev.Type)+" "+ev.Key))
	}
	return lines
}

// oneTwoThree makes steps one, two and three, and fails until it is mended.
func oneTwoThree(j *journal, mended *bool, o ...durable.DefineOption) *durable.Workflow[int, string] {
	return durable.Define("w", func(ctx context.Context, _ int) (string, error) {
		for _, name := range []string{"one", "two", "three"} {
			if err := durable.Do(ctx, name, func(ctx context.Context) error { j.add(ctx); return nil }); err != nil {
				return "", err
			}
		}
		if !*mended {
			return "", errNotYet
		}
		return "done", nil
	}, o...)
}

func TestThePlanOfAResumeIsTheSameDryAndTellsStepsAndBranch(t *testing.T) {
	for name, c := range map[string]struct {
		options  []durable.DefineOption
		want     string
		declared bool
		before   bool // another run of the workflow has completed
	}{
		"declared steps":                 {options: []durable.DefineOption{durable.Steps("one", "two", "three", "four")}, want: "Resuming from step 2 of 4", declared: true},
		"as many as are known":           {want: "Resuming from step 2 of 3"},
		"as many as a completed run had": {want: "Resuming from step 2 of 3", before: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				j, mended := &journal{}, c.before
				wf := oneTwoThree(j, &mended, c.options...)
				w.serve(t, wf)
				if c.before {
					_, err := run(t, w, wf, "other", 0)
					require.NoError(t, err)
					mended = false
				}
				_, err := run(t, w, wf, "r", 0)
				require.Error(t, err)
				rows, events := w.row("r"), w.events("r")
				at := seqOf(t, w, "r", "one")
				dry, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{FromCheckpoint: at, DryRun: true})
				require.NoError(t, err)
				require.Equal(t, rows, w.row("r"))
				require.Equal(t, events, w.events("r"))
				require.Equal(t, c.want, dry.String())
				require.Equal(t, c.declared, dry.Declared)
				require.Equal(t, []string{"one"}, dry.Skipped)
				require.Equal(t, []string{"two", "three"}, dry.Again)
				require.Equal(t, at, dry.From)
				require.EqualValues(t, 1, dry.Branch)
				require.True(t, dry.NewBranch)
				require.Equal(t, "one", dry.Next.After)
				if c.declared {
					require.Equal(t, "two", dry.Next.Key)
				}
				require.Contains(t, dry.Details(), "run again two")
				require.Contains(t, dry.Details(), fmt.Sprintf("branch 1 is made behind event %d", at))
				mended = true
				plan, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{FromCheckpoint: at})
				require.NoError(t, err)
				require.Equal(t, dry, plan)
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, "done", out)
				require.Contains(t, w.log.String(), c.want)
				require.Equal(t, []string{"workflow_created", "workflow_started", "step_completed one", "jump_activated", "run_resumed", "step_completed two", "step_completed three", "workflow_completed"}, w.lineage("r"))
				require.EqualValues(t, 1, w.row("r").Resumes)
				require.EqualValues(t, 3, w.row("r").Last.Steps)
			})
		})
	}
}

func TestTheKeyOfAnEffectIsTheSameOnEveryBranchAndAnotherInAFork(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j, mended := &journal{}, false
		wf := oneTwoThree(j, &mended)
		w.serve(t, wf)
		_, err := run(t, w, wf, "r", 0)
		require.Error(t, err)
		_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{FromCheckpoint: seqOf(t, w, "r", "two")})
		require.NoError(t, err)
		_, err = wait(t, w, wf, "r")
		require.Error(t, err)
		require.Equal(t, []int{1, 1, 2}, j.counts("one/1", "two/1", "three/1"))
		require.Len(t, j.times(), 3)
		id, err := operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: durable.AutoID, At: seqOf(t, w, "r", "two")})
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(id, "w-2000-01-01-"), id)
		_, err = wait(t, w, wf, id)
		require.Error(t, err)
		require.Len(t, j.times(), 4)
		require.Equal(t, "r", w.row(id).ForkedFrom)
	})
}

// counts returns how often bodies ran, whatever their idempotency keys.
func (j *journal) counts(bodies ...string) (list []int) {
	for _, b := range bodies {
		n := 0
		for _, e := range j.entries {
			if strings.HasPrefix(e, b+" ") {
				n++
			}
		}
		list = append(list, n)
	}
	return list
}

func TestACheckpointMustBeAStablePointOfTheHistory(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j, mended := &journal{}, false
		wf := oneTwoThree(j, &mended)
		w.serve(t, wf)
		_, err := run(t, w, wf, "r", 0)
		require.Error(t, err)
		gone := seqOf(t, w, "r", "three")
		_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{FromCheckpoint: seqOf(t, w, "r", "one")})
		require.NoError(t, err)
		_, err = wait(t, w, wf, "r")
		require.Error(t, err)
		row := w.row("r")
		for reason, at := range map[string]int64{"no event of the current history": 99, "a workflow_started is no point": 2, "is no event of the current history (branch 1": gone} {
			for what, act := range map[string]func() error{
				"resume": func() error {
					_, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{FromCheckpoint: at})
					return err
				},
				"jump": func() error { _, err := operate.On(w.eng).Jump(w.ctx(), "r", at, operate.JumpOptions{}); return err },
			} {
				var c *operate.CheckpointError
				err := act()
				require.ErrorAs(t, err, &c, what)
				require.ErrorContains(t, err, reason)
				require.ErrorIs(t, err, durable.ErrNotFound)
			}
		}
		_, err = operate.On(w.eng).CheckpointOf(w.ctx(), "r", "four")
		require.ErrorContains(t, err, "four")
		require.Equal(t, row, w.row("r"))
		mended = true // back to the very beginning
		_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{FromCheckpoint: 1})
		require.NoError(t, err)
		_, err = wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, []int{2, 3, 3}, j.counts("one/1", "two/1", "three/1"))
	})
}

func TestGoingBackOverAnEffectThatMustNotBeRepeatedNeedsForce(t *testing.T) {
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprintf("died in it %v", crash), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				j, mended := &journal{}, false
				wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
					if err := durable.Do(ctx, "before", func(ctx context.Context) error { j.add(ctx); return nil }); err != nil {
						return "", err
					}
					return durable.Once(ctx, "pay", func(ctx context.Context) (string, error) {
						j.add(ctx)
						if crash && !mended {
							<-ctx.Done()
							return "", context.Cause(ctx)
						}
						if !mended {
							return "", errStock
						}
						return "paid", nil
					})
				})
				w.serve(t, wf)
				start(t, w, wf, "r", 0)
				synctest.Wait()
				if crash {
					w.reboot(t, with(wf)) // its outcome is unknown now
				}
				w.eventually("r", store.Failed)
				at, events := seqOf(t, w, "r", "before"), w.events("r")
				for _, o := range []operate.ResumeOptions{{FromCheckpoint: at}, {ResetFailures: true}, {FromCheckpoint: 1, DryRun: true}} {
					var c *operate.CrossingError
					_, err := operate.On(w.eng).Resume(w.ctx(), "r", o)
					require.ErrorAs(t, err, &c)
					require.Equal(t, []string{"pay"}, c.Keys)
				}
				require.Equal(t, events, w.events("r"))
				mended = true
				plan, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{ResetFailures: true, Force: true})
				require.NoError(t, err)
				require.Equal(t, []string{"pay"}, plan.Reset)
				require.Contains(t, plan.Warnings[0], "pay must run at most once and runs again")
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, "paid", out)
			})
		})
	}
}

func TestResetFailuresGivesTheFailedStepAllItsAttemptsAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j, failing := &journal{}, 5
		var seen []durable.AttemptInfo
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			_ = durable.Do(ctx, "swallowed", func(ctx context.Context) error { j.add(ctx); return errStock })
			return durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 3, Initial: time.Second}, func(ctx context.Context) (int, error) {
				seen = append(seen, j.add(ctx))
				if len(seen) <= failing {
					return 0, errStock
				}
				return len(seen), nil
			})
		})
		w.serve(t, wf)
		_, err := run(t, w, wf, "r", 0)
		require.ErrorContains(t, err, "out of stock")
		at, ok, err := operate.On(w.eng).ResumePoint(w.ctx(), "r")
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, operate.ResumePoint{Key: "charge", Kind: "step", Attempt: 3, After: "charge", Failed: true}, at)

		plan, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{ResetFailures: true})
		require.NoError(t, err)
		require.Equal(t, []string{"charge"}, plan.Reset)
		require.Equal(t, []string{"swallowed"}, plan.Skipped)
		require.Equal(t, "charge", plan.Next.Key)
		require.Equal(t, 1, plan.Next.Attempt)
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 6, out)
		require.Equal(t, 1, seen[3].Number)
		require.Empty(t, seen[3].Failures)
		require.Len(t, seen[5].Failures, 2)
		require.EqualValues(t, 2, w.row("r").Last.Steps)
		failed := 0
		for _, line := range w.lineage("r") {
			if line == "attempt_failed charge" || line == "step_failed charge" {
				failed++
			}
		}
		require.Equal(t, 5, failed, "what had failed stays in the history")
		w.reboot(t, with(wf)) // and is read alike by whoever comes next
		require.Contains(t, w.lineage("r"), "failures_reset")
	})
}

// A replay of a history in which failures were reset comes to the same.
func TestAResetCountsOnceAlsoAfterTheNextCrash(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var numbers []int
		var mended atomic.Bool
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 3, Initial: time.Hour}, func(ctx context.Context) (int, error) {
				n := durable.Attempt(ctx).Number
				numbers = append(numbers, n)
				if !mended.Load() {
					return 0, errStock
				}
				return n, nil
			})
		})
		w.serve(t, wf)
		_, err := run(t, w, wf, "r", 0)
		require.Error(t, err)
		_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{ResetFailures: true})
		require.NoError(t, err)
		synctest.Wait()
		w.reboot(t, with(wf)) // in the pause behind the first attempt
		mended.Store(true)
		_, err = wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, []int{1, 2, 3, 1, 2}, numbers)
	})
}

func TestResetFailuresOfAMapDoesItsFailedItemsAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j, mended := &journal{}, false
		begun := make(chan struct{}) // a branch that fails before the Map begins may have been looked at
		begin := sync.OnceFunc(func() { close(begun) })
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			branch := durable.Go(ctx, "b", func(ctx context.Context) (int, error) {
				return durable.Step(ctx, "side", func(ctx context.Context) (int, error) {
					j.add(ctx)
					<-begun
					if !mended {
						return 0, errStock
					}
					return 100, nil
				})
			})
			out, err := durable.Map(ctx, "items", []int{1, 2, 3, 4}, durable.MapOptions{KeepGoing: true}, func(ctx context.Context, n int) (int, error) {
				v, err := durable.Step(ctx, "prepare", func(ctx context.Context) (int, error) { begin(); j.add(ctx); return n, nil })
				if err != nil {
					return 0, err
				}
				return durable.Step(ctx, "send", func(ctx context.Context) (int, error) {
					j.add(ctx)
					if v%2 == 0 && !mended {
						return 0, errStock
					}
					return v, nil
				})
			})
			side, sideErr := branch.Wait(ctx)
			for _, v := range out {
				side += v
			}
			return side, errors.Join(err, sideErr)
		})
		w.serve(t, wf)
		_, err := run(t, w, wf, "r", 0)
		require.Error(t, err)
		mended = true
		plan, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{ResetFailures: true})
		require.NoError(t, err)
		require.Equal(t, []string{"b", "b/side", "items", "items[1]", "items[1]/send", "items[3]", "items[3]/send"}, plan.Reset)
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 110, out)
		require.Equal(t, []int{1, 1, 1, 2, 1, 2, 2}, j.counts("items[0]/prepare/1", "items[1]/prepare/1", "items[0]/send/1", "items[1]/send/1", "items[2]/send/1", "items[3]/send/1", "b/side/1"))
	})
}

func TestWhatWasUndoneCannotBeReset(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		mended := false
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Compensate(ctx, "undo", func(ctx context.Context) error { return nil }); err != nil {
				return 0, err
			}
			return durable.Step(ctx, "charge", func(ctx context.Context) (int, error) {
				if !mended {
					return 0, errStock
				}
				return 1, nil
			})
		})
		w.serve(t, wf)
		_, err := run(t, w, wf, "r", 0)
		require.Error(t, err)
		_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{ResetFailures: true})
		require.ErrorIs(t, err, durable.ErrNotResumable)
		require.ErrorContains(t, err, "undone")
		mended = true
		_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{FromCheckpoint: 1})
		require.NoError(t, err)
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 1, out)
	})
}

// The cut is as narrow as it can be.
func TestGoingBackInAnItemKeepsItsSiblings(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j := &journal{}
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) ([]int, error) {
			return durable.Map(ctx, "items", []int{10, 11, 12}, durable.MapOptions{Concurrency: 3}, func(ctx context.Context, n int) (int, error) {
				for _, name := range []string{"a", "b"} {
					if err := durable.Do(ctx, name, func(ctx context.Context) error { j.add(ctx); return nil }); err != nil {
						return 0, err
					}
				}
				if n == 12 {
					return n, durable.Do(ctx, "hold", h.body)
				}
				return n, nil
			})
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		synctest.Wait()
		w.crash()
		w.expire()
		w.serve(t, wf)
		plan, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{FromCheckpoint: seqOf(t, w, "r", "items[1]/a")})
		require.NoError(t, err)
		require.Equal(t, "items[1]", plan.Scope)
		require.Equal(t, []string{"items[1]/b"}, plan.Again)
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, []int{10, 11, 12}, out)
		require.Equal(t, []int{1, 1, 2, 1}, j.counts("items[0]/b/1", "items[1]/a/1", "items[1]/b/1", "items[2]/b/1"))
	})
}

func TestWhatIsLeftBehindIsClosed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		kid := durable.Define("kid", func(ctx context.Context, _ int) (int, error) { return 1, durable.Sleep(ctx, time.Hour) })
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			if err := durable.Do(ctx, "first", func(ctx context.Context) error { return nil }); err != nil {
				return "", err
			}
			for i, id := range []string{durable.AutoID, "chosen", "abandoned"} {
				o := []durable.StartOption{durable.Attributes(nil)}
				if i == 2 {
					o = append(o, durable.Abandon())
				}
				if _, err := kid.Start(ctx, id, 1, o...); err != nil {
					return "", err
				}
			}
			if err := durable.SetAttributes(ctx, map[string]string{"stage": "late"}); err != nil {
				return "", err
			}
			s, err := durable.Await[string](ctx, "hint")
			if err != nil {
				return "", err
			}
			ok, err := durable.Await[bool](ctx, "approve", durable.Prompt("Really?"))
			return fmt.Sprint(s, ok), err
		})
		w.boot(t, with(wf, kid))
		start(t, w, wf, "r", 0)
		require.NoError(t, w.eng.Signal(w.ctx(), "r", "hint", "yes "))
		w.eventually("r", store.Waiting)
		require.Equal(t, "late", w.row("r").Attributes["stage"])
		plan, err := operate.On(w.eng).Jump(w.ctx(), "r", seqOf(t, w, "r", "first"), operate.JumpOptions{By: "me", Reason: "again"})
		require.NoError(t, err)
		require.Equal(t, []operate.LeftBehind{
			{Kind: "child run", Key: "kid", Child: "r/kid"},
			{Kind: "child run", Key: "kid#2", Child: "chosen", Kept: true},
			{Kind: "child run", Key: "kid#3", Child: "abandoned", Kept: true},
			{Kind: "wait", Key: "approve"},
		}, plan.Left)
		require.Contains(t, plan.Warnings[0], "chosen")
		w.eventually("r/kid", store.Cancelled)
		row := w.eventually("r", store.Waiting)
		require.Equal(t, "Really?", row.Reason, "the hint was delivered again, and the person is asked again")
		require.EqualValues(t, 1, row.Branch)
		require.Equal(t, store.Waiting, w.row("r/kid~b1").Status)
		require.Equal(t, store.Waiting, w.row("chosen").Status)
		require.Equal(t, store.Waiting, w.row("abandoned").Status)
		require.Contains(t, w.lineage("r"), "jump_activated")
		require.Contains(t, w.everything("r"), "jump_requested", "on the branch that was left")
		require.NoError(t, w.eng.Signal(w.ctx(), "r", durable.WaitKey("approve", 0), false), "an answer to what was asked before")
		pass(time.Minute)
		require.Equal(t, store.Waiting, w.row("r").Status)
		require.NoError(t, w.eng.Signal(w.ctx(), "r", durable.WaitKey("approve", 1), true))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "yes true", out)
	})
}

func TestTheRowHasTheAttributesOfTheBranch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Do(ctx, "first", func(ctx context.Context) error { return nil }); err != nil {
				return 0, err
			}
			if err := durable.SetAttributes(ctx, map[string]string{"stage": "late"}); err != nil {
				return 0, err
			}
			return 0, errNotYet
		})
		w.serve(t, wf)
		_, err := run(t, w, wf, "r", 0)
		require.Error(t, err)
		operator := w.open(t, durable.Options{})
		_, err = operate.On(operator).Resume(w.ctx(), "r", operate.ResumeOptions{FromCheckpoint: seqOf(t, w, "r", "first")})
		require.NoError(t, err)
		require.Empty(t, w.row("r").Attributes)
	})
}
