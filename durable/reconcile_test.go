package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// tear changes the row of a run that nobody alive owns, and no event: what a
// store that writes the two apart leaves behind.
func (w *world) tear(id string, p store.RowPatch) {
	w.t.Helper()
	errs := w.data.Commit(context.Background(), []store.Change{{RunID: id, Expect: store.Expect{Epoch: w.row(id).Epoch}, Row: &p}})
	require.NoError(w.t, errs[0])
}

// append writes an event behind the last one, in the way of whoever had the run.
func (w *world) append(id string, ev store.Event, data map[string]any, p *store.RowPatch) {
	w.t.Helper()
	row := w.row(id)
	if data != nil {
		ev.Data, _ = json.Marshal(data)
	}
	ev.Seq, ev.At, ev.Steps, ev.Active, ev.Branch = row.Last.Seq+1, row.Last.At, row.Last.Steps, row.Last.Active, row.Branch
	ev.Sum = store.Seal(id, row.Last.Sum, &ev)
	errs := w.data.Commit(context.Background(), []store.Change{{RunID: id, Expect: store.Expect{Epoch: row.Epoch}, Events: []store.Event{ev}, Row: p}})
	require.NoError(w.t, errs[0])
}

func to(s store.Status) store.RowPatch { return store.RowPatch{Status: &s} }

// lineage reads the current lineage past every engine, without the check of
// world.events that nothing is left out.
func (w *world) lineage(id string) (story []string) {
	w.t.Helper()
	h, err := w.data.Load(context.Background(), id, store.Cursor{})
	require.NoError(w.t, err)
	for e, err := range h.Events {
		require.NoError(w.t, err)
		line := string(e.Type)
		if e.Key != "" {
			line += " " + e.Key
		}
		story = append(story, line)
	}
	return story
}

// approving is a step, an approval, a step; done counts the bodies.
func approving(done map[string]int, o ...durable.DefineOption) *durable.Workflow[int, string] {
	step := func(ctx context.Context, name string) error {
		return durable.Do(ctx, name, func(context.Context) error { done[name]++; return nil })
	}
	return durable.Define("w", func(ctx context.Context, _ int) (string, error) {
		if err := step(ctx, "a"); err != nil {
			return "", err
		}
		v, err := durable.Await[string](ctx, "go", durable.Prompt("go?"))
		if err != nil {
			return "", err
		}
		return v, step(ctx, "b")
	}, o...)
}

// tornWait is a run that waits, whose process has died and whose row says
// running.
func tornWait(t *testing.T, w *world, done map[string]int, o ...durable.DefineOption) *durable.Workflow[int, string] {
	wf := approving(done, o...)
	w.serve(t, wf)
	start(t, w, wf, "r", 0)
	w.eventually("r", store.Waiting)
	w.crash()
	w.expire()
	w.tear("r", to(store.Running))
	w.log.clear()
	return wf
}

func TestRecoverRepairsFirstUnderEveryPolicy(t *testing.T) {
	for policy, want := range map[durable.BootPolicy]store.Status{
		durable.ResumeOnBoot: store.Waiting, durable.FailOnBoot: store.Failed, durable.LeaveOnBoot: store.Interrupted,
	} {
		inWorld(t, func(t *testing.T, w *world) {
			done := map[string]int{}
			wf := tornWait(t, w, done, durable.OnBoot(policy))
			rep := w.boot(t, with(wf))
			require.Len(t, rep.Repaired, 1)
			require.Equal(t, durable.CodeA2, rep.Repaired[0].Code)
			require.Equal(t, []string{"INFO Recovered workflow r: A2: Status processing but has pending interaction. Created branch 1 from event 3 run=r workflow=w"}, w.log.find("Recovered workflow"))
			row := w.eventually("r", want)
			require.Equal(t, int32(1), row.Branch)
			require.Equal(t, map[string]int{"a": 1}, done)
			switch policy {
			case durable.FailOnBoot:
				require.Equal(t, []any{durable.CodeRestarted, durable.DefaultBootReason, true}, []any{row.Code, row.Reason, row.Recoverable})
				require.Equal(t, []string{"r"}, rep.Failed)
			case durable.LeaveOnBoot:
				require.Equal(t, []any{durable.CodeRecovered, []string{"r"}}, []any{row.Code, rep.Left})
				require.Equal(t, []string{"r"}, w.boot(t, with(wf)).Left, "and a person resumes it")
			}
			if want != store.Waiting {
				require.NoError(t, second(operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})))
			}
			w.eventually("r", store.Waiting)
			require.NoError(t, durable.Signal(w.ctx(), "r", durable.WaitKey("go", 1), "yes"))
			out, err := wait(t, w, wf, "r")
			require.NoError(t, err)
			require.Equal(t, "yes", out)
			require.Equal(t, map[string]int{"a": 1, "b": 1}, done)
		})
	}
}

func TestResumeRepairsFirstAndSaysSo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		done := map[string]int{}
		wf := tornWait(t, w, done)
		rep := w.boot(t, durable.Options{Workflows: []durable.Definition{wf}, NoReconcileOnBoot: true, OnBoot: durable.LeaveOnBoot})
		require.Empty(t, rep.Repaired, "it was told not to look")
		require.Equal(t, []string{"r"}, rep.Left)
		require.NoError(t, second(operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})))
		require.Len(t, w.log.find("INFO Applied recovery: A2: Status processing but has pending interaction"), 1)
		w.eventually("r", store.Waiting)
		require.Equal(t, []string{"workflow_created", "workflow_started", "step_completed a", "workflow_recovered"}, w.lineage("r")[:4])
		require.ErrorIs(t, second(operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})), durable.ErrNotResumable)
		require.Len(t, w.log.find("Applied recovery"), 1)
	})
}

// An answer that was sent is for the wait that was asked: nobody is asked again.
func TestAnAnswerThatWasSentIsNotLostToARepair(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		done := map[string]int{}
		wf := approving(done)
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		w.crash()
		w.expire()
		errs := w.data.Commit(context.Background(), []store.Change{{Send: []store.Message{{To: "r", Kind: store.KindSignal, Name: "go@0", ID: "1"}}}})
		require.NoError(t, errs[0])
		w.tear("r", to(store.Running))
		rec, err := w.serve(t).RecoverRun(context.Background(), "r")
		require.NoError(t, err)
		require.False(t, rec.Needed)
	})
}

func TestALaterGenerationIsRepairedWithinItself(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		done := map[int]int{}
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			if err := durable.Do(ctx, "a", func(context.Context) error { done[n]++; return nil }); err != nil {
				return 0, err
			}
			if n == 0 {
				return 0, durable.Continue(ctx, 1)
			}
			return durable.Await[int](ctx, "go")
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		w.crash()
		w.expire()
		before := w.row("r").Last.Seq
		w.tear("r", to(store.Running))
		w.boot(t, with(wf))
		w.eventually("r", store.Waiting)
		list, err := operate.On(w.eng).Branches(w.ctx(), "r")
		require.NoError(t, err)
		require.Len(t, list, 3)
		require.Equal(t, []any{int32(1), before - 1, 1, 1, false, true}, []any{list[2].Parent, list[2].Cutoff, list[2].Generation, list[2].Left, list[2].Root, list[2].Current})
		require.True(t, list[1].Root)
		gens, err := operate.On(w.eng).Generations(w.ctx(), "r")
		require.NoError(t, err)
		require.Len(t, gens, 2)
		require.NoError(t, durable.Signal(w.ctx(), "r", "go", 7))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 7, out)
		require.Equal(t, map[int]int{0: 1, 1: 1}, done)
	})
}

// What was written before the run was torn from it must not happen a second
// time.
func TestARepairNeverLeavesAnEffectOfOnceBehind(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		charged := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			if err := durable.Do(ctx, "a", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			_, err := durable.Once(ctx, "charge", func(ctx context.Context) (int, error) {
				charged++
				<-ctx.Done()
				return 0, context.Cause(ctx)
			})
			return fmt.Sprint(errors.Is(err, durable.ErrUnknownOutcome)), nil
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		synctest.Wait()
		w.crash()
		w.expire()
		w.tear("r", to(store.Waiting))
		rep := w.boot(t, with(wf))
		require.Equal(t, durable.CodeA1, rep.Repaired[0].Code)
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "true", out, "its outcome is unknown, and known to be")
		require.Equal(t, 1, charged)
	})
}

// A jump that was asked for and never carried out: the run goes back to before
// the request, with its attributes, and a child that was begun since ends.
func TestAJumpThatWasNotCarriedOutIsTakenBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		kid := durable.Define("kid", func(ctx context.Context, _ int) (int, error) { return durable.Await[int](ctx, "never") })
		wf := approving(map[string]int{})
		w.serve(t, wf, kid)
		start(t, w, wf, "r", 0)
		start(t, w, kid, "r/kid", 0)
		w.eventually("r", store.Waiting)
		w.eventually("r/kid", store.Waiting)
		w.crash()
		w.serve(t) // of no workflow, so that it does not take the signal
		require.NoError(t, durable.Signal(w.ctx(), "r", "go", "yes", durable.SignalID("1")))
		w.crash()
		w.expire()
		before := w.row("r").Last.Seq
		w.append("r", store.Event{Type: store.JumpRequested}, map[string]any{"to_branch": 3}, nil)
		w.append("r", store.Event{Type: store.AttributesSet}, map[string]any{"attributes": map[string]string{"k": "v"}}, &store.RowPatch{Attributes: map[string]string{"k": "v"}})
		w.append("r", store.Event{Type: store.ChildStarted, Key: "kid", Ordinal: 3}, map[string]any{"child": "r/kid"}, nil)
		eng := w.serve(t, wf, kid)
		rec, err := eng.RecoverRun(w.ctx(), "r")
		require.NoError(t, err)
		require.Equal(t, []any{durable.CodeD2, before, int32(4)}, []any{rec.Code, rec.Cutoff, rec.NewBranch}, "the number of the jump is not used again")
		row := w.row("r")
		require.Empty(t, row.Attributes)
		var left []store.Type
		for ev, err := range operate.On(eng).LeftBehind(w.ctx(), "r", 4) {
			require.NoError(t, err)
			left = append(left, ev.Type)
		}
		require.Equal(t, []store.Type{store.JumpRequested, store.AttributesSet, store.ChildStarted}, left)
		old := 0
		for ev, err := range operate.On(eng).Lineage(w.ctx(), "r", 0) {
			require.NoError(t, err)
			require.Zero(t, ev.Branch)
			old++
		}
		require.EqualValues(t, before+3, old, "the old branch can be read as it was")
		for _, err := range operate.On(eng).Lineage(w.ctx(), "r", 9) {
			require.ErrorIs(t, err, durable.ErrNotFound)
		}
		_, err = eng.Recover(w.ctx())
		require.NoError(t, err)
		w.eventually("r", store.Completed)
		w.eventually("r/kid", store.Cancelled)
	})
}

// A repair is one write: a process that dies before or after it leaves a run that
// the next one brings to the same end, on one new branch.
func TestARepairThatIsKilledIsWholeOrNotThere(t *testing.T) {
	for _, after := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			done := map[string]int{}
			wf := tornWait(t, w, done)
			w.open(t, with(wf))
			w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
				if after {
					forward()
				}
				w.disk.cut()
				return all(batch, store.ErrClosed)
			})
			_, err := w.eng.RecoverRun(w.ctx(), "r")
			require.Error(t, err)
			rep := w.reboot(t, with(wf))
			require.Len(t, rep.Repaired, map[bool]int{false: 1, true: 0}[after])
			w.eventually("r", store.Waiting)
			list, err := operate.On(w.eng).Branches(w.ctx(), "r")
			require.NoError(t, err)
			require.Len(t, list, 2)
			require.Len(t, w.log.find("Created branch 1"), map[bool]int{false: 1, true: 0}[after])
			require.NoError(t, durable.Signal(w.ctx(), "r", "go", "yes"))
			_, err = wait(t, w, wf, "r")
			require.NoError(t, err)
			require.Equal(t, map[string]int{"a": 1, "b": 1}, done)
		})
	}
}

// Boot looks at a row and the last event: a waiting run that is consistent costs
// no read of its own for it.
func TestBootReadsNoHistoryToFindThatAWaitingRunIsSound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 1, durable.Sleep(ctx, 1000*time.Hour) })
		w.serve(t, wf)
		for i := range 20 {
			start(t, w, wf, fmt.Sprint("r", i), 0)
		}
		w.eventually("r19", store.Waiting)
		loads := func(o durable.Options) (n int) {
			w.crash()
			w.expire()
			w.open(t, o)
			w.disk.tamperCalls(func(call string, forward func() error) error {
				if call == "load" {
					n++
				}
				return forward()
			})
			_, err := w.eng.Recover(context.Background())
			require.NoError(t, err)
			w.disk.tamperCalls(nil)
			return n
		}
		without := loads(durable.Options{Workflows: []durable.Definition{wf}, NoReconcileOnBoot: true})
		require.Equal(t, without, loads(with(wf)))
	})
}

func TestAPausedRunIsRepairedAndStaysPaused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		done := map[string]int{}
		wf := approving(done)
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		require.NoError(t, w.eng.Pause(w.ctx(), "r", "lunch"))
		for range 100 {
			if synctest.Wait(); w.row("r").Paused {
				break
			}
			time.Sleep(time.Second)
		}
		w.crash()
		w.expire()
		// Its wait was never written, it seems.
		w.append("r", store.Event{Type: store.WaitClosed, Key: "go", Ordinal: 2}, map[string]any{"error": map[string]any{"message": "x"}}, nil)
		eng := w.serve(t, wf)
		rec, err := eng.RecoverRun(w.ctx(), "r")
		require.NoError(t, err)
		require.Equal(t, []any{durable.CodeA1, int64(3)}, []any{rec.Code, rec.Cutoff})
		require.True(t, w.row("r").Paused)
		_, err = eng.Recover(w.ctx())
		require.NoError(t, err)
		require.NoError(t, eng.Unpause(w.ctx(), "r"))
		w.eventually("r", store.Waiting)
		require.False(t, w.row("r").Paused, "the request that was carried out does not come again")
		require.NoError(t, durable.Signal(w.ctx(), "r", "go", "yes"))
		_, err = wait(t, w, wf, "r")
		require.NoError(t, err)
	})
}

// What a resume repairs is claimable from then on, for everybody.
func TestAResumeWhoseRepairIsTakenUpBySomebodyElseHasDoneItsPart(t *testing.T) {
	for name, c := range map[string]struct {
		o    operate.ResumeOptions
		want error
	}{
		"to go on":            {},
		"to have more tries":  {operate.ResumeOptions{ResetFailures: true}, durable.ErrNotResumable},
		"from another moment": {operate.ResumeOptions{FromCheckpoint: 1}, durable.ErrNotResumable},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := tornWait(t, w, map[string]int{})
				w.tear("r", to(store.Waiting))
				w.append("r", store.Event{Type: store.WaitClosed, Key: "go", Ordinal: 2}, map[string]any{"error": map[string]any{"message": "x"}}, nil)
				other := w.serve(t, wf)
				operator := w.open(t, durable.Options{})
				w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
					errs := forward()
					if events := batch[0].Events; len(events) > 0 && events[0].Type == store.WorkflowRecovered {
						require.NoError(t, second(other.Recover(context.Background())))
						w.eventually("r", store.Waiting)
					}
					return errs
				})
				_, err := operate.On(operator).Resume(context.Background(), "r", c.o)
				require.ErrorIs(t, err, c.want)
				all := w.everything("r")
				require.Equal(t, "wait_requested go", all[len(all)-1])
			})
		})
	}
}

// All declared steps are done and the end is missing: the last of them runs once
// more if the engine is told so, and not if it must not run twice.
func TestTheLastStepIsVerifiedByRunningItAgainIfAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		again, once bool
		runs        int
	}{
		"by default":   {runs: 1},
		"asked for":    {again: true, runs: 2},
		"but not Once": {again: true, once: true, runs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				keys := map[string]int{}
				wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
					if err := durable.Do(ctx, "a", func(context.Context) error { return nil }); err != nil {
						return "", err
					}
					body := func(ctx context.Context) (string, error) {
						keys[durable.IdempotencyKey(ctx)]++
						if len(keys) == 1 && keys[durable.IdempotencyKey(ctx)] == 1 {
							w.disk.tamper(func(_ []store.Change, forward func() []error) []error {
								errs := forward()
								if h := w.row("r"); h.Last.Type == store.StepCompleted && h.Last.Key == "b" {
									w.disk.cut()
								}
								return errs
							})
						}
						return "done", nil
					}
					if c.once {
						return durable.Once(ctx, "b", body)
					}
					return durable.Step(ctx, "b", body)
				}, durable.Steps("a", "b"))
				w.serve(t, wf)
				start(t, w, wf, "r", 0)
				synctest.Wait()
				w.crash()
				w.expire()
				o := with(wf)
				o.RerunLastStep = c.again
				rep := w.boot(t, o)
				require.Len(t, rep.Repaired, 1)
				require.Equal(t, durable.CodeA3, rep.Repaired[0].Code)
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, "done", out)
				require.Len(t, keys, 1, "one idempotency key")
				for _, n := range keys {
					require.Equal(t, c.runs, n)
				}
				again, err := w.eng.RecoverRun(w.ctx(), "r")
				require.NoError(t, err)
				require.False(t, again.Needed)
			})
		})
	}
}
