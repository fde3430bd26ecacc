package termview_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/termview"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// bank lets the first charges fail.
type bank struct{ errs []error }

func takes(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// checkout is the workflow of the transcripts.
func checkout(b *bank, o ...durable.DefineOption) *durable.Workflow[string, string] {
	return durable.Define("checkout", func(ctx context.Context, order string) (string, error) {
		if err := durable.Do(ctx, "reserve", func(ctx context.Context) error { return takes(ctx, 230*time.Millisecond) }); err != nil {
			return "", err
		}
		_, err := durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 5, Initial: time.Second, Jitter: -1}, func(ctx context.Context) (int, error) {
			if err := takes(ctx, 1130*time.Millisecond); err != nil {
				return 0, err
			}
			if n := durable.Attempt(ctx).Number; n <= len(b.errs) {
				return 0, b.errs[n-1]
			}
			return 1, nil
		})
		if err != nil {
			return "", err
		}
		if _, err := durable.Await[bool](ctx, "approve", durable.Prompt("Ship "+order+"?")); err != nil {
			return "", err
		}
		return "H-7", durable.Do(ctx, "ship", func(ctx context.Context) error { return takes(ctx, 430*time.Millisecond) })
	}, o...)
}

var declared = durable.Steps("reserve", "charge", "approve", "ship")

func twice() *bank { return &bank{[]error{errors.New("bank: 503"), errors.New("bank: timeout")}} }

var words = termview.Words{
	Answer:   func(operate.Call) string { return "shop durable approve order-42" },
	Answered: func(store.Event) string { return "approved" },
}

// shop is a process: an engine on data that survives it.
func shop(t *testing.T, data *memory.Store, wf durable.Definition) (*durable.Engine, context.Context) {
	eng, err := durable.Open(t.Context(), data.Handle(), durable.Options{Workflows: []durable.Definition{wf}, Grace: -1, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = eng.Close() })
	_, err = eng.Recover(t.Context())
	require.NoError(t, err)
	return eng, durable.NewContext(context.Background(), eng)
}

// follow shows a run until stop is called, and returns what was written.
func follow(t *testing.T, eng *durable.Engine, v *termview.View, after int64) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- v.Follow(ctx, eng, "order-42", after, nil) }()
	return func() {
		cancel()
		require.NoError(t, <-done)
	}
}

func want(lines string) string { return strings.TrimPrefix(lines, "\n") }

func TestTheLinesOfARunThatIsInterruptedAndResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data, wf := memory.Open(), checkout(twice(), declared)
		eng, ctx := shop(t, data, wf)
		_, err := wf.Start(ctx, "order-42", "order-42")
		require.NoError(t, err)
		var out strings.Builder
		v := termview.New(&out, termview.Options{}, words)
		stop := follow(t, eng, v, 0)
		time.Sleep(6 * time.Second) // into the third attempt
		stop()
		require.Equal(t, want(`
Executing step 1/4: reserve
  ✓ 0.2s
Executing step 2/4: charge
  ✗ attempt 1 of 5: bank: 503 (next in 1s)
  ✗ attempt 2 of 5: bank: timeout (next in 2s)
`), out.String())
		require.NoError(t, eng.Close())

		out.Reset()
		eng, err = durable.Open(t.Context(), data.Handle(), durable.Options{Workflows: []durable.Definition{wf}, Grace: -1, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		ctx = durable.NewContext(context.Background(), eng)
		before, err := operate.On(eng).Standing(ctx, "order-42")
		require.NoError(t, err)
		plan, err := operate.On(eng).Resume(ctx, "order-42", operate.ResumeOptions{DryRun: true})
		require.NoError(t, err)
		require.Equal(t, want(`
Resuming from step 2 of 4: charge, attempt 3 of 5
  skipped      reserve
  re-executed  charge
  to run       approve, ship`), strings.Join(termview.Resumption(plan, before, termview.Options{}), "\n"))

		_, err = operate.On(eng).Resume(ctx, "order-42", operate.ResumeOptions{})
		require.NoError(t, err)
		v = termview.New(&out, termview.Options{}, words)
		stop = follow(t, eng, v, before.Seq)
		time.Sleep(2 * time.Second)
		require.NoError(t, durable.Signal(ctx, "order-42", "approve", true))
		time.Sleep(2 * time.Second)
		stop()
		require.Equal(t, want(`
Executing step 2/4: charge
  ✓ attempt 3 of 5, 1.1s
Executing step 3/4: approve
  ? Ship order-42?  Answer: shop durable approve order-42
  ✓ approved
Executing step 4/4: ship
  ✓ 0.4s
`), out.String())
		require.NoError(t, v.Err())
		require.NoError(t, eng.Close())
	})
}

func TestTheLinesAreTheSameReadLaterButForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data, wf := memory.Open(), checkout(twice())
		eng, ctx := shop(t, data, wf)
		_, err := wf.Start(ctx, "order-42", "order-42")
		require.NoError(t, err)
		var live, later strings.Builder
		stop := follow(t, eng, termview.New(&live, termview.Options{}, words), 0)
		time.Sleep(8 * time.Second)
		require.NoError(t, durable.Signal(ctx, "order-42", "approve", true))
		time.Sleep(time.Second)
		stop()
		require.NoError(t, termview.New(&later, termview.Options{}, words).Follow(ctx, eng, "order-42", 0, nil))
		// Without declared names a number of steps is known, and no name of a next one.
		require.Equal(t, want(`
Executing step 1/1: reserve
  ✓ 0.2s
Executing step 2/2: charge
  ✗ attempt 1 of 5: bank: 503 (next in 1s)
  ✗ attempt 2 of 5: bank: timeout (next in 2s)
  ✓ attempt 3 of 5, 1.1s
Wait: approve
  ? Ship order-42?  Answer: shop durable approve order-42
  ✓ approved
Executing step 3/3: ship
  ✓ 0.4s
`), live.String())
		require.Equal(t, live.String(), later.String())
		require.NoError(t, eng.Close())
	})
}

func TestOnATerminalTheLastLineIsDrawnAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data, wf := memory.Open(), checkout(twice(), declared)
		eng, ctx := shop(t, data, wf)
		_, err := wf.Start(ctx, "order-42", "order-42")
		require.NoError(t, err)
		tty := newTTY(t, 60)
		v := termview.New(tty, termview.Options{Redraw: true, Width: 60, Height: 20}, words)
		stop := follow(t, eng, v, 0)
		at := func(d time.Duration, lines string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			require.Equal(t, strings.TrimSuffix(want(lines), "\n"), tty.text())
		}
		at(150*time.Millisecond, `
Executing step 1/4: reserve
  … 0.0s
`)
		at(700*time.Millisecond, `
Executing step 1/4: reserve
  ✓ 0.2s
Executing step 2/4: charge
  … 0.5s
`)
		at(1000*time.Millisecond, `
Executing step 1/4: reserve
  ✓ 0.2s
Executing step 2/4: charge
  ✗ attempt 1 of 5: bank: 503 (next in 1s)
  … attempt 2 of 5  in 0.6s
`)
		at(4*time.Second, `
Executing step 1/4: reserve
  ✓ 0.2s
Executing step 2/4: charge
  ✗ attempt 1 of 5: bank: 503 (next in 1s)
  ✗ attempt 2 of 5: bank: timeout (next in 2s)
  … attempt 3 of 5  0.3s
`)
		stop()
		require.Equal(t, want(`
Executing step 1/4: reserve
  ✓ 0.2s
Executing step 2/4: charge
  ✗ attempt 1 of 5: bank: 503 (next in 1s)
  ✗ attempt 2 of 5: bank: timeout (next in 2s)
  … attempt 3 of 5`), tty.text())
		require.NoError(t, eng.Close())
	})
}

func TestTheBoardShowsTheWholeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data, wf := memory.Open(), checkout(twice(), declared)
		eng, ctx := shop(t, data, wf)
		_, err := wf.Start(ctx, "order-42", "order-42")
		require.NoError(t, err)
		tty := newTTY(t, 100)
		b := termview.NewBoard(tty, "order-42", termview.Options{Redraw: true, Color: true, Width: 100, Height: 20}, words)
		b.Owner("pid 4711 on web-1")
		done := make(chan error, 1)
		go func() { done <- b.Follow(ctx, eng, "order-42", nil) }()
		time.Sleep(6350 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, want(`
order-42  running  1 of 4  ██░░░░░░░░  6.3s  pid 4711 on web-1
  ✓ reserve  0.2s
  ▸ charge   attempt 3 of 5  0.8s  (2 failed: bank: timeout)
  · approve
  · ship`), tty.text())
		require.Contains(t, tty.raw(), "\x1b[32m✓\x1b[0m")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, want(`
order-42  waiting  2 of 4  █████░░░░░  6.6s  pid 4711 on web-1
  ✓ reserve  0.2s
  ✓ charge   attempt 3 of 5  1.1s
  ? approve  Ship order-42?  Answer: shop durable approve order-42
  · ship`), tty.text())
		require.NoError(t, durable.Signal(ctx, "order-42", "approve", true))
		require.NoError(t, <-done)
		require.Contains(t, tty.text(), "order-42  completed  4 of 4  ██████████")
		require.Contains(t, tty.text(), "\n  ✓ approve  approved\n  ✓ ship     0.4s")
		require.NoError(t, eng.Close())
	})
}

func TestWhoGoesBackSeesWhereTheRunGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data, wf := memory.Open(), checkout(&bank{}, declared)
		eng, ctx := shop(t, data, wf)
		_, err := wf.Start(ctx, "order-42", "order-42")
		require.NoError(t, err)
		var out strings.Builder
		stop := follow(t, eng, termview.New(&out, termview.Options{}, words), 0)
		time.Sleep(3 * time.Second)
		reserved, err := operate.On(eng).CheckpointOf(ctx, "order-42", "reserve")
		require.NoError(t, err)
		_, err = operate.On(eng).Jump(ctx, "order-42", reserved, operate.JumpOptions{})
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		stop()
		require.Equal(t, want(`
Executing step 1/4: reserve
  ✓ 0.2s
Executing step 2/4: charge
  ✓ 1.1s
Executing step 3/4: approve
  ? Ship order-42?  Answer: shop durable approve order-42
Going on from step 2 of 4 (branch 1)
Executing step 2/4: charge
  ✓ 1.1s
Executing step 3/4: approve
  ? Ship order-42?  Answer: shop durable approve order-42
`), out.String())
		require.NoError(t, eng.Close())
	})
}
