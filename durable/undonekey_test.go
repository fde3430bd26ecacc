package durable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

func TestAPlanPromisesAnotherKeyOnlyWhereTheCallGetsOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var keys []string
		broken := true
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Compensate(ctx, "refund", func(context.Context) error { return durable.Permanent(errors.New("bank is closed")) }); err != nil {
				return 0, err
			}
			if err := durable.Do(ctx, "charge", func(ctx context.Context) error { keys = append(keys, durable.IdempotencyKey(ctx)); return nil }); err != nil {
				return 0, err
			}
			return 1, durable.Do(ctx, "ship", func(context.Context) error {
				if broken {
					return durable.Permanent(errors.New("no van"))
				}
				return nil
			})
		})
		w.boot(t, with(wf))
		_, err := run(t, w, wf, "r", 1)
		require.Error(t, err)
		broken = false
		plan, err := operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{FromCheckpoint: 1})
		require.NoError(t, err)
		require.Contains(t, plan.Warnings, "charge (by refund) was perhaps undone, and is made again with the idempotency key it had")
		pass(time.Minute)
		require.Equal(t, store.Completed, w.row("r").Status)
		require.Len(t, keys, 2)
		require.Equal(t, keys[0], keys[1], "the refund failed: the charge may stand")
	})
}

func TestAnUndoneChildWhoseIDWasChosenIsNotTakenForMadeAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		booked, shipped, broken := 0, 0, true
		booking := durable.Define("booking", func(ctx context.Context, n int) (int, error) {
			return n, durable.Do(ctx, "book", func(context.Context) error { booked++; return nil })
		})
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Compensate(ctx, "cancel booking", func(context.Context) error { booked--; return nil }); err != nil {
				return 0, err
			}
			if _, err := booking.Run(ctx, "booking-7", 7); err != nil {
				return 0, err
			}
			return 1, durable.Do(ctx, "ship", func(context.Context) error {
				if broken {
					return durable.Permanent(errors.New("no van"))
				}
				shipped++
				return nil
			})
		})
		w.boot(t, with(wf, booking))
		_, err := run(t, w, wf, "r", 1)
		require.Error(t, err)
		broken = false
		var ended store.Event
		for _, ev := range w.events("r") {
			if ev.Type == store.ChildFinished {
				ended = ev
			}
		}
		for _, from := range []int64{1, ended.Seq} {
			_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{FromCheckpoint: from})
			var undone *operate.UndoneError
			require.ErrorAs(t, err, &undone, from)
			require.Zero(t, undone.Before, "there is no checkpoint from where it would be made again")
			require.Contains(t, err.Error(), "run booking-7, whose id the workflow has chosen, has ended and is not done again")
		}
		pass(time.Minute)
		require.Zero(t, shipped)
		_, err = operate.On(w.eng).Resume(w.ctx(), "r", operate.ResumeOptions{FromCheckpoint: 1, Force: true})
		require.NoError(t, err)
		pass(time.Minute)
		require.Equal(t, store.Completed, w.row("r").Status)
	})
}
