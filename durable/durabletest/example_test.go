package durabletest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/durable/durabletest"
	"github.com/holdfast-dev/holdfast/store/memory"
)

type Payment struct{ ID string }

// checkout charges, waits for an approval, and ships after the cooling-off period.
var checkout = durable.Define("checkout", func(ctx context.Context, order string) (string, error) {
	pay, err := durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 5, Initial: time.Millisecond}, chargeCard)
	if err != nil {
		return "", err
	}
	if ok, err := durable.Await[bool](ctx, "approve", durable.Timeout(48*time.Hour)); err != nil || !ok {
		return "", errors.Join(errors.New("not approved"), err)
	}
	return pay.ID, durable.Do(ctx, "ship", shipOrder)
})

func chargeCard(context.Context) (Payment, error) { return Payment{}, errors.New("no bank in a test") }
func shipOrder(context.Context) error             { return errors.New("no carrier in a test") }

var errDown = errors.New("bank is down")

// Examples have no *testing.T; this stands for it.
type exampleT struct {
	testing.TB
	ends []func()
}

func (t *exampleT) Helper()                        {}
func (t *exampleT) Cleanup(f func())               { t.ends = append(t.ends, f) }
func (t *exampleT) Context() context.Context       { return context.Background() }
func (t *exampleT) Skipped() bool                  { return false }
func (t *exampleT) Errorf(format string, a ...any) { fmt.Printf(format+"\n", a...) }
func (t *exampleT) Fatalf(format string, a ...any) { log.Panicf(format, a...) }
func (t *exampleT) end() {
	for _, f := range t.ends {
		f()
	}
}

var quiet = slog.New(slog.DiscardHandler)

func ExampleReplace() {
	t := &exampleT{} // in a test: the *testing.T
	defer t.end()

	charge := durabletest.Step("charge", durabletest.ReturnsErr(errDown).Times(2), durabletest.Returns(Payment{ID: "p1"}))
	eng, err := durable.Open(t.Context(), memory.Open(), durable.Options{
		Workflows: []durable.Definition{checkout},
		Around:    durabletest.Replace(t, charge, durabletest.Step("ship")),
		Logger:    quiet,
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer func() { _ = eng.Close() }()

	ctx := durable.NewContext(t.Context(), eng)
	id, err := checkout.Run(ctx, "order-1", "book", durable.WithSignal("approve", true))
	fmt.Println(id, err, len(charge.Calls()))
	// Output: p1 <nil> 3
}

func ExampleStep() {
	t := &exampleT{}
	defer t.end()

	// A function of what the step was given and of the call, for steps of one name.
	resize := durabletest.Step("resize", durabletest.Func(func(_ context.Context, c durabletest.Call) (string, error) {
		return fmt.Sprintf("%s of %v", c.Key, c.Input), nil
	}))
	album := durable.Define("album", func(ctx context.Context, files []string) ([]string, error) {
		return durable.Map(ctx, "files", files, durable.MapOptions{}, func(ctx context.Context, file string) (string, error) {
			return durable.Step(ctx, "resize", func(context.Context) (string, error) { return "", errDown }, durable.WithInput(file))
		})
	})
	eng, _ := durable.Open(t.Context(), memory.Open(), durable.Options{
		Workflows: []durable.Definition{album}, Around: durabletest.Replace(t, resize), Logger: quiet,
	})
	defer func() { _ = eng.Close() }()
	fmt.Println(album.Run(durable.NewContext(t.Context(), eng), "album-1", []string{"a.png", "b.png"}))
	// Output: [files[0]/resize of a.png files[1]/resize of b.png] <nil>
}

func ExampleGate() {
	t := &exampleT{}
	defer t.end()

	gate := &durabletest.Gate{}
	eng, _ := durable.Open(t.Context(), memory.Open(), durable.Options{
		Workflows: []durable.Definition{checkout},
		Around:    durabletest.Replace(t, durabletest.Step("charge", gate.Before(durabletest.Returns(Payment{ID: "p1"}))), durabletest.Step("ship")),
		Logger:    quiet,
	})
	defer func() { _ = eng.Close() }()
	ctx := durable.NewContext(t.Context(), eng)
	run, _ := checkout.Start(ctx, "order-1", "book", durable.WithSignal("approve", true))
	<-gate.Reached() // the charge is under way, and stays so
	key, _ := eng.Executing("order-1")
	gate.Open()
	id, err := run.Wait(ctx)
	fmt.Println(key, id, err)
	// Output: charge p1 <nil>
}

func ExampleHistoryOf() {
	t := &exampleT{}
	defer t.end()
	eng, _ := durable.Open(t.Context(), memory.Open(), durable.Options{
		Workflows: []durable.Definition{checkout}, Logger: quiet,
		Around: durabletest.Replace(t, durabletest.Step("charge", durabletest.ReturnsErr(errDown), durabletest.Returns(Payment{ID: "p1"})), durabletest.Step("ship")),
	})
	defer func() { _ = eng.Close() }()
	_, _ = checkout.Run(durable.NewContext(t.Context(), eng), "order-1", "book", durable.WithSignal("approve", true))

	h := durabletest.HistoryOf(t, eng, "order-1")
	h.Wants(durabletest.Did("charge").Attempts(2), durabletest.Did("approve").Result(true), durabletest.Did("ship"))
	h.WantsNone("refund")
	for _, e := range h.Entries {
		fmt.Println(e.Kind, e.Key, e.State)
	}
	fmt.Println(durabletest.Result[Payment](h, "charge").ID)
	// Output:
	// step charge done
	// wait approve done
	// step ship done
	// p1
}

func ExampleFaults() {
	t := &exampleT{}
	defer t.end()
	data := durabletest.Faults(memory.Open(),
		durabletest.Fault{Do: durabletest.LostAfter, Step: "charge", Nth: 1},                            // the answer to its commit is lost
		durabletest.Fault{Do: durabletest.Slow, For: time.Millisecond, On: "load"},                      // every load
		durabletest.Fault{Do: durabletest.LostBefore, On: "commit", Step: "ship", Chance: 0.5, Seed: 7}) // half of them
	eng, _ := durable.Open(t.Context(), data, durable.Options{
		Workflows: []durable.Definition{checkout}, Logger: quiet,
		Around: durabletest.Replace(t, durabletest.Step("charge", durabletest.Returns(Payment{ID: "p1"})), durabletest.Step("ship")),
	})
	defer func() { _ = eng.Close() }()
	id, err := checkout.Run(durable.NewContext(t.Context(), eng), "order-1", "book", durable.WithSignal("approve", true))
	fmt.Println(id, err)
	fmt.Println(slices.Contains(data.Happened(), "lost after: commit step_completed charge of order-1"))
	// Output:
	// p1 <nil>
	// true
}

func ExampleVirtualTime() {
	_ = testALateApproval // it runs as a test, because a bubble needs a *testing.T
}

func testALateApproval(t *testing.T) {
	o := durable.Options{
		Workflows: []durable.Definition{checkout},
		Around:    durabletest.Replace(t, durabletest.Step("charge", durabletest.Returns(Payment{ID: "p1"}))),
	}
	durabletest.VirtualTime(t, o, func(t *testing.T, eng *durable.Engine) {
		ctx := durable.NewContext(t.Context(), eng)
		if _, err := checkout.Run(ctx, "order-1", "book"); !errors.Is(err, durable.ErrRunFailed) {
			t.Errorf("got %v", err)
		}
		h := durabletest.HistoryOf(t, eng, "order-1")
		h.WantsOnly(durabletest.Did("charge"), durabletest.Failed("approve")) // after 48 hours
	})
}

func TestALateApproval(t *testing.T) { testALateApproval(t) }

type warehouse struct{ reserved map[string]int }

func (w *warehouse) order(ctx context.Context, item string) (string, error) {
	left, err := durable.Step(ctx, "reserve", func(ctx context.Context) (int, error) {
		w.reserved[durable.IdempotencyKey(ctx)] = 1 // once, however often it runs
		return 10 - len(w.reserved), nil
	})
	return fmt.Sprintf("%s reserved, %d left", item, left), err
}

func ExampleSurvives() {
	_ = func(t *testing.T) { // in a test:
		w := &warehouse{}
		durabletest.Survives(t, durable.Define("order", w.order), "book",
			durabletest.Reset(func() { w.reserved = map[string]int{} }))
	}
}

func ExampleSimulate() {
	_ = func(t *testing.T) { // in a test:
		w := &warehouse{}
		durabletest.Simulate(t,
			durabletest.Of(durable.Define("order", w.order), "book",
				durabletest.Reset(func() { w.reserved = map[string]int{} }),
				durabletest.World(func() any { return w.reserved }),
				durabletest.Sample(10)))
	}
}

func ExampleReplays() {
	w := &warehouse{}
	_ = func(t *testing.T) { // in a test:
		// Written by: durable checkpoints export order-42 --output testdata/runs/order-42.run
		durabletest.Replays(t, "testdata/runs/*.run",
			[]durable.Definition{durable.Define("order", w.order)})
	}
}

func TestTheExampleSurvives(t *testing.T) {
	w := &warehouse{}
	durabletest.Survives(t, durable.Define("order", w.order), "book",
		durabletest.Reset(func() { w.reserved = map[string]int{} }))
}
