package durable_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// patient makes a step, waits or works for a while, and makes another.
func patient(j *journal, how string) *durable.Workflow[int, string] {
	return durable.Define("w", func(ctx context.Context, _ int) (string, error) {
		step := func(name string, d time.Duration) error {
			return durable.Do(ctx, name, func(ctx context.Context) error {
				j.add(ctx)
				select {
				case <-time.After(d):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			})
		}
		if err := step("one", 0); err != nil {
			return "", err
		}
		if err := step("two", 0); err != nil {
			return "", err
		}
		if how == "works" {
			if err := step("work", 10*time.Minute); err != nil {
				return "", err
			}
		} else if err := durable.Sleep(ctx, 10*time.Minute); err != nil {
			return "", err
		}
		return "done", step("three", 0)
	})
}

func TestARunJumpsWhereverItIsExecutedAndGoesOn(t *testing.T) {
	for _, how := range []string{"works", "waits", "sleeps, unloaded", "paused", "nobody has it"} {
		for _, place := range []string{"here", "elsewhere"} {
			t.Run(how+" "+place, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					j := &journal{}
					wf := patient(j, how)
					o := with(wf)
					if how == "waits" {
						o.UnloadAfter = -1
					}
					w.boot(t, o)
					start(t, w, wf, "r", 0)
					pass(time.Minute)
					switch how {
					case "paused":
						require.NoError(t, w.eng.Pause(w.ctx(), "r", "look"))
						pass(time.Second)
					case "nobody has it":
						w.crash()
						w.expire()
						if place == "here" {
							w.boot(t, o)
						}
					}
					if place == "elsewhere" {
						w.open(t, durable.Options{}) // an operator's process
					}
					plan, err := operate.On(w.eng).Jump(w.ctx(), "r", seqOf(t, w, "r", "one"), operate.JumpOptions{Reason: "try again", By: "me"})
					require.NoError(t, err)
					require.EqualValues(t, 1, plan.Branch)
					require.Contains(t, plan.Again, "two")
					if how == "paused" {
						pass(time.Hour)
						require.True(t, w.row("r").Paused)
						require.Equal(t, []int{1}, j.counts("two/1"))
						require.Contains(t, plan.Warnings[0], "Unpause")
						require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
					}
					if how == "nobody has it" && place == "elsewhere" {
						w.boot(t, o)
					}
					out, err := wait(t, w, wf, "r")
					require.NoError(t, err)
					require.Equal(t, "done", out)
					require.Equal(t, []int{1, 2, 1}, j.counts("one/1", "two/1", "three/1"))
					row := w.row("r")
					require.False(t, row.Paused)
					require.Empty(t, row.Reason)
				})
			})
		}
	}
}

func TestARunThatDoesNotStopInTimeIsBusyAndNotChanged(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j := &journal{}
		wf := patient(j, "works")
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		pass(time.Minute)
		ctx, stop := context.WithTimeout(w.ctx(), time.Minute)
		defer stop()
		var busy *operate.BusyError
		_, err := operate.On(w.eng).Jump(ctx, "r", seqOf(t, w, "r", "one"), operate.JumpOptions{})
		require.ErrorAs(t, err, &busy)
		require.ErrorIs(t, err, store.ErrOwned)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, w.eng.ID(), busy.Owner)
		require.ErrorContains(t, err, "Engine.Pause")
		require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
		_, err = wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Zero(t, w.row("r").Branch)
		require.Equal(t, []int{1, 1, 1, 1}, j.counts("one/1", "two/1", "work/1", "three/1"))
	})
}

func TestWhatCannotBeTakenBackIsSaidAndStaysAsItIs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ok := durable.Define("ok", func(ctx context.Context, _ int) (int, error) {
			return durable.Step(ctx, "one", func(context.Context) (int, error) { return 1, nil })
		})
		wf, _ := holding("w")
		w.serve(t, ok, wf)
		_, err := run(t, w, ok, "completed", 0)
		require.NoError(t, err)
		_, err = durable.Ref[int, int]("elsewhere").Start(w.ctx(), "pending", 0)
		require.NoError(t, err)
		start(t, w, wf, "cancelled", 0)
		synctest.Wait()
		require.NoError(t, w.eng.Cancel(w.ctx(), "cancelled", "enough"))
		w.eventually("cancelled", store.Cancelled)
		for _, id := range []string{"completed", "pending", "cancelled"} {
			events, row := w.events(id), w.row(id)
			_, err := operate.On(w.eng).Jump(w.ctx(), id, 1, operate.JumpOptions{})
			require.ErrorIs(t, err, durable.ErrNotResumable, id)
			_, err = operate.On(w.eng).Edit(w.ctx(), id, "one", 2, operate.EditOptions{})
			require.ErrorIs(t, err, durable.ErrNotResumable, id)
			_, err = operate.On(w.eng).Resume(w.ctx(), id, operate.ResumeOptions{FromCheckpoint: 1, Force: id != "cancelled"})
			require.ErrorIs(t, err, durable.ErrNotResumable, id)
			require.Equal(t, events, w.events(id))
			require.Equal(t, row, w.row(id))
		}
		_, err = operate.On(w.eng).Jump(w.ctx(), "nobody", 1, operate.JumpOptions{})
		require.ErrorIs(t, err, durable.ErrNotFound)
		_, err = operate.On(w.eng).Edit(w.ctx(), "nobody", "one", 1, operate.EditOptions{})
		require.ErrorIs(t, err, durable.ErrNotFound)
		_, err = operate.On(w.eng).Fork(w.ctx(), "nobody", operate.ForkOptions{ID: "f"})
		require.ErrorIs(t, err, durable.ErrNotFound)
	})
}

// summing adds up what three steps and the items of a Map give.
func summing(j *journal, mended *bool) *durable.Workflow[int, int] {
	return durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		sum := 0
		for _, name := range []string{"one", "two"} {
			n, err := durable.Step(ctx, name, func(ctx context.Context) (int, error) { j.add(ctx); return 1, nil }, durable.WithInput("same"))
			if err != nil {
				return 0, err
			}
			sum += n
		}
		out, err := durable.Map(ctx, "items", []int{1, 2, 3}, durable.MapOptions{}, func(ctx context.Context, n int) (int, error) {
			return durable.Step(ctx, "work", func(ctx context.Context) (int, error) { j.add(ctx); return n, nil })
		})
		for _, n := range out {
			sum += n
		}
		if err == nil && !*mended {
			err = errNotYet
		}
		return sum, err
	})
}

func TestAnEditedResultIsUsedAndTheOldOneStaysReadable(t *testing.T) {
	for key, c := range map[string]struct {
		sum   int
		again []int // two, item 1 and item 2
	}{
		"one":           {sum: 10 + 1 + 6, again: []int{2, 2, 2}},
		"two":           {sum: 1 + 10 + 6, again: []int{1, 2, 2}},
		"items[1]":      {sum: 2 + 1 + 10 + 3, again: []int{1, 1, 1}},
		"items[1]/work": {sum: 2 + 1 + 10 + 3, again: []int{1, 1, 1}},
	} {
		t.Run(key, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				j, mended := &journal{}, false
				wf := summing(j, &mended)
				w.boot(t, with(wf))
				_, err := run(t, w, wf, "r", 0)
				require.Error(t, err)
				mended = true
				before := w.events("r")
				dry, err := operate.On(w.eng).Edit(w.ctx(), "r", key, 10, operate.EditOptions{DryRun: true})
				require.NoError(t, err)
				require.Equal(t, before, w.events("r"))
				plan, err := operate.On(w.eng).Edit(w.ctx(), "r", key, 10, operate.EditOptions{By: "ann", Reason: "the bank says so"})
				require.NoError(t, err)
				require.Equal(t, dry, plan)
				require.NotContains(t, plan.Again, key)
				pass(time.Hour)
				require.Equal(t, durable.CodeEdited, w.row("r").Code, "nobody goes on with it unasked")
				var audit []string
				for ev, err := range w.eng.History(w.ctx(), "r") {
					require.NoError(t, err)
					if ev.Type == store.Edited {
						require.Equal(t, key, ev.Key)
						audit = append(audit, string(ev.Data))
					}
				}
				require.Len(t, audit, 1)
				require.Contains(t, audit[0], `"by":"ann"`)
				require.Contains(t, audit[0], "the bank says so")
				require.NoError(t, resume(w.eng, w.ctx(), "r"))
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, c.sum, out)
				require.Equal(t, c.again, j.counts("two/1", "items[1]/work/1", "items[2]/work/1"))
			})
		})
	}
}

func TestAnEditKeepsTheTypeUnlessItIsForced(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j, mended := &journal{}, false
		wf := summing(j, &mended)
		w.boot(t, with(wf))
		_, err := run(t, w, wf, "r", 0)
		require.Error(t, err)
		events := w.events("r")
		var refused *operate.EditError
		for key, value := range map[string]any{"one": "ten", "items": 1, "three": 1, "items[7]": 1} {
			_, err = operate.On(w.eng).Edit(w.ctx(), "r", key, value, operate.EditOptions{})
			require.ErrorAs(t, err, &refused, key)
			require.ErrorContains(t, err, key)
		}
		_, err = operate.On(w.eng).Edit(w.ctx(), "r", "one", func() {}, operate.EditOptions{})
		var encoding *durable.EncodeError
		require.ErrorAs(t, err, &encoding)
		require.Equal(t, events, w.events("r"))
		_, err = operate.On(w.eng).Edit(w.ctx(), "r", "one", "ten", operate.EditOptions{Force: true})
		require.NoError(t, err)
		var unreadable *durable.UndecodableError
		require.ErrorAs(t, resume(w.eng, w.ctx(), "r"), &unreadable, "it is found when it is read")
		_, err = operate.On(w.eng).Edit(w.ctx(), "r", "one", 4, operate.EditOptions{Force: true})
		require.NoError(t, err)
		mended = true
		require.NoError(t, resume(w.eng, w.ctx(), "r"))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 11, out)
	})
}

func TestARunThatIsExecutedIsPausedToBeEdited(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j := &journal{}
		wf := patient(j, "waits")
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		pass(time.Second)
		var busy *operate.BusyError
		_, err := operate.On(w.eng).Edit(w.ctx(), "r", "one", nil, operate.EditOptions{})
		require.ErrorAs(t, err, &busy)
		require.NoError(t, w.eng.Pause(w.ctx(), "r", ""))
		pass(time.Second)
		_, err = operate.On(w.eng).Edit(w.ctx(), "r", "one", nil, operate.EditOptions{})
		require.NoError(t, err)
		pass(time.Hour)
		require.True(t, w.row("r").Paused)
		require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
		_, err = wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, []int{1, 2}, j.counts("one/1", "two/1"))
	})
}

func TestADryRunOfAJumpLiftsNoPause(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j := &journal{}
		w.boot(t, with(patient(j, "works")))
		start(t, w, durable.Ref[int, string]("w"), "r", 0)
		pass(time.Minute)
		ctx, stop := context.WithTimeout(w.ctx(), time.Minute)
		defer stop()
		_, err := operate.On(w.eng).Jump(ctx, "r", seqOf(t, w, "r", "one"), operate.JumpOptions{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		pass(time.Hour)
		require.True(t, w.row("r").Paused)
		none := (*operate.CheckpointError)(nil)
		_, err = operate.On(w.eng).Jump(w.ctx(), "r", 9999, operate.JumpOptions{DryRun: true})
		require.ErrorAs(t, err, &none)
		require.True(t, w.row("r").Paused)
		_, err = operate.On(w.eng).Jump(w.ctx(), "r", 9999, operate.JumpOptions{})
		require.ErrorAs(t, err, &none)
		require.False(t, w.row("r").Paused)
	})
}
