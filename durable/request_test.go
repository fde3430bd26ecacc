package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

var errTooExpensive = errors.New("too expensive")

var requestErrors = []durable.ErrorKind{durable.Sentinel("too expensive", errTooExpensive)}

// teller answers n requests: with their double, or with a refusal above 100.
var teller = durable.Define("teller", func(ctx context.Context, n int) (int, error) {
	sum := 0
	for range n {
		q, err := durable.AwaitRequest[int](ctx, "double")
		if err != nil {
			return sum, err
		}
		twice, err := durable.Step(ctx, "compute", func(context.Context) (int, error) {
			if q.Value > 100 {
				return 0, fmt.Errorf("%d: %w", q.Value, errTooExpensive)
			}
			return 2 * q.Value, nil
		})
		if err != nil {
			err = q.Refuse(ctx, err)
		} else {
			err = q.Reply(ctx, twice)
		}
		if err != nil {
			return sum, err
		}
		sum += q.Value
	}
	return sum, nil
})

func telling() durable.Options {
	o := with(teller)
	o.Errors = requestErrors
	return o
}

func TestARequestIsAnsweredFromAnyProcessInOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.boot(t, telling())
		there := elsewhere(t, w)
		start(t, w, teller, "r", 12)
		type answer struct{ in, out int }
		got := make(chan answer, 10)
		for i := range 10 {
			ctx := []context.Context{w.ctx(), there}[i%2]
			go func() {
				out, err := durable.Request[int](ctx, "r", "double", i)
				require.NoError(t, err)
				got <- answer{i, out}
			}()
		}
		for range 10 {
			a := <-got
			require.Equal(t, 2*a.in, a.out, "everybody gets the answer to his own")
		}
		out, err := durable.Request[string](w.ctx(), "r", "double", 4)
		var wrong *durable.UndecodableError
		require.ErrorAs(t, err, &wrong, "the answer is no string")
		require.Empty(t, out)
		_, err = durable.Request[int](w.ctx(), "r", "double", 101)
		var refused *durable.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "r", refused.RunID)
		require.ErrorIs(t, err, errTooExpensive, "in the process that knows the error")
		require.ErrorContains(t, err, "101: too expensive")
		for _, key := range []string{"double", "reply"} {
			_, ok, err := durable.Published[int](w.ctx(), "r", key)
			require.NoError(t, err)
			require.False(t, ok, "an answer is for who asked")
		}
		w.eventually("r", store.Completed)
	})
}

func TestARequestIsFirstInFirstOutAndApartFromSignals(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			all := ""
			for range 3 {
				q, err := durable.AwaitRequest[string](ctx, "x")
				if err != nil {
					return "", err
				}
				all += q.Value + q.ID()
				if err := q.Reply(ctx, nil); err != nil {
					return "", err
				}
			}
			s, err := durable.Await[string](ctx, "x")
			return all + s, err
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		w.crash()
		w.expire()
		w.serve(t) // nobody is there to answer
		require.NoError(t, durable.Signal(w.ctx(), "r", "x", "signal"))
		done := make(chan error, 3)
		for i := range 3 {
			go func() {
				_, err := durable.Request[int](w.ctx(), "r", "x", "request", durable.SignalID(fmt.Sprint(i)))
				done <- err
			}()
			synctest.Wait()
		}
		requester := w.eng
		w.boot(t, with(wf))
		for range 3 {
			require.NoError(t, <-done)
		}
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, "request0request1request2signal", out)
		require.NotSame(t, requester, w.eng)
	})
}

// The request stands while nobody waits for its answer, and the answer while
// nobody reads it.
func TestARepeatedRequestFindsItsAnswer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.boot(t, telling())
		start(t, w, teller, "r", 2)
		w.eventually("r", store.Waiting)
		w.crash()
		w.expire()
		w.serve(t)
		ctx, cancel := context.WithTimeout(w.ctx(), time.Minute)
		_, err := durable.Request[int](ctx, "r", "double", 21, durable.SignalID("mine"))
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "not answered yet")

		w.boot(t, telling())
		w.eventually("r", store.Waiting)
		for range 2 {
			out, err := durable.Request[int](w.ctx(), "r", "double", 21, durable.SignalID("mine"))
			require.NoError(t, err)
			require.Equal(t, 42, out)
		}
		out, err := durable.Request[int](w.ctx(), "r", "double", 5)
		require.NoError(t, err)
		require.Equal(t, 10, out)
		w.eventually("r", store.Completed)
		out, err = durable.Request[int](w.ctx(), "r", "double", 21, durable.SignalID("mine"))
		require.NoError(t, err, "also after the end")
		require.Equal(t, 42, out)
		_, err = durable.Request[int](w.ctx(), "r", "double", 21, durable.SignalID("another"))
		require.ErrorIs(t, err, durable.ErrNotRunning)
		require.EqualValues(t, 2, w.row("r").Inbox)
	})
}

func TestARequestOfAStepIsMadeOnceHoweverOftenTheStepRuns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var tries atomic.Int32
		client := durable.Define("client", func(ctx context.Context, _ int) (string, error) {
			return durable.Retry(ctx, "ask", durable.Policy{MaxAttempts: 3, Initial: time.Second}, func(ctx context.Context) (string, error) {
				a, err := durable.Request[int](ctx, "r", "double", 1)
				if err != nil {
					return "", err
				}
				b, err := durable.Request[int](ctx, "r", "double", 2)
				if err != nil {
					return "", err
				}
				if tries.Add(1) < 3 {
					return "", errors.New("lost the answers")
				}
				return fmt.Sprint(a, b), nil
			})
		})
		o := telling()
		o.Workflows = append(o.Workflows, client)
		w.boot(t, o)
		start(t, w, teller, "r", 3)
		out, err := run(t, w, client, "c", 0)
		require.NoError(t, err)
		require.Equal(t, "2 4", out)
		require.EqualValues(t, 2, w.row("r").Inbox, "three attempts, two requests")
	})
}

func TestARequestThatIsNeverAnsweredIsATypedError(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			_, err := durable.AwaitRequest[int](ctx, "x")
			return 0, err
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		_, err := durable.Request[int](w.ctx(), "r", "x", 1)
		var ended *durable.NotRunningError
		require.ErrorAs(t, err, &ended)
		require.Equal(t, store.Completed, ended.Status)
		require.ErrorContains(t, err, `without answering request "x"`)
		_, err = durable.Request[int](w.ctx(), "nobody", "x", 1)
		require.ErrorIs(t, err, durable.ErrNotFound)
		_, err = durable.Request[int](w.ctx(), "r", "", 1)
		require.ErrorIs(t, err, durable.ErrInvalid)
		var encode *durable.EncodeError
		_, err = durable.Request[int](w.ctx(), "r", "x", make(chan int))
		require.ErrorAs(t, err, &encode)
		_, err = durable.Request[int](context.Background(), "r", "x", 1)
		require.ErrorIs(t, err, durable.ErrNoEngine)
	})
}

func TestARequestOfTheWrongTypeCanBeRefused(t *testing.T) {
	live, replay, requested := answering(t, "three", func(ctx context.Context) (string, error) {
		q, err := durable.AwaitRequest[int](ctx, "x")
		var wrong *durable.SignalTypeError
		if !errors.As(err, &wrong) {
			return "", fmt.Errorf("want a type error: %w", err)
		}
		return wrong.Sent + wrong.Wanted, q.Refuse(ctx, err)
	})
	require.NoError(t, live.err)
	require.Equal(t, "stringint", live.value)
	require.Equal(t, live, replay)
	var refused *durable.RefusedError
	require.ErrorAs(t, requested, &refused)
	var wrong *durable.SignalTypeError
	require.ErrorAs(t, requested, &wrong, "the sender learns of it, too")
}

func TestARequestIsAnsweredOnce(t *testing.T) {
	live, replay, requested := answering(t, 1, func(ctx context.Context) (string, error) {
		q, err := durable.AwaitRequest[int](ctx, "x")
		if err != nil {
			return "", err
		}
		// Both at once: which is the first is recorded.
		g := durable.NewGroup(ctx)
		for range 2 {
			g.Go("answer", func(ctx context.Context) error { return q.Reply(ctx, 1) })
		}
		twice := g.Wait()
		var answered *durable.AnsweredError
		if !errors.As(twice, &answered) {
			return "", fmt.Errorf("answered twice: %w", twice)
		}
		third := q.Refuse(ctx, errors.New("no"))
		if !errors.As(third, &answered) {
			return "", fmt.Errorf("answered three times: %w", third)
		}
		return twice.Error(), nil
	})
	require.NoError(t, live.err)
	require.Contains(t, live.value, "answered already, by answer")
	require.Equal(t, live, replay)
	require.NoError(t, requested)
}

func TestWhichRequestHasWhichAnswerIsKnownAfterARestart(t *testing.T) {
	for name, c := range map[string]struct {
		then func(ctx context.Context, a, b durable.Received[int]) error // in the second life
		want store.Status
		code string
	}{
		"a second answer":         {func(ctx context.Context, a, b durable.Received[int]) error { return a.Reply(ctx, 1) }, store.Failed, durable.CodeError},
		"the other's answer":      {func(ctx context.Context, a, b durable.Received[int]) error { return b.Reply(ctx, 1) }, store.Completed, ""},
		"answered in other order": {nil, store.Interrupted, durable.CodeDefinitionChanged},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var h hold
				lives := 0
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					lives++
					a, err := durable.AwaitRequest[int](ctx, "x")
					if err != nil {
						return 0, err
					}
					b, err := durable.AwaitRequest[int](ctx, "x")
					if err != nil {
						return 0, err
					}
					if c.then == nil && lives > 1 {
						a, b = b, a
					}
					if err := a.Reply(ctx, 1); err != nil {
						return 0, err
					}
					if err := durable.Do(ctx, "hold", h.body); err != nil || c.then == nil {
						return 0, err
					}
					return 0, c.then(ctx, a, b)
				})
				w.boot(t, with(wf))
				start(t, w, wf, "r", 0)
				ctx, cancel := context.WithTimeout(w.ctx(), time.Minute)
				defer cancel()
				got := make(chan error, 2)
				for i := range 2 {
					go func() { _, err := durable.Request[int](ctx, "r", "x", i, durable.SignalID(fmt.Sprint(i))); got <- err }()
					synctest.Wait()
				}
				require.NoError(t, <-got, "the first is answered")
				pass(time.Minute)
				w.reboot(t, with(wf))
				row := w.eventually("r", c.want)
				require.Equal(t, c.code, row.Code, row.Reason)
				if c.want == store.Failed {
					require.Contains(t, row.Reason, "answered already, by reply")
				}
			})
		})
	}
}

func TestWhatIsNoReceivedRequestCannotBeAnswered(t *testing.T) {
	live, replay, requested := answering(t, 1, func(ctx context.Context) (int, error) {
		q, err := durable.AwaitRequest[int](ctx, "x")
		if err != nil {
			return 0, err
		}
		var encode *durable.EncodeError
		if err := q.Reply(ctx, make(chan int)); !errors.As(err, &encode) {
			return 0, fmt.Errorf("a channel: %w", err)
		}
		if err := q.Refuse(ctx, nil); !errors.Is(err, durable.ErrInvalid) {
			return 0, fmt.Errorf("no error: %w", err)
		}
		if err := (durable.Received[int]{}).Reply(ctx, 1); !errors.Is(err, durable.ErrInvalid) {
			return 0, fmt.Errorf("the zero value: %w", err)
		}
		var copied durable.Received[int]
		b, err := json.Marshal(q)
		if err := errors.Join(err, json.Unmarshal(b, &copied), copied.Reply(ctx, 1)); !errors.Is(err, durable.ErrInvalid) {
			return 0, fmt.Errorf("one that was encoded: %w", err)
		}
		err = durable.Do(ctx, "body", func(ctx context.Context) error { return q.Reply(ctx, 1) })
		if !errors.Is(err, durable.ErrNested) {
			return 0, fmt.Errorf("in a body: %w", err)
		}
		if _, err := durable.Request[int](ctx, "r", "x", 1); !errors.Is(err, durable.ErrInWorkflow) {
			return 0, fmt.Errorf("in a workflow function: %w", err)
		}
		return q.Value, q.Reply(ctx, 2)
	})
	require.NoError(t, live.err)
	require.Equal(t, live, replay)
	require.NoError(t, requested)

	// The request of one run is nobody else's to answer.
	inWorld(t, func(t *testing.T, w *world) {
		kept := make(chan durable.Received[int], 1)
		taker := durable.Define("taker", func(ctx context.Context, _ int) (int, error) {
			q, err := durable.AwaitRequest[int](ctx, "x")
			kept <- q
			return 0, errors.Join(err, durable.Sleep(ctx, time.Hour))
		})
		thief := durable.Define("thief", func(ctx context.Context, _ int) (int, error) { return 0, (<-kept).Reply(ctx, 1) })
		w.serve(t, taker, thief)
		start(t, w, taker, "r", 0)
		go func() { _, _ = durable.Request[int](w.ctx(), "r", "x", 1) }()
		_, err := run(t, w, thief, "t", 0)
		require.ErrorIs(t, err, durable.ErrInvalid)
		require.ErrorContains(t, err, "of run r")
	})
}

// answering is liveAndReplayed for a call that answers the request "x" with
// value in; requested is the error that its maker gets.
func answering[T any](t *testing.T, in any, call func(ctx context.Context) (T, error)) (live, replay seen[T], requested error) {
	t.Helper()
	got := make(chan error, 1)
	live, replay = liveAndReplayed(t, durable.Options{Errors: requestErrors}, func(ctx context.Context) (T, error) {
		err := durable.Do(ctx, "send", func(ctx context.Context) error {
			// The request outlives the body that has made it.
			ctx = context.WithoutCancel(ctx)
			go func() { _, err := durable.Request[int](ctx, "r", "x", in, durable.SignalID("one")); got <- err }()
			return nil
		})
		if err != nil {
			var zero T
			return zero, err
		}
		return call(ctx)
	})
	select {
	case requested = <-got:
	default:
		require.Fail(t, "the request is still open")
	}
	return live, replay, requested
}

func TestASecondAnswerIsNoPublishedValue(t *testing.T) {
	wf := durable.Define("teller", func(ctx context.Context, _ int) (int, error) {
		if err := durable.Publish(ctx, "double", "published"); err != nil {
			return 0, err
		}
		q, err := durable.AwaitRequest[int](ctx, "double")
		if err != nil {
			return 0, err
		}
		if err := q.Reply(ctx, 1); err != nil {
			return 0, err
		}
		var answered *durable.AnsweredError
		if err := q.Reply(ctx, 2); !errors.As(err, &answered) {
			return 0, fmt.Errorf("answered twice: %w", err)
		}
		return 0, nil
	})
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		waited := make(chan error, 1)
		go func() {
			_, err := durable.WaitPublished(w.ctx(), "r", "double", func(v string) bool { return v != "published" })
			waited <- err
		}()
		pass(time.Second)
		_, err := durable.Request[int](w.ctx(), "r", "double", 1)
		require.NoError(t, err)
		_, err = wait(t, w, wf, "r")
		require.NoError(t, err)
		v, ok, err := durable.Published[string](w.ctx(), "r", "double")
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "published", v)
		var ended *durable.NotRunningError
		require.ErrorAs(t, <-waited, &ended, "the run has ended without another value")
	})
}
