package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// mailings sends eight mailings; item i fails in the first broken[i] Maps.
func mailings(o durable.MapOptions, broken map[int]int, ran func(round, item int)) func(ctx context.Context) (string, error) {
	send := func(round int) func(ctx context.Context, i int) (string, error) {
		return func(ctx context.Context, i int) (string, error) {
			return durable.Retry(ctx, "post", durable.Policy{MaxAttempts: 1 + i%3, Initial: time.Second}, func(ctx context.Context) (string, error) {
				if durable.Attempt(ctx).Number == 1 {
					ran(round, i)
				}
				if round < broken[i] {
					return "", errStock
				}
				return fmt.Sprint(i, ".", round), nil
			})
		}
	}
	return func(ctx context.Context) (string, error) {
		story := ""
		out, err := durable.Map(ctx, "send", upTo(8), o, send(0))
		for round := 1; err != nil; round++ {
			var me *durable.MapError
			if !errors.As(err, &me) {
				return "", err
			}
			for _, f := range me.Failed {
				story += fmt.Sprintf("%d %s %d; ", f.Index, f.Key, f.Attempts)
			}
			if me.Undone > 0 {
				story += fmt.Sprint(me.Undone, " undone; ")
			}
			before := slices.Clone(out)
			again, retryErr := durable.RetryFailed(ctx, fmt.Sprint("again", round), upTo(8), out, err, o, send(round))
			if !slices.Equal(before, out) {
				return "", errors.New("the results it was given were changed")
			}
			out, err = again, retryErr
		}
		none, err := durable.RetryFailed(ctx, "nothing", upTo(8), out, nil, o, send(9))
		return story + fmt.Sprint(none), err
	}
}

func TestOnlyWhatFailedIsDoneAgainAndItsResultsAreFilledIn(t *testing.T) {
	for name, c := range map[string]struct {
		o    durable.MapOptions
		want string
		ran  []string
	}{
		"keep going": {
			durable.MapOptions{KeepGoing: true, Concurrency: 3},
			"2 send[2] 3; 4 send[4] 2; 6 send[6] 1; 4 again1[1] 2; [0.0 1.0 2.1 3.0 4.2 5.0 6.1 7.0]",
			[]string{"0/0", "0/1", "0/2", "0/3", "0/4", "0/5", "0/6", "0/7", "1/2", "1/4", "1/6", "2/4"},
		},
		"stop": {
			durable.MapOptions{Concurrency: 1},
			"2 send[2] 3; 5 undone; 4 again1[2] 2; 3 undone; [0.0 1.0 2.1 3.1 4.2 5.2 6.2 7.2]",
			[]string{"0/0", "0/1", "0/2", "1/2", "1/3", "1/4", "2/4", "2/5", "2/6", "2/7"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var ran []string
			body := mailings(c.o, map[int]int{2: 1, 4: 2, 6: 1}, func(round, item int) {
				mu.Lock()
				defer mu.Unlock()
				ran = append(ran, fmt.Sprint(round, "/", item))
			})
			live, replay := liveAndReplayed(t, durable.Options{}, body)
			require.NoError(t, live.err)
			require.Equal(t, c.want, live.value)
			require.Equal(t, live, replay)
			slices.Sort(ran)
			require.Equal(t, c.ran, ran, "each of them once, live and on replay")
		})
	}
}

func TestADeadLetterSaysHowOftenItWasTried(t *testing.T) {
	live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) ([]durable.ItemError, error) {
		_, err := durable.Map(ctx, "m", upTo(4), durable.MapOptions{KeepGoing: true, Concurrency: 1}, func(ctx context.Context, i int) (int, error) {
			switch i {
			case 0:
				return durable.Retry(ctx, "s", durable.Policy{MaxAttempts: 4, Initial: time.Second}, func(context.Context) (int, error) { return 0, errStock })
			case 1:
				_, err := durable.Step(ctx, "s", func(context.Context) (int, error) { return 0, errStock })
				return 0, fmt.Errorf("wrapped: %w", err)
			case 2:
				panic("no step")
			}
			return 0, errStock
		})
		var me *durable.MapError
		if !errors.As(err, &me) {
			return nil, err
		}
		var all []durable.ItemError
		for _, f := range me.Failed {
			all = append(all, durable.ItemError{Index: f.Index, Key: f.Key, Attempts: f.Attempts})
		}
		return all, nil
	})
	require.NoError(t, live.err)
	require.Equal(t, []durable.ItemError{{Index: 0, Key: "m[0]", Attempts: 4}, {Index: 1, Key: "m[1]", Attempts: 1}, {Index: 2, Key: "m[2]", Attempts: 1}, {Index: 3, Key: "m[3]", Attempts: 1}}, live.value)
	require.Equal(t, live, replay)
}

func TestRetryFailedRefusesWhatIsNotOfOneMap(t *testing.T) {
	live, replay := liveAndReplayed(t, durable.Options{}, func(ctx context.Context) (int, error) {
		fails := func(context.Context, int) (int, error) { return 0, errStock }
		out, mapErr := durable.Map(ctx, "m", upTo(3), durable.MapOptions{}, fails)
		var nilFn func(context.Context, int) (int, error)
		for what, err := range map[string]error{
			"no function":   second(durable.RetryFailed(ctx, "r", upTo(3), out, mapErr, durable.MapOptions{}, nilFn)),
			"fewer items":   second(durable.RetryFailed(ctx, "r", upTo(2), out, mapErr, durable.MapOptions{}, fails)),
			"another map's": second(durable.RetryFailed(ctx, "r", upTo(3), out, &durable.MapError{Failed: []*durable.ItemError{{Index: 3}}}, durable.MapOptions{}, fails)),
			"no indexes":    second(durable.RetryFailed(ctx, "r", upTo(3), out, &durable.MapError{Undone: 2}, durable.MapOptions{}, fails)),
			"concurrency":   second(durable.RetryFailed(ctx, "r", upTo(3), out, mapErr, durable.MapOptions{Concurrency: -1}, fails)),
		} {
			if !errors.Is(err, durable.ErrInvalid) {
				return 0, fmt.Errorf("%s: %w", what, err)
			}
		}
		if _, err := durable.RetryFailed(ctx, "r", upTo(3), out, errStock, durable.MapOptions{}, fails); err != errStock {
			return 0, fmt.Errorf("another error: %w", err)
		}
		return 1, nil
	})
	require.NoError(t, live.err)
	require.Equal(t, live, replay)
}

func TestACancelEndsARetryOfFailedItems(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			o := durable.MapOptions{KeepGoing: true}
			out, err := durable.Map(ctx, "m", upTo(3), o, func(context.Context, int) (int, error) { return 0, errStock })
			_, err = durable.RetryFailed(ctx, "again", upTo(3), out, err, o, func(ctx context.Context, i int) (int, error) { return i, durable.Sleep(ctx, time.Hour) })
			return 0, err
		})
		w.serve(t, wf)
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", ""))
		w.eventually("r", store.Cancelled)
	})
}
