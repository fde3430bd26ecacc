package durabletest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/durable/durabletest"
)

// A hotel takes a payment for a room.
type hotel struct {
	paid, refunded, booked bool
	full, silent           bool
}

func (h *hotel) charge(ctx context.Context) error {
	return durable.Do(ctx, "charge", func(context.Context) error {
		h.paid = true
		if h.silent { // it is done, and nobody is told
			return durable.Permanent(errNoReply)
		}
		return nil
	})
}

func (h *hotel) promiseRefund(ctx context.Context) error {
	return durable.Compensate(ctx, "refund", func(context.Context) error { h.refunded = true; return nil })
}

func (h *hotel) room(ctx context.Context) error {
	return durable.Do(ctx, "room", func(context.Context) error {
		if h.full {
			return durable.Permanent(errFull)
		}
		h.booked = true
		return nil
	})
}

var (
	errFull    = errors.New("the hotel is full")
	errNoReply = errors.New("the bank did not reply")
)

// sound says that who has paid has a room, or the money back.
func (h *hotel) sound(error) error {
	if h.paid && !h.booked && !h.refunded {
		return errors.New("paid, with neither a room nor a refund")
	}
	return nil
}

// book makes these calls one after the other.
func (h *hotel) book(calls ...func(context.Context) error) *durable.Workflow[int, string] {
	return define(func(ctx context.Context, _ int) (string, error) {
		for _, call := range calls {
			if err := call(ctx); err != nil {
				return "", err
			}
		}
		return "booked", nil
	})
}

func (h *hotel) options(more ...durabletest.Option) []durabletest.Option {
	is := *h
	return append(more, durabletest.Invariant(h.sound), durabletest.Reset(func() { *h = is }), durabletest.SameProcess())
}

func TestAnInvariantIsLookedAtHoweverARunEnds(t *testing.T) {
	t.Run("one that is kept passes", func(t *testing.T) {
		h := &hotel{}
		ends := map[string]bool{}
		seen := durabletest.Invariant(func(ended error) error {
			switch {
			case ended == nil:
				ends["completed"] = true
			case errors.Is(ended, durable.ErrRunCancelled):
				ends["cancelled"] = true
			case errors.Is(ended, durable.ErrRunFailed):
				ends["failed"] = true
			default:
				return fmt.Errorf("an end of another kind: %w", ended)
			}
			return h.sound(ended)
		})
		require.NoError(t, durabletest.Examine(t, h.book(h.promiseRefund, h.charge, h.room), 7, append(h.options(), seen)...))
		require.Equal(t, map[string]bool{"completed": true, "cancelled": true, "failed": true}, ends)
	})
	t.Run("a compensation behind its effect", func(t *testing.T) {
		h := &hotel{silent: true}
		err := durabletest.Examine(t, h.book(h.charge, h.promiseRefund, h.room), 7, h.options(durabletest.Fails(errNoReply))...)
		require.ErrorContains(t, err, "durabletest.Invariant says: paid, with neither a room nor a refund")
		require.ErrorContains(t, err, "register it before")
		require.NoError(t, durabletest.Examine(t, h.book(h.promiseRefund, h.charge, h.room), 7, h.options(durabletest.Fails(errNoReply))...))
	})
	t.Run("a compensation that is missing, of a run that is stopped", func(t *testing.T) {
		h := &hotel{}
		err := durabletest.Examine(t, h.book(h.charge, h.room), 7, h.options()...)
		require.Regexp(t, "(its deadline passed|it was cancelled) (during|just after) write 2", err.Error(), "it completes undisturbed, and wherever its process ends")
		require.ErrorContains(t, err, "paid, with neither a room nor a refund")
	})
	t.Run("a compensation that is missing, of a run that fails", func(t *testing.T) {
		h := &hotel{full: true}
		err := durabletest.Examine(t, h.book(h.charge, h.room), 7, h.options(durabletest.Fails(errFull))...)
		require.ErrorContains(t, err, "it was executed undisturbed\nIt ended: failed: ")
		require.ErrorContains(t, err, "paid, with neither a room nor a refund")
	})
	t.Run("a world that only a crash breaks", func(t *testing.T) {
		h := &hotel{}
		charges := 0
		twice := func(ctx context.Context) error {
			return durable.Do(ctx, "charge", func(context.Context) error { charges++; return nil })
		}
		err := durabletest.Examine(t, h.book(twice, h.room), 7, durabletest.SameProcess(), durabletest.Reset(func() { charges = 0 }),
			durabletest.Invariant(func(error) error {
				if charges > 1 {
					return errors.New("charged twice")
				}
				return nil
			}))
		require.ErrorContains(t, err, "its process ended just before write")
		require.ErrorContains(t, err, "charged twice")
	})
}
