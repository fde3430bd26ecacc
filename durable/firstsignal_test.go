package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// letters takes n signals and puts them together.
var letters = durable.Define("letters", func(ctx context.Context, n int) (string, error) {
	all := ""
	for range n {
		v, err := durable.Await[string](ctx, "letter")
		if err != nil {
			return "", err
		}
		all += v
	}
	return all, nil
})

func TestARunIsStartedWithItsFirstSignals(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(t, letters)
		commits := 0
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			for i := range batch {
				if batch[i].Create != nil {
					commits++
					require.Len(t, batch[i].Send, 2, "in the act that starts it")
				}
			}
			return forward()
		})
		h, err := letters.Start(w.ctx(), "r", 2, durable.WithSignal("letter", "a"), durable.WithSignal("letter", "b"))
		require.NoError(t, err)
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, "ab", out)
		require.Equal(t, 1, commits)
		require.Equal(t, []string{"workflow_created", "workflow_started", "signal_received letter", "signal_received letter#2", "workflow_completed"}, w.story("r"),
			"they were there before they were asked for")

		// Also where nobody has the code yet, and with a generated id.
		w.serve(t)
		r, err := durable.Ref[int, string]("letters").Start(w.ctx(), durable.AutoID, 1, durable.WithSignal("letter", "c"))
		require.NoError(t, err)
		w.boot(t, with(letters))
		out, err = wait(t, w, letters, r.ID())
		require.NoError(t, err)
		require.Equal(t, "c", out)
	})
}

func TestARunThatExistsIsSentTheSignalInstead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(t, letters)
		for i, v := range []string{"a", "b", "b", "c"} {
			_, err := letters.Start(w.ctx(), "r", 3, durable.WithSignal("letter", v, durable.SignalID(v)))
			require.NoError(t, err, i)
			pass(time.Second)
		}
		out, err := wait(t, w, letters, "r")
		require.NoError(t, err)
		require.Equal(t, "abc", out)

		_, err = letters.Start(w.ctx(), "r", 3, durable.WithSignal("letter", "c", durable.SignalID("c")))
		require.NoError(t, err, "that one it has had")
		_, err = letters.Start(w.ctx(), "r", 3, durable.WithSignal("letter", "d"))
		var ended *durable.NotRunningError
		require.ErrorAs(t, err, &ended)
		require.Equal(t, durable.NotRunningError{RunID: "r", Status: store.Completed}, *ended)
	})
}

func TestAConflictSendsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(t, letters, asks)
		start(t, w, letters, "r", 1)
		_, err := letters.Start(w.ctx(), "r", 2, durable.WithSignal("letter", "x"))
		require.ErrorIs(t, err, durable.ErrConflict)
		_, err = asks.Start(w.ctx(), "r", 1, durable.WithSignal("letter", "x"))
		require.ErrorIs(t, err, durable.ErrConflict)
		synctest.Wait()
		require.Zero(t, w.row("r").Inbox)
	})
}

func TestASignalThatCannotBeSentStartsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(t, letters)
		_, err := letters.Start(w.ctx(), "r", 1, durable.WithSignal("", "x"))
		require.ErrorIs(t, err, durable.ErrInvalid)
		_, err = letters.Start(w.ctx(), "r", 1, durable.WithSignal("letter", make(chan int)))
		var encode *durable.EncodeError
		require.ErrorAs(t, err, &encode)
		require.Equal(t, "r", encode.RunID)
		_, err = w.eng.Get(w.ctx(), "r")
		require.ErrorIs(t, err, durable.ErrNotFound)
	})
}

// Start, with its signal and its key, killed at any write and sent again by the
// next life, and children started in the same way.
func TestAStartWithASignalKilledAtAnyWriteSendsItOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		define := func(j *journal) []durable.Definition {
			wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
				a, err := letters.Run(ctx, durable.AutoID, 2, durable.WithSignal("letter", "a"), durable.WithSignal("letter", "b"))
				if err != nil {
					return "", err
				}
				b, err := letters.Start(ctx, "named", 2, durable.WithSignal("letter", "c"))
				if err != nil {
					return "", err
				}
				// A caller repeats its start until it knows: with an id the
				// signal is one.
				err = durable.Do(ctx, "again", func(ctx context.Context) error {
					j.add(ctx)
					var err error
					for range 2 {
						_, e := letters.Start(ctx, "apart", 2, durable.WithSignal("letter", "x", durable.SignalID("1")))
						err = errors.Join(err, e)
					}
					return errors.Join(err, durable.Signal(ctx, "apart", "letter", "y", durable.SignalID("2")), durable.Signal(ctx, "named", "letter", "d", durable.SignalID("3")))
				})
				if err != nil {
					return "", err
				}
				c, err := b.Wait(ctx)
				if err != nil {
					return "", err
				}
				d, err := durable.Step(ctx, "apart", func(ctx context.Context) (string, error) {
					h, err := letters.Handle(ctx, "apart")
					if err != nil {
						return "", err
					}
					return h.Wait(ctx)
				})
				return fmt.Sprint(a, c, d), err
			})
			return []durable.Definition{wf, letters}
		}
		want, _, writes := livesOf(t, durable.Options{}, define, nil)
		require.Equal(t, "abcdxy, <nil>", want)
		for at := 1; at <= writes; at++ {
			for _, after := range []bool{false, true} {
				got, _, _ := livesOf(t, durable.Options{}, define, []death{{at, after}})
				require.Equal(t, want, got, "killed at write %d, after=%v", at, after)
			}
		}
	})
}
