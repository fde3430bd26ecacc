package durable_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// refundShop ships an order and refunds what it has charged if it cannot.
type refundShop struct {
	did    []string // with the idempotency key
	broken bool
}

func (s *refundShop) act(what string) func(context.Context) error {
	return func(ctx context.Context) error {
		s.did = append(s.did, what+" "+durable.IdempotencyKey(ctx))
		return nil
	}
}

func (s *refundShop) names() (list []string) {
	for _, what := range s.did {
		name, _, _ := strings.Cut(what, " ")
		list = append(list, name)
	}
	return list
}

// keysOf are the idempotency keys under which something was done.
func (s *refundShop) keysOf(name string) (keys []string) {
	for _, what := range s.did {
		if n, key, _ := strings.Cut(what, " "); n == name {
			keys = append(keys, key)
		}
	}
	return keys
}

func (s *refundShop) order() *durable.Workflow[int, string] {
	return durable.Define("order", func(ctx context.Context, _ int) (string, error) {
		if err := durable.Do(ctx, "reserve", s.act("reserve")); err != nil {
			return "", err
		}
		if err := durable.Compensate(ctx, "refund", s.act("refund")); err != nil {
			return "", err
		}
		if err := durable.Do(ctx, "charge", s.act("charge")); err != nil {
			return "", err
		}
		return "shipped", durable.Do(ctx, "ship", func(ctx context.Context) error {
			if s.broken {
				return durable.Permanent(errors.New("no truck"))
			}
			return s.act("ship")(ctx)
		})
	})
}

// refunded leaves an order that was charged, could not be shipped and was refunded.
func refunded(t *testing.T, w *world) (*refundShop, *durable.Workflow[int, string]) {
	s := &refundShop{broken: true}
	wf := s.order()
	w.boot(t, with(wf))
	_, err := run(t, w, wf, "r", 0)
	require.ErrorContains(t, err, "no truck")
	require.Equal(t, []string{"reserve", "charge", "refund"}, s.names())
	s.broken = false
	return s, wf
}

// A cut or a copy that keeps the charge and not its refund would ship what nobody has paid.
func TestNoCutTakesACallForDoneThatWasUndone(t *testing.T) {
	ways := map[string]func(t *testing.T, w *world, force bool) (operate.Plan, error){
		"resume": func(t *testing.T, w *world, force bool) (operate.Plan, error) {
			return operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{FromCheckpoint: seqOf(t, w, "r", "charge"), Force: force})
		},
		"resume, dry": func(t *testing.T, w *world, force bool) (operate.Plan, error) {
			return operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{FromCheckpoint: seqOf(t, w, "r", "charge"), Force: force, DryRun: true})
		},
		"jump": func(t *testing.T, w *world, force bool) (operate.Plan, error) {
			return operate.On(w.eng).Jump(w.ctx(), "r", seqOf(t, w, "r", "charge"), operate.JumpOptions{Force: force})
		},
		"edit": func(t *testing.T, w *world, force bool) (operate.Plan, error) {
			return operate.On(w.eng).Edit(w.ctx(), "r", "ship", nil, operate.EditOptions{Force: force})
		},
		"plan of a fork": func(t *testing.T, w *world, force bool) (operate.Plan, error) {
			return operate.On(w.eng).PlanFork(w.ctx(), "r", operate.ForkOptions{ID: "f", At: seqOf(t, w, "r", "charge"), Force: force})
		},
		"fork": func(t *testing.T, w *world, force bool) (operate.Plan, error) {
			plan, _ := operate.On(w.eng).PlanFork(w.ctx(), "r", operate.ForkOptions{ID: "f", Force: force})
			_, err := operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: "f", Force: force})
			return plan, err
		},
	}
	for name, cut := range ways {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				refunded(t, w)
				before := w.everything("r")
				_, err := cut(t, w, false)
				var undone *operate.UndoneError
				require.ErrorAs(t, err, &undone)
				require.Equal(t, []string{"charge"}, undone.Calls)
				require.Equal(t, []string{"~undo/refund"}, undone.By)
				require.Equal(t, seqOf(t, w, "r", "reserve"), undone.Before)
				require.ErrorContains(t, err, "what charge (by refund) did was undone, and would count as done. To make it again go on from checkpoint 3 (reserve), or an earlier one, or use Force")
				require.Equal(t, before, w.everything("r"))
				plan, err := cut(t, w, true)
				require.NoError(t, err)
				require.Contains(t, strings.Join(plan.Warnings, "\n"), "what charge (by refund) did was undone")
				require.NotContains(t, plan.Again, "~undo/refund")
			})
		})
	}
}

func TestAPlainResumeOfARunThatWasUndoneLeadsToACheckpointThatIsWhole(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		refunded(t, w)
		plan, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{DryRun: true})
		require.NoError(t, err)
		require.Contains(t, strings.Join(plan.Warnings, "\n"), "go on from checkpoint 3 (reserve), or an earlier one")
	})
}

// What was undone is made again under another key: under its old one the bank would say
// that the charge was made already. What was not undone keeps its key.
func TestWhatWasUndoneIsMadeAgainUnderAnotherKey(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s, wf := refunded(t, w)
		s.broken = true
		plan, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{FromCheckpoint: 1})
		require.NoError(t, err)
		require.Contains(t, strings.Join(plan.Warnings, "\n"), "charge (by refund) was undone and is made again, with another idempotency key")
		_, err = wait(t, w, wf, "r")
		require.Error(t, err)
		require.Equal(t, []string{"reserve", "charge", "refund", "reserve", "charge", "refund"}, s.names())
		distinct := func(name string, n int) {
			seen := map[string]bool{}
			for _, k := range s.keysOf(name) {
				seen[k] = true
			}
			require.Len(t, seen, n, name)
		}
		distinct("reserve", 1)
		distinct("charge", 2)
		distinct("refund", 2)
		require.Equal(t, durable.IdempotencyKeyOf("r", 0, "charge~b1"), s.keysOf("charge")[1])

		// The same after a crash, and behind a cut further back that undoes nothing.
		s.broken = false
		w.reboot(t, with(wf))
		_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{FromCheckpoint: 1})
		require.NoError(t, err)
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "shipped", out)
		distinct("reserve", 1)
		distinct("charge", 3)
		v := verify(t, w, "r")
		require.True(t, v.Sound(), "%v", v.Findings)
	})
}

// A history that an earlier version has recorded does not say which calls were undone.
func TestAnUndoneRunOfAnEarlierVersionGoesOnFromItsBeginningAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := &refundShop{broken: true}
		wf := s.order()
		w.boot(t, with(wf))
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			for i := range batch[0].Events {
				e := &batch[0].Events[i]
				if e.Key == "~undo/refund" {
					*e = without(w, "r", *e, "undoes")
				} else if e.Type == store.WorkflowFailed {
					behind := w.events("r")
					e.Sum = store.Seal("r", behind[len(behind)-1].Sum, e) // the engine chains to what it has sent
				}
			}
			return forward()
		})
		_, err := run(t, w, wf, "r", 0)
		require.Error(t, err)
		s.broken = false
		w.reboot(t, with(wf))
		_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{FromCheckpoint: seqOf(t, w, "r", "reserve")})
		var undone *operate.UndoneError
		require.ErrorAs(t, err, &undone)
		require.Equal(t, []string{"reserve"}, undone.Calls, "it may be the one that was undone")
		require.EqualValues(t, 1, undone.Before)
		_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{FromCheckpoint: 1})
		require.NoError(t, err)
		_, err = wait(t, w, wf, "r")
		require.NoError(t, err)
		require.NotEqual(t, s.keysOf("charge")[0], s.keysOf("charge")[1])
	})
}

// Damage in the undoing must not bring back what was undone.
func TestARepairDoesNotTakeForDoneWhatWasUndone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		_, wf := refunded(t, w)
		var ship int64
		for _, ev := range w.whole("r") {
			if ev.Key == "ship" {
				ship = ev.Seq
			}
		}
		w.crash()
		w.expire()
		w.rotting(t, rot{run: "r", event: at(ship, bitFlips()["data"])}, with(wf))
		_, err := operate.On(w.eng).Repair(context.Background(), "r", operate.RepairOptions{})
		require.ErrorIs(t, err, operate.ErrUnrepairable)
		require.ErrorContains(t, err, "charge (by refund) did was undone")
	})
}
