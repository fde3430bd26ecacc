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

// A loop around Await must get behind a signal that it cannot read.
func TestALoopAroundAwaitGetsBehindASignalOfTheWrongType(t *testing.T) {
	live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) (string, error) {
		err := durable.Do(ctx, "send", func(ctx context.Context) error {
			id := durable.Attempt(ctx).RunID
			return errors.Join(durable.Signal(ctx, id, "n", "three"), durable.Signal(ctx, id, "n", 4))
		})
		if err != nil {
			return "", err
		}
		refused := 0
		for range 5 {
			v, err := durable.Await[int](ctx, "n")
			var wrong *durable.SignalTypeError
			switch {
			case errors.As(err, &wrong):
				refused++
			case err != nil:
				return "", err
			default:
				return fmt.Sprintf("%d after %d refused", v, refused), nil
			}
		}
		return "", errors.New("the good signal was never reached")
	})
	require.NoError(t, live.err)
	require.Equal(t, "4 after 1 refused", live.value)
	require.Equal(t, live, replay)
}

// The same where the run waits when the signal comes, and is executed by another
// process from then on.
func TestASignalThatWasRefusedIsNotMetAgainAfterARestart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			_, err := durable.Await[int](ctx, "n")
			var wrong *durable.SignalTypeError
			if !errors.As(err, &wrong) {
				return 0, fmt.Errorf("want a type error: %w", err)
			}
			return durable.Await[int](ctx, "n")
		})
		w.serve(t, wf)
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		w.eventually("r", store.Waiting)
		require.NoError(t, durable.Signal(w.ctx(), "r", "n", "three"))
		w.eventually("r", store.Waiting)
		w.boot(t, with(wf))
		require.NoError(t, durable.Signal(w.ctx(), "r", "n", 4))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 4, out)
	})
}

// A run that failed because it met a signal of the wrong type waits for the next
// one when its failures are reset.
func TestARunThatFailedOnASignalOfTheWrongTypeWaitsForTheNextOneWhenItsFailuresAreReset(t *testing.T) {
	for _, early := range []bool{true, false} {
		t.Run(fmt.Sprintf("early=%v", early), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					if err := durable.Sleep(ctx, time.Second); err != nil {
						return 0, err
					}
					return durable.Await[int](ctx, "n")
				})
				e := w.serve(t, wf)
				_, err := wf.Start(w.ctx(), "r", 0)
				require.NoError(t, err)
				if !early {
					pass(2 * time.Second)
				}
				require.NoError(t, durable.Signal(w.ctx(), "r", "n", "three"))
				w.eventually("r", store.Failed)
				_, err = operate.On(e).Resume(w.ctx(), "r", operate.ResumeOptions{ResetFailures: true})
				require.NoError(t, err)
				w.eventually("r", store.Waiting)
				require.NoError(t, durable.Signal(w.ctx(), "r", "n", 4))
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, 4, out)
				v, err := operate.On(e).Verify(w.ctx(), "r")
				require.NoError(t, err)
				require.Empty(t, v.Findings)
			})
		})
	}
}

// JSON, as people and other programs send it, is checked while the sender is
// there to be told.
func TestJSONOfAnotherKindThanTheWaitAsksForIsRefusedWhenItIsSent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		type payment struct{ Amount int }
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			n, err := durable.Await[int](ctx, "next")
			if err != nil {
				return "", err
			}
			p, err := durable.Await[payment](ctx, "next")
			return fmt.Sprintf("%d %d", n, p.Amount), err
		})
		w.serve(t, wf)
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		w.eventually("r", store.Waiting)
		send := func(text string, o ...durable.SignalOption) error {
			return durable.Signal(w.ctx(), "r", "next", json.RawMessage(text), o...)
		}
		err = send(`{"Amount":3}`)
		require.ErrorIs(t, err, durable.ErrInvalid)
		require.ErrorContains(t, err, "run r: next waits for a number like 0, and the signal is an object")
		require.EqualValues(t, 0, w.row("r").Inbox, "nothing was sent")
		require.NoError(t, durable.Signal(w.ctx(), "r", "other", json.RawMessage(`"for a wait to come"`)))

		require.NoError(t, send("7", durable.SignalID("seven")))
		synctest.Wait()
		require.NoError(t, send("7", durable.SignalID("seven")), "the same again, though it waits for something else now")
		require.ErrorIs(t, send(`"much"`), durable.ErrInvalid)
		require.NoError(t, send(`{"Amount":3}`))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "7 3", out)
	})
}

// null is read as the zero value of any type: as a no, where a yes or a no is asked for. Only a
// wait for what may be nothing takes it.
func TestNullIsRefusedUnlessTheWaitMayBeGivenNothing(t *testing.T) {
	type payment struct{ Amount int }
	for name, c := range map[string]struct {
		await func(ctx context.Context) error
		wants string // empty: it takes null
	}{
		"a boolean":                 {awaitsGo[bool], "true or false"},
		"a number":                  {awaitsGo[int], "a number like 0"},
		"a text":                    {awaitsGo[string], `a string like ""`},
		"a struct":                  {awaitsGo[payment], `an object like {"Amount":0}`},
		"a struct without fields":   {awaitsGo[struct{}], ""},
		"a pointer":                 {awaitsGo[*payment], ""},
		"anything":                  {awaitsGo[any], ""},
		"a slice":                   {awaitsGo[[]int], ""},
		"what reads JSON by itself": {awaitsGo[json.RawMessage], ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, c.await(ctx) })
				w.serve(t, wf)
				_, err := wf.Start(w.ctx(), "r", 0)
				require.NoError(t, err)
				w.eventually("r", store.Waiting)
				err = durable.Signal(w.ctx(), "r", "go", json.RawMessage("null"))
				if c.wants == "" {
					require.NoError(t, err)
					w.eventually("r", store.Completed)
					return
				}
				require.ErrorIs(t, err, durable.ErrInvalid)
				require.ErrorContains(t, err, "run r: go waits for "+c.wants+", and the signal is null")
				require.EqualValues(t, 0, w.row("r").Inbox, "nothing was sent")
				require.NoError(t, w.eng.Cancel(w.ctx(), "r", ""))
				w.eventually("r", store.Cancelled)
			})
		})
	}
}

func awaitsGo[T any](ctx context.Context) error {
	_, err := durable.Await[T](ctx, "go")
	return err
}

// What it asks for is not known when the signal is sent: the run does not wait yet.
func TestNullThatCameBeforeTheWaitIsNotTakenForANo(t *testing.T) {
	for name, null := range map[string]any{
		"JSON": json.RawMessage("null"), "nil": nil, "a nil pointer": (*bool)(nil),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
					if err := durable.Sleep(ctx, time.Minute); err != nil {
						return "", err
					}
					_, err := durable.Await[bool](ctx, "go")
					var wrong *durable.SignalTypeError
					if !errors.As(err, &wrong) {
						return "", fmt.Errorf("it was taken: %w", err)
					}
					if err := durable.Sleep(ctx, time.Minute); err != nil { // it is replayed from here
						return "", err
					}
					yes, err := durable.Await[bool](ctx, "go")
					if err != nil {
						return "", err
					}
					pointer, err := durable.Await[*bool](ctx, "maybe")
					return fmt.Sprint(wrong, "; ", yes, pointer == nil), err
				})
				w.serve(t, wf)
				h := start(t, w, wf, "r", 0)
				synctest.Wait()
				require.NoError(t, durable.Signal(w.ctx(), "r", "go", null))
				require.NoError(t, durable.Signal(w.ctx(), "r", "go", true))
				require.NoError(t, durable.Signal(w.ctx(), "r", "maybe", null))
				out, err := h.Wait(w.ctx())
				require.NoError(t, err)
				require.Contains(t, out, "cannot be read as bool: it is null; true true")
			})
		})
	}
}
