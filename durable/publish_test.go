package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// elsewhere is the context of another process on the same data, which serves
// nothing.
func elsewhere(t *testing.T, w *world) context.Context {
	t.Helper()
	eng, err := durable.Open(context.Background(), w.data.Handle(), durable.Options{Logger: quiet})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	return durable.NewContext(context.Background(), eng)
}

// counting publishes its progress, an hour between one and the next.
var counting = durable.Define("counting", func(ctx context.Context, n int) (int, error) {
	for i := range n {
		if err := durable.Publish(ctx, "progress", i+1); err != nil {
			return 0, err
		}
		if err := durable.Sleep(ctx, time.Hour); err != nil {
			return 0, err
		}
	}
	return n, nil
})

func TestThePublishedValueIsTheLastOneFromAnyProcess(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.boot(t, with(counting))
		start(t, w, counting, "r", 3)
		there := elsewhere(t, w)
		for i := range 3 {
			synctest.Wait()
			for _, ctx := range []context.Context{w.ctx(), there} {
				v, ok, err := durable.Published[int](ctx, "r", "progress")
				require.NoError(t, err)
				require.True(t, ok)
				require.Equal(t, i+1, v)
			}
			_, ok, err := durable.Published[int](there, "r", "progress#2")
			require.NoError(t, err)
			require.False(t, ok, "another key")
			time.Sleep(59 * time.Minute)
			w.reboot(t, with(counting))
			time.Sleep(time.Minute)
		}
		w.eventually("r", store.Completed)
		v, ok, err := durable.Published[int](there, "r", "progress")
		require.NoError(t, err)
		require.True(t, ok, "also after the end")
		require.Equal(t, 3, v)
		published := 0
		for _, line := range w.story("r") {
			if strings.HasPrefix(line, "published progress") {
				published++
			}
		}
		require.Equal(t, 3, published, "a replay publishes nothing anew: %v", w.story("r"))
	})
}

func TestAWaiterHearsOfThePublishedValueItWaitsFor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.boot(t, with(counting))
		start(t, w, counting, "r", 5)
		there := elsewhere(t, w)
		began := time.Now()
		took := make(chan time.Duration, 10)
		for i := range 10 {
			ctx := []context.Context{w.ctx(), there}[i%2]
			go func() {
				v, err := durable.WaitPublished(ctx, "r", "progress", func(n int) bool { return n >= 3 })
				require.NoError(t, err)
				require.Equal(t, 3, v)
				took <- time.Since(began)
			}()
		}
		for range 10 {
			d := <-took
			require.GreaterOrEqual(t, d, 2*time.Hour)
			require.LessOrEqual(t, d, 2*time.Hour+3*time.Second)
		}
		v, err := durable.WaitPublished[int](there, "r", "progress", nil)
		require.NoError(t, err)
		require.Equal(t, 3, v, "what is there is enough")
		// A value that has been replaced is not there any more.
		_, err = durable.WaitPublished(there, "r", "progress", func(n int) bool { return n == 1 })
		var ended *durable.NotRunningError
		require.ErrorAs(t, err, &ended)
		require.Equal(t, store.Completed, ended.Status)
		require.ErrorContains(t, err, `without publishing "progress"`)
	})
}

func TestPublishedValuesAreFoundInALongHistoryAndInEveryScope(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			if err := durable.Publish(ctx, "early", "e"); err != nil {
				return 0, err
			}
			_, err := durable.Go(ctx, "branch", func(ctx context.Context) (int, error) { return 0, durable.Publish(ctx, "a/b ü", []string{"x"}) }).Wait(ctx)
			if err != nil {
				return 0, err
			}
			_, err = durable.Map(ctx, "items", upTo(n), durable.MapOptions{}, func(ctx context.Context, i int) (int, error) { return i, nil })
			if err != nil {
				return 0, err
			}
			return 0, durable.Publish(ctx, "late", nil)
		})
		w.serve(t, wf)
		_, err := run(t, w, wf, "r", 700)
		require.NoError(t, err)
		early, ok, err := durable.Published[string](w.ctx(), "r", "early")
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "e", early)
		nested, ok, err := durable.Published[[]string](w.ctx(), "r", "a/b ü")
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, []string{"x"}, nested)
		nothing, ok, err := durable.Published[int](w.ctx(), "r", "late")
		require.NoError(t, err)
		require.True(t, ok)
		require.Zero(t, nothing)
		require.Contains(t, w.story("r"), "published branch/a%2Fb ü")
	})
}

func TestReadersOfPublishedValuesGetTypedErrors(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Publish(ctx, "word", "three"); err != nil {
				return 0, err
			}
			_, err := durable.Await[int](ctx, "end")
			return 0, err
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		_, _, err := durable.Published[int](w.ctx(), "nobody", "word")
		require.ErrorIs(t, err, durable.ErrNotFound)
		_, err = durable.WaitPublished[int](w.ctx(), "nobody", "word", nil)
		require.ErrorIs(t, err, durable.ErrNotFound)
		var wrong *durable.UndecodableError
		_, ok, err := durable.Published[int](w.ctx(), "r", "word")
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "string", wrong.Recorded)
		require.False(t, ok)
		_, err = durable.WaitPublished[int](w.ctx(), "r", "word", nil)
		require.ErrorAs(t, err, &wrong)
		_, ok, err = durable.Published[int](w.ctx(), "r", "other")
		require.NoError(t, err)
		require.False(t, ok)

		// The end of the waiter's context is its cause.
		because := errors.New("enough")
		ctx, cancel := context.WithCancelCause(w.ctx())
		got := make(chan error, 2)
		go func() { _, err := durable.WaitPublished[int](ctx, "r", "other", nil); got <- err }()
		synctest.Wait()
		cancel(because)
		require.ErrorIs(t, <-got, because)

		// The end of the run ends the wait.
		go func() { _, err := durable.WaitPublished[int](w.ctx(), "r", "other", nil); got <- err }()
		synctest.Wait()
		require.NoError(t, durable.Signal(w.ctx(), "r", "end", 1))
		err = <-got
		require.ErrorIs(t, err, durable.ErrNotRunning)
		require.ErrorContains(t, err, `publishing "other"`)
	})
}

func TestWhatCannotBePublishedIsRefusedAndNothingIsRecorded(t *testing.T) {
	live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) (string, error) {
		var encode *durable.EncodeError
		if err := durable.Publish(ctx, "k", make(chan int)); !errors.As(err, &encode) {
			return "", fmt.Errorf("a channel: %w", err)
		}
		if err := durable.Publish(ctx, "k", strings.Repeat("x", 17<<20)); !errors.Is(err, store.ErrTooLarge) {
			return "", fmt.Errorf("17 MiB: %w", err)
		}
		for _, key := range []string{"", "a\nb", strings.Repeat("x", 256)} {
			if err := durable.Publish(ctx, key, 1); !errors.Is(err, durable.ErrInvalid) {
				return "", fmt.Errorf("%q: %w", key, err)
			}
		}
		err := durable.Do(ctx, "body", func(ctx context.Context) error { return durable.Publish(ctx, "k", 1) })
		if !errors.Is(err, durable.ErrNested) {
			return "", fmt.Errorf("in a body: %w", err)
		}
		// Reading is for steps.
		if _, _, err := durable.Published[int](ctx, "r", "k"); !errors.Is(err, durable.ErrInWorkflow) || !strings.Contains(err.Error(), "in a step") {
			return "", fmt.Errorf("reading: %w", err)
		}
		if _, err := durable.WaitPublished[int](ctx, "r", "k", nil); !errors.Is(err, durable.ErrInWorkflow) {
			return "", fmt.Errorf("waiting: %w", err)
		}
		ok, err := durable.Step(ctx, "read", func(ctx context.Context) (bool, error) {
			_, ok, err := durable.Published[int](ctx, durable.Attempt(ctx).RunID, "k")
			return ok, err
		})
		return fmt.Sprint(ok), err
	})
	require.NoError(t, live.err)
	require.Equal(t, "false", live.value, "nothing was published")
	require.Equal(t, live, replay)
	require.ErrorIs(t, durable.Publish(context.Background(), "k", 1), durable.ErrOutsideRun)
	_, _, err := durable.Published[int](context.Background(), "r", "k")
	require.ErrorIs(t, err, durable.ErrNoEngine)
}

func TestACancelledRunPublishesNothingMore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var late error
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			_, err := durable.Await[int](ctx, "never")
			late = durable.Publish(ctx, "k", 1)
			return 0, err
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", ""))
		w.eventually("r", store.Cancelled)
		require.ErrorIs(t, late, durable.ErrCancelled)
		require.NotContains(t, w.story("r"), "published k")
	})
}
