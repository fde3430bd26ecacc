package outline_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// a stand is how it stands with run r after something was done with it.
type stand struct {
	name string
	do   func(t *testing.T, w *world)
	head string
	more string // a part of what follows; empty: nothing is expected
}

// begun starts run r of a workflow of this function, and lets time pass until it
// comes no further.
func (w *world) begun(fn func(ctx context.Context) error, o ...durable.StartOption) context.Context {
	w.t.Helper()
	return w.started("w", func(ctx context.Context, _ int) (int, error) { return 0, fn(ctx) }, o...)
}

func (w *world) started(name string, fn func(ctx context.Context, n int) (int, error), o ...durable.StartOption) context.Context {
	w.t.Helper()
	wf := durable.Define(name, fn)
	ctx := w.boot("web-1", wf)
	_, err := wf.Start(ctx, "r", 0, o...)
	require.NoError(w.t, err)
	pass(time.Second)
	return ctx
}

func awaits(ctx context.Context) error {
	_, err := durable.Await[int](ctx, "go")
	return err
}

// again continues run r with other code, in another process.
func (w *world) again(fn func(ctx context.Context) error) context.Context {
	w.t.Helper()
	w.crash()
	pass(durable.DefaultLease + time.Second)
	ctx := w.boot("web-2", durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, fn(ctx) }))
	pass(time.Second)
	return ctx
}

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func stands() []stand {
	return []stand{
		{"a signal", func(_ *testing.T, w *world) { w.begun(awaits) }, "Waiting for the signal go, since 00:00:00", ""},
		{"a signal in time", func(_ *testing.T, w *world) {
			w.begun(func(ctx context.Context) error {
				_, err := durable.Await[int](ctx, "go", durable.Timeout(time.Hour))
				return err
			})
		}, "Waiting for the signal go, since 00:00:00; it times out 01:00:00", ""},
		{"an approval", func(_ *testing.T, w *world) {
			w.begun(func(ctx context.Context) error {
				_, err := durable.Await[bool](ctx, "ok", durable.Prompt("Ship it?"))
				return err
			})
		}, "Waiting for a person: “Ship it?”", "in ok."},
		{"an approval beside a signal", func(_ *testing.T, w *world) {
			w.begun(func(ctx context.Context) error {
				g := durable.NewGroup(ctx)
				g.Go("a", awaits)
				g.Go("b", func(ctx context.Context) error {
					_, err := durable.Await[bool](ctx, "ok", durable.Prompt("Ship it?"))
					return err
				})
				return g.Wait()
			})
		}, "Waiting for a person: “Ship it?”", "It waits besides for the signal go."},
		{"a sleep", func(_ *testing.T, w *world) {
			w.begun(func(ctx context.Context) error { return durable.Sleep(ctx, time.Hour) })
		}, "Sleeping in sleep until 01:00:00", ""},
		{"a back-off", func(_ *testing.T, w *world) {
			w.begun(func(ctx context.Context) error {
				_, err := durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 4, Initial: time.Minute, Jitter: -1}, func(context.Context) (int, error) { return 0, errors.New("bank down") })
				return err
			})
		}, "charge failed once; attempt 2 of 4 begins in 1 min", ""},
		{"a child", func(_ *testing.T, w *world) {
			child := durable.Define("child", func(ctx context.Context, _ int) (int, error) { return 0, awaits(ctx) })
			w.withChild(child, func(ctx context.Context) error {
				_, err := child.Run(ctx, "part", 1)
				return err
			})
		}, "Waiting for the child run part, started 1 s ago", ""},
		{"a child whose failure was caught", func(_ *testing.T, w *world) {
			child := durable.Define("child", func(ctx context.Context, _ int) (int, error) { return 0, errors.New("no stock") })
			w.withChild(child, func(ctx context.Context) error {
				_, _ = child.Run(ctx, "part", 1)
				return errors.New("too late")
			})
		}, "The function returned an error: “too late”", ""},
		{"the first branch to end", func(_ *testing.T, w *world) {
			w.begun(func(ctx context.Context) error {
				slow := durable.Go(ctx, "slow", func(ctx context.Context) (int, error) { return 0, awaits(ctx) })
				fast := durable.Go(ctx, "fast", func(ctx context.Context) (int, error) { return 0, failing(ctx, "charge", "bank down", 1) })
				_, _, err := durable.First(ctx, "race", slow, fast)
				return err
			})
		}, "fast/charge failed: “bank down”", ""},
		{"one of a group", func(_ *testing.T, w *world) {
			w.begun(func(ctx context.Context) error {
				g := durable.NewGroup(ctx)
				g.Go("a", func(ctx context.Context) error { return durable.Do(ctx, "pack", works) })
				g.Go("b", func(ctx context.Context) error { return failing(ctx, "charge", "bank down", 1) })
				return g.Wait()
			})
		}, "b/charge failed: “bank down”", ""},
		{"a deadline", func(_ *testing.T, w *world) {
			w.begun(awaits, durable.Deadline(time.Minute))
			pass(time.Hour)
		}, "Failed: run r has passed its deadline, 2000-01-01T00:01:00Z", ""},
		{"a cancel before it began", func(t *testing.T, w *world) {
			ctx := w.boot("web-1")
			_, err := durable.Ref[int, int]("w").Start(ctx, "r", 0)
			require.NoError(t, err)
			require.NoError(t, w.eng.Cancel(ctx, "r", "not wanted"))
			pass(time.Minute)
		}, "Cancelled 1 min ago: “not wanted”", ""},
		{"a cancel of a wait", func(t *testing.T, w *world) {
			ctx := w.begun(awaits)
			require.NoError(t, w.eng.Cancel(ctx, "r", "not wanted"))
			pass(time.Minute)
		}, "Cancelled 1 min ago: “not wanted”", ""},
		{"a cancel that is swallowed", func(t *testing.T, w *world) {
			ctx := w.begun(func(ctx context.Context) error { _ = awaits(ctx); return nil })
			require.NoError(t, w.eng.Cancel(ctx, "r", ""))
			pass(time.Minute)
		}, "Cancelled 1 min ago", ""},
		{"compensations", func(_ *testing.T, w *world) {
			w.begun(func(ctx context.Context) error {
				_ = durable.Compensate(ctx, "refund", works)
				return failing(ctx, "charge", "bank down", 1)
			})
		}, "charge failed: “bank down”", "1 of 1 compensation done."},
		{"a compensation that fails", func(_ *testing.T, w *world) {
			w.begun(func(ctx context.Context) error {
				_ = durable.Compensate(ctx, "refund", func(context.Context) error { return durable.Permanent(errors.New("account closed")) })
				return failing(ctx, "charge", "bank down", 1)
			})
		}, "charge failed: “bank down”", "0 of 1 compensation done; refund failed: “account closed”."},
		{"the next generation", func(_ *testing.T, w *world) {
			w.started("w", func(ctx context.Context, n int) (int, error) {
				if n == 0 {
					return 0, durable.Continue(ctx, 1)
				}
				return 0, failing(ctx, "charge", "bank down", 1)
			})
		}, "charge failed: “bank down”", ""},
		{"a jump back", func(t *testing.T, w *world) {
			n := 0
			ctx := w.begun(func(ctx context.Context) error {
				if err := durable.Do(ctx, "pack", works); err != nil {
					return err
				}
				if n++; n > 1 {
					return failing(ctx, "charge", "bank down", 1)
				}
				return awaits(ctx)
			})
			at, err := operate.On(w.eng).CheckpointOf(ctx, "r", "pack")
			require.NoError(t, err)
			_, err = operate.On(w.eng).Jump(ctx, "r", at, operate.JumpOptions{Reason: "once more", By: "jo"})
			require.NoError(t, err)
			pass(time.Minute)
		}, "charge failed: “bank down”", "It was taken back by jo (“once more”)"},
		{"other code", func(_ *testing.T, w *world) {
			w.begun(func(ctx context.Context) error { return errors.Join(durable.Do(ctx, "pack", works), awaits(ctx)) })
			ctx := w.again(func(ctx context.Context) error { return errors.Join(durable.Do(ctx, "wrap", works), awaits(ctx)) })
			require.NoError(w.t, durable.Signal(ctx, "r", "go", 1))
			pass(time.Second)
		}, "Parked: ", "It goes on when a program whose code fits calls durable.Recover, or when somebody resumes it."},
		{"a value that cannot be read", func(_ *testing.T, w *world) {
			w.begun(func(ctx context.Context) error {
				_, err := durable.Step(ctx, "pack", func(context.Context) (string, error) { return "four", nil })
				return errors.Join(err, awaits(ctx))
			})
			ctx := w.again(func(ctx context.Context) error {
				_, err := durable.Step(ctx, "pack", func(context.Context) (int, error) { return 4, nil })
				return errors.Join(err, awaits(ctx))
			})
			require.NoError(w.t, durable.Signal(ctx, "r", "go", 1))
			pass(time.Second)
		}, "Parked: ", "It goes on when a program whose code fits calls durable.Recover, or when somebody resumes it."},
		{"a result that cannot be kept", func(_ *testing.T, w *world) {
			w.begun(func(ctx context.Context) error {
				_, err := durable.Step(ctx, "pack", func(context.Context) (any, error) { return make(chan int), nil })
				return err
			})
		}, "pack failed: ", ""},
		{"Goexit", func(_ *testing.T, w *world) {
			w.begun(func(ctx context.Context) error { runtime.Goexit(); return nil })
		}, "The function did not return: it ended its goroutine with runtime.Goexit", "FailNow, Fatal"},
		{"a panic of a step", func(_ *testing.T, w *world) {
			w.begun(func(ctx context.Context) error {
				return durable.Do(ctx, "charge", func(context.Context) error { panic("nil map") })
			})
		}, "charge failed: “panic: nil map”", ""},
		{"nobody who serves it", func(_ *testing.T, w *world) {
			w.begun(func(ctx context.Context) error {
				return errors.Join(durable.Do(ctx, "pack", works), durable.Do(ctx, "charge", hang))
			})
			w.crash()
			pass(durable.DefaultLease + time.Second)
		}, "Nobody executes this run: web-1 was lost; its last sign is ", "No live process serves w"}, // 31 or 32 s ago: a heartbeat is due as it dies,
		{"code that nobody has", func(_ *testing.T, w *world) {
			w.begun(func(ctx context.Context) error { return durable.Do(ctx, "charge", hang) })
			w.crash()
			pass(durable.DefaultLease + time.Second)
			w.boot("web-2", durable.Define("other", func(context.Context, int) (int, error) { return 0, nil }))
			pass(time.Second)
		}, "Parked: no process that was there serves w v1", "It goes on once a process that does is started."},
		{"three deaths", func(_ *testing.T, w *world) {
			step := func(ctx context.Context) error { return durable.Do(ctx, "charge", hang) }
			w.begun(step)
			w.again(step)
			w.again(step)
			w.again(step)
			w.again(step)
		}, "Failed: quarantined: ", ""},
		{"pending", func(t *testing.T, w *world) {
			_, err := durable.Ref[int, int]("w").Start(w.boot("web-1"), "r", 0)
			require.NoError(t, err)
		}, "Not begun: no live process serves w", ""},
		{"a pause", func(t *testing.T, w *world) {
			ctx := w.begun(awaits)
			require.NoError(t, w.eng.Pause(ctx, "r", "stocktaking"))
			pass(time.Second)
		}, "Paused: “stocktaking”", "Nobody executes it"},
		{"a shutdown", func(t *testing.T, w *world) {
			w.begun(func(ctx context.Context) error {
				return errors.Join(durable.Do(ctx, "pack", works), durable.Do(ctx, "charge", hang))
			})
			require.NoError(t, w.eng.Close())
		}, "Stopped in good order just now after pack", "No live process serves w"},
		{"an import", func(t *testing.T, w *world) {
			ctx := w.begun(func(ctx context.Context) error { return errors.Join(durable.Do(ctx, "pack", works), awaits(ctx)) })
			var file bytes.Buffer
			require.NoError(t, operate.On(w.eng).Export(ctx, "r", &file))
			require.NoError(t, w.eng.Cancel(ctx, "r", ""))
			pass(time.Second)
			_, err := w.data.Delete(ctx, store.Deletion{RunIDs: []string{"r"}})
			require.NoError(t, err)
			_, err = operate.On(w.eng).Import(ctx, &file, operate.ImportOptions{})
			require.NoError(t, err)
		}, "Parked: ", "It goes on when somebody resumes it."},
		{"a step of another process", func(_ *testing.T, w *world) {
			w.begun(func(ctx context.Context) error {
				return errors.Join(durable.Do(ctx, "pack", works), durable.Do(ctx, "charge", hang))
			})
		}, "Running; pack was recorded 1 s ago", "What it does at this moment is known to its process alone."},
		{"a step of another process that says when it began", func(_ *testing.T, w *world) {
			w.begun(func(ctx context.Context) error {
				_, err := durable.Once(ctx, "charge", func(ctx context.Context) (int, error) { return 0, hang(ctx) })
				return err
			})
		}, "Running charge since 00:00:00", ""},
		{"an attempt of another process", func(_ *testing.T, w *world) {
			w.begun(func(ctx context.Context) error {
				_, err := durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 4, Initial: time.Second, Jitter: -1}, func(ctx context.Context) (int, error) {
					if durable.Attempt(ctx).Number == 1 {
						return 0, errors.New("bank down")
					}
					return 0, hang(ctx)
				})
				return err
			})
			pass(time.Minute)
		}, "Running charge, attempt 2 of 4, due since 00:00:01", ""},
		{"all is well", func(_ *testing.T, w *world) {
			w.begun(func(ctx context.Context) error {
				_ = failing(ctx, "mail", "mailbox full", 2)
				return durable.Do(ctx, "pack", works)
			})
		}, "Completed in ", "2 steps, 2 failed attempts."},
	}
}

// withChild is begun with the workflow of a child beside.
func (w *world) withChild(child durable.Definition, fn func(ctx context.Context) error) {
	w.t.Helper()
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, fn(ctx) })
	_, err := wf.Start(w.boot("web-1", wf, child), "r", 0)
	require.NoError(w.t, err)
	pass(time.Second)
}

// What heads a run that has not ended, or was ended from outside, names what holds it.
func TestTheVerdictNamesTheCauseOfEveryStand(t *testing.T) {
	for _, s := range stands() {
		t.Run(strings.ReplaceAll(s.name, " ", "_"), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				s.do(t, w)
				synctest.Wait()
				v := w.tell("r").Verdict
				if got := v.Head.String(); got != s.head && (!strings.HasSuffix(s.head, " ") || !strings.HasPrefix(got, s.head)) {
					t.Errorf("\n got %s\nwant %s", got, s.head)
				}
				if !strings.Contains(v.Text(), s.more) {
					t.Errorf("\n got %s\nwant %s", v.Text(), s.more)
				}
				if testing.Verbose() {
					t.Log(v.Text())
				}
			})
		})
	}
}
