package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// parcels is an order that starts a child, which fails as long as broken is set.
func parcels(broken *bool, keys *[]string, wait time.Duration) (parent, child *durable.Workflow[int, string]) {
	child = durable.Define("parcel", func(ctx context.Context, _ int) (string, error) {
		if err := durable.Sleep(ctx, wait); err != nil {
			return "", err
		}
		return durable.Step(ctx, "label", func(ctx context.Context) (string, error) {
			if *broken {
				return "", durable.Permanent(errors.New("no printer"))
			}
			*keys = append(*keys, durable.IdempotencyKey(ctx))
			return "H", nil
		})
	})
	parent = durable.Define("order", func(ctx context.Context, _ int) (string, error) {
		if err := durable.Do(ctx, "pick", doNothing); err != nil {
			return "", err
		}
		out, err := child.Run(ctx, durable.AutoID, 0)
		if err != nil {
			return "", err
		}
		return out, durable.Do(ctx, "close", doNothing)
	}, durable.Steps("pick", "close"))
	return parent, child
}

func TestAParentThatFailedWithItsChildGoesOnOnceTheChildWasResumed(t *testing.T) {
	for name, early := range map[string]bool{"the child has completed": false, "the child goes on": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				broken, keys := true, []string(nil)
				parent, child := parcels(&broken, &keys, time.Hour)
				w.boot(t, with(parent, child))
				_, err := run(t, w, parent, "x", 0)
				require.ErrorContains(t, err, "no printer")
				plan, err := operate.On(w.eng).Resume(w.ctx(), "x", operate.ResumeOptions{DryRun: true})
				require.NoError(t, err)
				require.Equal(t, []string{"x/parcel"}, plan.First)
				require.Contains(t, strings.Join(plan.Warnings, "\n"), "child x/parcel has failed, and this run with it: resume that one first")
				require.NotEmpty(t, plan.Ends)

				broken = false
				_, err = operate.On(w.eng).Resume(w.ctx(), "x/parcel", operate.ResumeOptions{})
				require.NoError(t, err)
				if !early {
					w.eventually("x/parcel", store.Completed)
				}
				plan, err = operate.On(w.eng).Resume(w.ctx(), "x", operate.ResumeOptions{})
				require.NoError(t, err)
				require.Equal(t, []string{"parcel"}, plan.Reset)
				require.Empty(t, plan.First)
				require.Empty(t, plan.Ends)
				pass(2 * time.Hour)
				out, err := wait(t, w, parent, "x")
				require.NoError(t, err)
				require.Equal(t, "H", out)
				require.Len(t, keys, 1)
				for v, err := range operate.On(w.eng).VerifyAll(w.ctx(), store.Filter{}) {
					require.NoError(t, err)
					require.True(t, v.Sound(), "%+v", v)
				}
			})
		})
	}
}

// A child that has reported its failure cannot report again, so its parent looks at it from time to time. Verify knows.
func TestVerifyCallsAParentSoundThatLooksAtItsChildFromTimeToTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		broken := true
		child := durable.Define("parcel", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Do(ctx, "label", func(context.Context) error {
				if broken {
					return durable.Permanent(errors.New("no printer"))
				}
				return nil
			}); err != nil {
				return 0, err
			}
			return 7, durable.Sleep(ctx, time.Hour)
		})
		parent := durable.Define("order", func(ctx context.Context, _ int) (int, error) { return child.Run(ctx, durable.AutoID, 0) })
		w.boot(t, with(parent, child))
		_, err := run(t, w, parent, "x", 0)
		require.ErrorContains(t, err, "no printer")
		broken = false
		for _, id := range []string{"x/parcel", "x"} {
			_, err = operate.On(w.eng).Resume(w.ctx(), id, operate.ResumeOptions{})
			require.NoError(t, err)
		}
		pass(time.Minute / 2)
		row := w.row("x")
		require.Equal(t, store.Waiting, row.Status)
		require.NotZero(t, row.WakeAt, "it looks at its child before the child ends")
		require.Empty(t, verify(t, w, "x").Findings)
		out, err := wait(t, w, parent, "x")
		require.NoError(t, err)
		require.Equal(t, 7, out)
	})
}

// A child that has completed is done again by a cut before its start, as another run,
// and the plan says so.
func TestAPlanNamesTheChildrenThatHaveEndedAndRunAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		broken, keys := false, []string(nil)
		parent, child := parcels(&broken, &keys, 0)
		kid := durable.Define("order2", func(ctx context.Context, _ int) (string, error) {
			if err := durable.Do(ctx, "pick", doNothing); err != nil {
				return "", err
			}
			for _, id := range []string{durable.AutoID, "chosen"} {
				if _, err := child.Run(ctx, id, 0); err != nil {
					return "", err
				}
			}
			return "", durable.Permanent(errors.New("no mail"))
		})
		w.boot(t, with(parent, child, kid))
		_, err := run(t, w, kid, "x", 0)
		require.ErrorContains(t, err, "no mail")
		require.Len(t, keys, 2)
		plan, err := operate.On(w.eng).Resume(w.ctx(), "x", operate.ResumeOptions{FromCheckpoint: seqOf(t, w, "x", "pick")})
		require.NoError(t, err)
		require.Equal(t, []string{"parcel"}, plan.Again)
		require.Contains(t, strings.Join(plan.Warnings, "\n"), "child x/parcel has ended: another one is started in its place")
		require.Contains(t, strings.Join(plan.Warnings, "\n"), "child chosen has ended, and was given its id by the workflow")
		_, err = wait(t, w, kid, "x")
		require.ErrorContains(t, err, "no mail")
		require.Len(t, keys, 3)
		require.NotEqual(t, keys[0], keys[2])
		require.Equal(t, store.Completed, w.row("x/parcel~b1").Status)
	})
}

// Nobody knows of a step that has only failed which type its result has. JSON that turns
// out not to be one can be put right.
func TestAWrongResultOfAFailedStepCanBeEditedAgain(t *testing.T) {
	type payment struct{ ID string }
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("pay", func(ctx context.Context, _ int) (payment, error) {
			return durable.Step(ctx, "charge", func(context.Context) (payment, error) { return payment{}, errors.New("503") })
		})
		w.boot(t, with(wf))
		_, err := run(t, w, wf, "r", 0)
		require.ErrorContains(t, err, "503")
		_, err = operate.On(w.eng).Edit(w.ctx(), "r", "charge", json.RawMessage(`"cash"`), operate.EditOptions{})
		require.NoError(t, err)
		_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})
		require.Error(t, err, "it is no payment")
		_, err = operate.On(w.eng).Edit(w.ctx(), "r", "charge", json.RawMessage(`{"ID":"p"}`), operate.EditOptions{})
		require.NoError(t, err)
		_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{})
		require.NoError(t, err)
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, payment{"p"}, out)
	})
}
