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
)

// A dry run refuses what the act refuses, and says of everything else what the act
// says: for every state of a run and every act that has one.
func TestADryRunSaysWhatTheActThenDoes(t *testing.T) {
	type scene struct {
		w      *world
		broken bool // its step fails
		hold   *hold
	}
	define := func(s *scene) *durable.Workflow[int, string] {
		return durable.Define("w", func(ctx context.Context, how int) (string, error) {
			if err := durable.Do(ctx, "first", doNothing); err != nil {
				return "", err
			}
			if how == 1 {
				if err := durable.Do(ctx, "held", s.hold.body); err != nil {
					return "", err
				}
			}
			if how == 2 {
				if _, err := durable.Await[bool](ctx, "ok", durable.Prompt("Go on?")); err != nil {
					return "", err
				}
			}
			if how == 3 {
				if err := durable.Sleep(ctx, 1000*time.Hour); err != nil {
					return "", err
				}
			}
			if how == 4 {
				if err := durable.Compensate(ctx, "undo", doNothing); err != nil {
					return "", err
				}
			}
			if err := durable.Do(ctx, "second", func(context.Context) error {
				if s.broken {
					return durable.Permanent(errors.New("out of order"))
				}
				return nil
			}); err != nil {
				return "", err
			}
			return "done", nil
		})
	}
	const running, asks, sleeps, undoes = 1, 2, 3, 4
	states := map[string]func(t *testing.T, s *scene, wf *durable.Workflow[int, string]){
		"running":   func(t *testing.T, s *scene, wf *durable.Workflow[int, string]) { start(t, s.w, wf, "r", running) },
		"waiting":   func(t *testing.T, s *scene, wf *durable.Workflow[int, string]) { start(t, s.w, wf, "r", asks) },
		"sleeping":  func(t *testing.T, s *scene, wf *durable.Workflow[int, string]) { start(t, s.w, wf, "r", sleeps) },
		"completed": func(t *testing.T, s *scene, wf *durable.Workflow[int, string]) { start(t, s.w, wf, "r", 0) },
		"failed": func(t *testing.T, s *scene, wf *durable.Workflow[int, string]) {
			s.broken = true
			start(t, s.w, wf, "r", 0)
			synctest.Wait()
			s.broken = false
		},
		"undone": func(t *testing.T, s *scene, wf *durable.Workflow[int, string]) {
			s.broken = true
			start(t, s.w, wf, "r", undoes)
			synctest.Wait()
			s.broken = false
		},
		"failed past its deadline": func(t *testing.T, s *scene, wf *durable.Workflow[int, string]) {
			s.broken = true
			_, err := wf.Start(s.w.ctx(), "r", 0, durable.Deadline(time.Minute))
			require.NoError(t, err)
			pass(time.Hour)
			s.broken = false
		},
		"cancelled": func(t *testing.T, s *scene, wf *durable.Workflow[int, string]) {
			start(t, s.w, wf, "r", asks)
			synctest.Wait()
			require.NoError(t, s.w.eng.Cancel(s.w.ctx(), "r", ""))
		},
		"paused": func(t *testing.T, s *scene, wf *durable.Workflow[int, string]) {
			start(t, s.w, wf, "r", asks)
			synctest.Wait()
			require.NoError(t, s.w.eng.Pause(s.w.ctx(), "r", ""))
		},
		"interrupted": func(t *testing.T, s *scene, wf *durable.Workflow[int, string]) {
			start(t, s.w, wf, "r", running)
			synctest.Wait()
			require.NoError(t, s.w.eng.Close())
			s.w.open(t, with(wf))
		},
		"left by a kill": func(t *testing.T, s *scene, wf *durable.Workflow[int, string]) {
			start(t, s.w, wf, "r", running)
			synctest.Wait()
			s.w.crash()
			s.w.expire()
			s.w.open(t, with(wf))
		},
		"waiting, left by a kill": func(t *testing.T, s *scene, wf *durable.Workflow[int, string]) {
			start(t, s.w, wf, "r", asks)
			synctest.Wait()
			s.w.crash()
			s.w.expire()
			s.w.open(t, with(wf))
		},
		"running elsewhere": func(t *testing.T, s *scene, wf *durable.Workflow[int, string]) {
			start(t, s.w, wf, "r", running)
			synctest.Wait()
			s.w.open(t, with(wf))
		},
		"its key is held by another": func(t *testing.T, s *scene, wf *durable.Workflow[int, string]) {
			s.broken = true
			_, err := wf.Start(s.w.ctx(), "r", 0, durable.Exclusive("key"))
			require.NoError(t, err)
			synctest.Wait()
			s.broken = false
			_, err = wf.Start(s.w.ctx(), "holder", asks, durable.Exclusive("key"))
			require.NoError(t, err)
		},
	}
	type outcome struct {
		plan any
		err  error
	}
	acts := map[string]func(e *durable.Engine, ctx context.Context, dry bool) outcome{
		"resume": func(e *durable.Engine, ctx context.Context, dry bool) outcome {
			p, err := operate.On(e).Resume(ctx, "r", operate.ResumeOptions{DryRun: dry})
			return outcome{p, err}
		},
		"resume with reset": func(e *durable.Engine, ctx context.Context, dry bool) outcome {
			p, err := operate.On(e).Resume(ctx, "r", operate.ResumeOptions{ResetFailures: true, DryRun: dry})
			return outcome{p, err}
		},
		"resume from a checkpoint": func(e *durable.Engine, ctx context.Context, dry bool) outcome {
			p, err := operate.On(e).Resume(ctx, "r", operate.ResumeOptions{FromCheckpoint: 3, DryRun: dry})
			return outcome{p, err}
		},
		"resume by force": func(e *durable.Engine, ctx context.Context, dry bool) outcome {
			p, err := operate.On(e).Resume(ctx, "r", operate.ResumeOptions{Force: true, DryRun: dry})
			return outcome{p, err}
		},
		"jump": func(e *durable.Engine, ctx context.Context, dry bool) outcome {
			ctx, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			p, err := operate.On(e).Jump(ctx, "r", 3, operate.JumpOptions{DryRun: dry})
			return outcome{p, err}
		},
		"edit": func(e *durable.Engine, ctx context.Context, dry bool) outcome {
			p, err := operate.On(e).Edit(ctx, "r", "first", json.RawMessage("null"), operate.EditOptions{Force: true, DryRun: dry})
			return outcome{p, err}
		},
		"fork": func(e *durable.Engine, ctx context.Context, dry bool) outcome {
			if dry {
				_, err := operate.On(e).PlanFork(ctx, "r", operate.ForkOptions{ID: "copy", At: 3})
				return outcome{nil, err}
			}
			_, err := operate.On(e).Fork(ctx, "r", operate.ForkOptions{ID: "copy", At: 3})
			return outcome{nil, err}
		},
		"fork under an id that is taken": func(e *durable.Engine, ctx context.Context, dry bool) outcome {
			if dry {
				_, err := operate.On(e).PlanFork(ctx, "r", operate.ForkOptions{ID: "taken", At: 3})
				return outcome{nil, err}
			}
			_, err := operate.On(e).Fork(ctx, "r", operate.ForkOptions{ID: "taken", At: 3})
			return outcome{nil, err}
		},
		"repair": func(e *durable.Engine, ctx context.Context, dry bool) outcome {
			r, err := operate.On(e).Repair(ctx, "r", operate.RepairOptions{DryRun: dry})
			r.DryRun = false
			return outcome{r, err}
		},
		"clean": func(e *durable.Engine, ctx context.Context, dry bool) outcome {
			r, err := operate.On(e).Clean(ctx, operate.CleanOptions{All: true, Idle: true, DryRun: dry})
			r.IDs, r.Epochs = nil, nil
			return outcome{r, err}
		},
	}
	for state, prepare := range states {
		for act, do := range acts {
			t.Run(state+"/"+act, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					s := &scene{w: w, hold: &hold{}}
					wf := define(s)
					w.boot(t, with(wf))
					start(t, w, wf, "taken", asks)
					synctest.Wait()
					prepare(t, s, wf)
					synctest.Wait()
					before := w.events("r")
					dry := do(w.eng, w.ctx(), true)
					require.Equal(t, before, w.events("r"), "a dry run writes nothing")
					done := do(w.eng, w.ctx(), false)
					if errors.Is(done.err, durable.ErrOccupied) {
						return // as the contract says, a dry run does not look at the keys
					}
					if act == "jump" && errors.Is(done.err, context.DeadlineExceeded) {
						return // the body under way did not end in time, which nothing foretells
					}
					require.Equal(t, fmt.Sprint(dry.err), fmt.Sprint(done.err))
					if done.err == nil {
						require.Equal(t, dry.plan, done.plan)
					}
				})
			})
		}
	}
}
