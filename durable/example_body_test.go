package durable_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
)

func ExampleDo() {
	wf := durable.Define("welcome", func(ctx context.Context, email string) (string, error) {
		return "done", durable.Do(ctx, "send", func(context.Context) error {
			fmt.Println("welcome,", email) // once, unless the process dies before this is recorded
			return nil
		})
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "welcome-1", "ada@example.com"))
	// Output:
	// welcome, ada@example.com
	// done <nil>
}

func ExampleRetryDo() {
	wf := durable.Define("ping", func(ctx context.Context, _ int) (string, error) {
		return "up", durable.RetryDo(ctx, "ping", durable.Policy{MaxAttempts: 3, Initial: time.Millisecond}, func(ctx context.Context) error {
			if at := durable.Attempt(ctx); at.Number < 2 {
				return errors.New("no answer")
			}
			return nil
		})
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "ping-1", 0))
	// Output: up <nil>
}

// After a crash in the body, Reconcile finds out what the body has done. Without it the
// step fails with an *UnknownOutcomeError.
func ExampleOnce() {
	wf := durable.Define("pay", func(ctx context.Context, amount int) (string, error) {
		receipt, err := durable.Once(ctx, "transfer", func(context.Context) (string, error) {
			return fmt.Sprintf("receipt for %d", amount), nil // the bank takes no idempotency key
		}, durable.Reconcile(func(context.Context) (receipt string, happened bool, err error) {
			return "", false, nil // asks the bank for the transfer
		}))
		var unknown *durable.UnknownOutcomeError
		if errors.As(err, &unknown) {
			return "", durable.Do(ctx, "tell the bookkeeper", func(context.Context) error { return nil })
		}
		return receipt, err
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "pay-1", 30))
	// Output: receipt for 30 <nil>
}

// A body that opens something elsewhere saves its handle. The attempt after a crash, or
// after a failure, finds the handle and continues there.
func ExampleSaveProgress() {
	wf := durable.Define("copy", func(ctx context.Context, files int) (int, error) {
		return durable.Retry(ctx, "copy", durable.Policy{MaxAttempts: 2, Initial: time.Millisecond}, func(ctx context.Context) (int, error) {
			next, found, err := durable.Progress[int](ctx)
			if err != nil {
				return 0, err
			}
			fmt.Println("begins at file", next, found)
			for ; next < files; next++ {
				if err := durable.SaveProgress(ctx, next); err != nil {
					return 0, err
				}
				if next == 2 && durable.Attempt(ctx).Number == 1 {
					return 0, errors.New("the disk is full")
				}
			}
			return next, nil
		})
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "copy-1", 4))
	// Output:
	// begins at file 0 false
	// begins at file 2 true
	// 4 <nil>
}

func ExampleProgress() {
	type session struct{ ID string }
	wf := durable.Define("render", func(ctx context.Context, _ int) (string, error) {
		return durable.Step(ctx, "render", func(ctx context.Context) (string, error) {
			s, found, err := durable.Progress[session](ctx)
			if err != nil {
				return "", err
			}
			if !found { // no earlier process has begun
				s = session{ID: "session-7"}
				if err := durable.SaveProgress(ctx, s); err != nil {
					return "", err
				}
			}
			return "rendered in " + s.ID, nil
		})
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "render-1", 0))
	// Output: rendered in session-7 <nil>
}

func ExampleSleep() {
	wf := durable.Define("reminder", func(ctx context.Context, d time.Duration) (string, error) {
		if err := durable.Sleep(ctx, d); err != nil { // a restart does not begin it again
			return "", err
		}
		return "it is time", nil
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "reminder-1", time.Millisecond))
	// Output: it is time <nil>
}

func ExampleSignal() {
	wf := durable.Define("parcel", func(ctx context.Context, _ int) (string, error) {
		where, err := durable.Await[string](ctx, "scanned")
		return "last seen in " + where, err
	})
	ctx, done := exampleEngine(wf)
	defer done()

	run, err := wf.Start(ctx, "parcel-1", 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	// The id makes it safe to send again after an error. A signal may come before its Await.
	fmt.Println(durable.Signal(ctx, "parcel-1", "scanned", "Ghent", durable.SignalID("scan-88")))
	fmt.Println(run.Wait(ctx))

	err = durable.Signal(ctx, "parcel-1", "scanned", "Bruges")
	fmt.Println(errors.Is(err, durable.ErrNotRunning))
	// Output:
	// <nil>
	// last seen in Ghent <nil>
	// true
}

func ExampleTimeout() {
	wf := durable.Define("offer", func(ctx context.Context, _ int) (string, error) {
		answer, err := durable.Await[string](ctx, "answer", durable.Timeout(time.Millisecond)) // or a week
		if errors.Is(err, durable.ErrTimeout) {
			return "nobody wanted it", nil
		}
		return answer, err
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "offer-1", 0))
	// Output: nobody wanted it <nil>
}

// The question is listed for people, in the terminal, on the pages and by this package, until
// it is answered.
func ExamplePrompt() {
	wf := durable.Define("release", func(ctx context.Context, version string) (string, error) {
		ok, err := durable.Await[bool](ctx, "approve", durable.Prompt("Release "+version+"?"))
		if err != nil || !ok {
			return "not released", err
		}
		return version + " is out", nil
	})
	eng := exampleOpen(wf)
	defer func() { _ = eng.Close() }()
	ctx := durable.NewContext(context.Background(), eng)
	run, err := wf.Start(ctx, "release-7", "v7")
	if err != nil {
		fmt.Println(err)
		return
	}
	var open []durable.Approval
	for err == nil && len(open) == 0 {
		time.Sleep(time.Millisecond)
		open, err = operate.On(eng).Approvals(ctx)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(open[0].RunID, open[0].Prompt)
	fmt.Println(operate.On(eng).Answer(ctx, open[0], true))
	fmt.Println(run.Wait(ctx))
	// Output:
	// release-7 Release v7?
	// <nil>
	// v7 is out <nil>
}

func ExampleNow() {
	wf := durable.Define("invoice", func(ctx context.Context, _ int) (bool, error) {
		issued := durable.Now(ctx) // the same on every replay, which time.Now is not
		due := issued.AddDate(0, 0, 14)
		return due.After(issued), nil
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "invoice-1", 0))
	// Output: true <nil>
}

func ExampleRand() {
	wf := durable.Define("raffle", func(ctx context.Context, tickets []string) (bool, error) {
		winner := tickets[durable.Rand(ctx).IntN(len(tickets))] // the same on every replay
		return winner != "", nil
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "raffle-1", []string{"a", "b", "c"}))
	// Output: true <nil>
}
