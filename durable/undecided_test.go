package durable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// undecided leaves the outcome of a message unknown, however often it is sent. With
// happens it is recorded the first time.
func undecided(happens bool) func(batch []store.Change, forward func() []error) []error {
	first := true
	return func(batch []store.Change, forward func() []error) []error {
		if len(batch) != 1 || len(batch[0].Send) != 1 {
			return forward()
		}
		if happens && first {
			forward()
		}
		first = false
		return all(batch, store.ErrUnknown)
	}
}

// A signal whose caller gives up while nobody knows whether it was recorded can be
// sent again, and is received once: the error has the id it was given.
func TestASignalOfWhichNobodyKnowsCanBeSentAgain(t *testing.T) {
	for name, happens := range map[string]bool{"it was recorded": true, "it was not": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (sum int, err error) {
					for err == nil {
						var n int
						n, err = durable.Await[int](ctx, "n", durable.Timeout(time.Hour))
						sum += n
					}
					if !errors.Is(err, durable.ErrTimeout) {
						return 0, err
					}
					return sum, nil
				})
				w.boot(t, with(wf))
				start(t, w, wf, "r", 0)
				w.eventually("r", store.Waiting)
				w.disk.tamper(undecided(happens))
				ctx, cancel := context.WithTimeout(w.ctx(), time.Minute)
				defer cancel()
				err := durable.Signal(ctx, "r", "n", 5)
				var open *durable.UndecidedError
				require.ErrorAs(t, err, &open)
				require.Equal(t, "r", open.RunID)
				require.NotEmpty(t, open.ID)
				require.ErrorIs(t, err, store.ErrUnknown)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, open.ID)
				w.disk.tamper(nil)
				require.NoError(t, durable.Signal(w.ctx(), "r", "n", 5, durable.SignalID(open.ID)))
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, 5, out)
			})
		})
	}
}

// A cancel, and a pause, are asked for again without harm.
func TestACancelAndAPauseOfWhichNobodyKnowsCanBeAskedForAgain(t *testing.T) {
	for name, ask := range map[string]func(ctx context.Context, eng *durable.Engine) error{
		"cancel": func(ctx context.Context, eng *durable.Engine) error { return eng.Cancel(ctx, "r", "enough") },
		"pause":  func(ctx context.Context, eng *durable.Engine) error { return eng.Pause(ctx, "r", "wait") },
	} {
		for how, happens := range map[string]bool{"recorded": true, "not recorded": false} {
			t.Run(name+", "+how, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					bodies := 0
					wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
						if _, err := durable.Await[int](ctx, "go"); err != nil {
							return 0, err
						}
						return durable.Step(ctx, "s", func(context.Context) (int, error) { bodies++; return bodies, nil })
					})
					w.boot(t, with(wf))
					start(t, w, wf, "r", 0)
					w.eventually("r", store.Waiting)
					w.disk.tamper(undecided(happens))
					ctx, cancel := context.WithTimeout(w.ctx(), time.Minute)
					defer cancel()
					err := ask(ctx, w.eng)
					require.ErrorIs(t, err, store.ErrUnknown)
					w.disk.tamper(nil)
					pass(time.Minute)
					require.NoError(t, ask(w.ctx(), w.eng))
					pass(time.Minute)
					if name == "cancel" {
						require.Equal(t, store.Cancelled, w.row("r").Status)
						return
					}
					require.True(t, w.row("r").Paused)
					require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
					require.NoError(t, durable.Signal(w.ctx(), "r", "go", 1))
					out, err := wait(t, w, wf, "r")
					require.NoError(t, err)
					require.Equal(t, 1, out)
				})
			})
		}
	}
}
