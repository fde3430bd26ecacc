package durable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// repairs lists the codes of the repairs of a run, in their order.
func repairs(t *testing.T, w *world, id string) (codes []string) {
	t.Helper()
	h, err := w.data.Load(context.Background(), id, store.Cursor{All: true})
	require.NoError(t, err)
	for ev, err := range h.Events {
		require.NoError(t, err)
		if ev.Type == store.WorkflowRecovered {
			var said struct{ Code string }
			require.NoError(t, json.Unmarshal(ev.Data, &said))
			codes = append(codes, said.Code)
		}
	}
	return codes
}

// A run of which several things are wrong is looked at again until nothing is: the
// first of them gives the reason, and one call mends all.
func TestWhatElseIsWrongIsMendedInTheSameCall(t *testing.T) {
	// A row that says so, and has forgotten what it waited for.
	says := func(s store.Status) store.RowPatch {
		return store.RowPatch{Status: &s, Code: new(string), Reason: new(string)}
	}
	jump := func(w *world) {
		w.append("r", store.Event{Type: store.JumpRequested}, map[string]any{"to_branch": 7}, nil)
	}
	for name, c := range map[string]struct {
		tear  func(w *world) // of a run that waits, whose process has died
		codes []string
	}{
		"A1, D2 and E2": {func(w *world) {
			w.boot(w.t, with(answeredAndHeld()))
			require.NoError(w.t, durable.Signal(w.ctx(), "r", "go", "yes"))
			w.eventually("r", store.Running)
			w.crash()
			w.expire()
			jump(w)
			w.tear("r", says(store.Waiting))
		}, []string{durable.CodeA1, durable.CodeE2}}, // the jump is left behind with the rest
		"A2 and E2": {func(w *world) { w.tear("r", says(store.Running)) }, []string{durable.CodeA2, durable.CodeE2}},
		"D2 and E2": {func(w *world) { jump(w); w.tear("r", says(store.Interrupted)) }, []string{durable.CodeD2, durable.CodeE2}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				done := map[string]int{}
				wf := approving(done)
				w.serve(t, wf)
				start(t, w, wf, "r", 0)
				w.eventually("r", store.Waiting)
				w.crash()
				w.expire()
				c.tear(w)
				repin(t, w, "r", "9")
				eng := w.open(t, with(wf))
				rec, err := eng.RecoverRun(w.ctx(), "r")
				require.NoError(t, err)
				require.True(t, rec.Needed)
				require.Equal(t, c.codes[0], rec.Code, "the first match gives the reason")
				require.Contains(t, rec.Reason, c.codes[0]+": ")
				branch := int32(1)
				if c.codes[0] == durable.CodeD2 {
					branch = 8 // after the one that the jump was to begin
				}
				require.Equal(t, branch, rec.NewBranch)
				require.Equal(t, c.codes, repairs(t, w, "r"))
				require.Equal(t, "1", w.row("r").Version)
				again, err := eng.RecoverRun(w.ctx(), "r")
				require.NoError(t, err)
				require.Equal(t, durable.Recovery{RunID: "r"}, again)

				_, err = eng.Recover(w.ctx())
				require.NoError(t, err)
				pass(time.Second)
				if row := w.row("r"); row.Status != store.Completed {
					w.eventually("r", store.Waiting)
					require.NoError(t, durable.Signal(w.ctx(), "r", durable.WaitKey("go", w.row("r").Branch), "yes"))
				}
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, "yes", out)
				require.Equal(t, 1, done["a"], "what was done is not done again")
			})
		})
	}
}

// answeredAndHeld is approving, but it never gets past the step behind the answer.
func answeredAndHeld() *durable.Workflow[int, string] {
	return durable.Define("w", func(ctx context.Context, _ int) (string, error) {
		if err := durable.Do(ctx, "a", func(context.Context) error { return nil }); err != nil {
			return "", err
		}
		v, err := durable.Await[string](ctx, "go", durable.Prompt("go?"))
		if err != nil {
			return "", err
		}
		return v, durable.Do(ctx, "b", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	})
}

// A jump names its branch in the request and in what carries it out, and leaves
// every event that was there. One that was not carried out is not made up for; who
// asked for it may ask again.
func TestAJumpThatWasLostIsNotMadeUpForAndCanBeAskedForAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		j := &journal{}
		mended := true
		wf := oneTwoThree(j, &mended)
		slow := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			for _, name := range []string{"one", "two"} {
				if err := durable.Do(ctx, name, func(ctx context.Context) error { j.add(ctx); return nil }); err != nil {
					return "", err
				}
			}
			return "", durable.Do(ctx, "three", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		})
		w.serve(t, slow)
		start(t, w, slow, "r", 0)
		synctest.Wait()
		w.crash()
		w.expire()
		w.append("r", store.Event{Type: store.JumpRequested}, map[string]any{"to_branch": 1}, nil)
		w.tear("r", to(store.Interrupted))
		before := w.events("r")

		eng := w.open(t, durable.Options{}) // an operator, without the code
		rec, err := eng.RecoverRun(w.ctx(), "r")
		require.NoError(t, err)
		require.Equal(t, []any{durable.CodeD2, before[len(before)-2].Seq}, []any{rec.Code, rec.Cutoff}, "behind the event before the request")
		require.EqualValues(t, 2, rec.NewBranch, "1 was promised to the jump: who asked for it may have kept the number")
		require.Equal(t, 1, countOf(w.lineage("r"), "step_completed two"), "it was not carried out")

		plan, err := operate.On(eng).Jump(w.ctx(), "r", seqOf(t, w, "r", "one"), operate.JumpOptions{By: "ada", Reason: "once more"})
		require.NoError(t, err)
		require.EqualValues(t, 3, plan.Branch)
		h, err := w.data.Load(context.Background(), "r", store.Cursor{All: true})
		require.NoError(t, err)
		var all []store.Event
		for ev, err := range h.Events {
			require.NoError(t, err)
			all = append(all, ev)
		}
		require.Equal(t, before, all[:len(before)], "no event was touched")
		named := map[store.Type]float64{}
		for _, ev := range all[len(before):] {
			if ev.Type == store.JumpRequested || ev.Type == store.JumpActivated {
				said := map[string]any{}
				require.NoError(t, json.Unmarshal(ev.Data, &said))
				named[ev.Type] = said["to_branch"].(float64)
			}
		}
		require.Equal(t, map[store.Type]float64{store.JumpRequested: 3, store.JumpActivated: 3}, named)
		require.EqualValues(t, 3, w.row("r").Branch)

		w.boot(t, with(wf))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "done", out)
		require.Equal(t, []int{1, 2}, j.counts("one/1", "two/1"))
	})
}

func countOf(lines []string, line string) (n int) {
	for _, l := range lines {
		if l == line {
			n++
		}
	}
	return n
}

// A4: the process dies between the failure of a step and what the function makes
// of it. A failure that can be tried again is, as of a step that was interrupted;
// one that cannot fails the run, and says whether it can be recovered.
func TestAFailureOnRecordDecidesAfterADeathAsItWouldHave(t *testing.T) {
	for name, c := range map[string]struct {
		fails       error
		dies        store.Type // as soon as this is durable
		ends        store.Status
		recoverable bool
		bodies      int
		pause       time.Duration
	}{
		"may be tried again": {errStock, store.AttemptFailed, store.Completed, false, 2, 50 * time.Second},
		"has been tried out": {errStock, store.StepFailed, store.Failed, true, 3, time.Second},
		"is permanent":       {durable.Permanent(errStock), store.StepFailed, store.Failed, false, 1, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				bodies := 0
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					return durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 3, Initial: c.pause, Jitter: -1}, func(context.Context) (int, error) {
						if bodies++; bodies > 1 && c.ends == store.Completed {
							return bodies, nil
						}
						return 0, fmt.Errorf("charge: %w", c.fails)
					})
				}, durable.Steps("charge"))
				w.serve(t, wf)
				disk := w.disk
				disk.tamper(func(_ []store.Change, forward func() []error) []error {
					errs := forward()
					if w.row("r").Last.Type == c.dies {
						disk.cut()
					}
					return errs
				})
				start(t, w, wf, "r", 0)
				pass(10 * time.Second)
				require.Equal(t, c.dies, w.row("r").Last.Type)
				require.Equal(t, store.Running, w.row("r").Status)
				w.crash()
				w.expire()
				rep := w.boot(t, with(wf))
				require.Empty(t, rep.Repaired, "it is no inconsistency")
				row := w.eventually("r", c.ends)
				require.Equal(t, c.recoverable, row.Recoverable)
				require.Zero(t, row.Branch)
				require.Equal(t, c.bodies, bodies)
			})
		})
	}
}

// The events of the current lineage alone say in which status a run is, where, and
// what it waits for, in whatever way it came there.
func TestTheEventsSayWhatTheRowSays(t *testing.T) {
	fails := durable.Define("fails", func(context.Context, int) (string, error) { return "", errStock })
	cancelled := func(w *world) {
		w.eventually("r", store.Waiting)
		require.NoError(w.t, w.eng.Cancel(w.ctx(), "r", "no more"))
	}
	for name, c := range map[string]struct {
		wf   *durable.Workflow[int, string]
		then func(w *world)
		want store.Status
		key  string
	}{
		"pending":   {durable.Ref[int, string]("elsewhere"), nil, store.Pending, ""},
		"waiting":   {approving(map[string]int{}), nil, store.Waiting, "go"},
		"failed":    {fails, nil, store.Failed, ""},
		"cancelled": {approving(map[string]int{}), cancelled, store.Cancelled, ""},
		"running": {answeredAndHeld(), func(w *world) {
			require.NoError(w.t, durable.Signal(w.ctx(), "r", "go", "yes"))
		}, store.Running, "go"},
		"interrupted": {answeredAndHeld(), func(w *world) {
			require.NoError(w.t, durable.Signal(w.ctx(), "r", "go", "yes"))
			w.eventually("r", store.Running)
			require.NoError(w.t, w.eng.Close())
		}, store.Interrupted, "go"},
		"completed": {approving(map[string]int{}), func(w *world) {
			require.NoError(w.t, durable.Signal(w.ctx(), "r", "go", "yes"))
		}, store.Completed, "b"},
		"waiting, after a jump back": {approving(map[string]int{}), func(w *world) {
			w.eventually("r", store.Waiting)
			_, err := operate.On(w.eng).Jump(w.ctx(), "r", 1, operate.JumpOptions{})
			require.NoError(w.t, err)
		}, store.Waiting, "go"},
		"cancelled, and taken back": {approving(map[string]int{}), func(w *world) {
			cancelled(w)
			w.eventually("r", store.Cancelled)
			_, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{Force: true})
			require.NoError(w.t, err)
		}, store.Waiting, "go"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.boot(t, with(approving(map[string]int{}), fails))
				if c.want == store.Running || c.want == store.Interrupted {
					w.crash()
					w.expire()
					w.boot(t, with(answeredAndHeld()))
				}
				start(t, w, c.wf, "r", 0)
				if c.then != nil {
					c.then(w)
				}
				w.eventually("r", c.want)
				var events []store.Event
				h, err := w.data.Load(context.Background(), "r", store.Cursor{})
				require.NoError(t, err)
				for ev, err := range h.Events {
					require.NoError(t, err)
					events = append(events, ev)
				}
				d := operate.DeriveStatus(events)
				require.Equal(t, c.want, d.Status)
				require.Equal(t, w.row("r").Last.Seq, d.Seq)
				if c.key != "" {
					require.Equal(t, c.key, d.Key)
				}
				if c.want == store.Waiting {
					require.Len(t, d.Waits, 1)
					require.Equal(t, "go?", d.Waits[0].Prompt)
					require.Equal(t, []string{"a"}, d.Completed)
				} else {
					require.Empty(t, d.Waits)
				}
			})
		})
	}
}

// B2: a wait that nobody has answered for ten years is no inconsistency, and no
// run is ended for it; the answer is as good as on the first day.
func TestAWaitOfTenYearsIsAnsweredAsOneOfTenSeconds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		done := map[string]int{}
		wf := approving(done)
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		require.NoError(t, w.eng.Close())
		row, before := w.row("r"), w.events("r")
		pass(10 * 365 * 24 * time.Hour)
		for _, policy := range []durable.BootPolicy{durable.FailOnBoot, durable.LeaveOnBoot, durable.ResumeOnBoot} {
			o := with(wf)
			o.OnBoot, o.Retention = policy, durable.Retention{KeepFor: 7 * 24 * time.Hour}
			rep := w.boot(t, o)
			require.Len(t, rep.Approvals, 1)
			require.Empty(t, rep.Repaired)
			pass(3 * time.Hour)
			require.Equal(t, row, w.row("r"))
			require.Equal(t, before, w.events("r"))
		}
		require.NoError(t, durable.Signal(w.ctx(), "r", durable.WaitKey("go", 0), "at last"))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "at last", out)
		require.Equal(t, map[string]int{"a": 1, "b": 1}, done)
	})
}
