package operate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// parcel is a workflow that weighs a parcel and sends it, and the scales that it
// does that with.
func parcel(ctx context.Context, scales *int) (*durable.Engine, *durable.Workflow[string, string]) {
	wf := durable.Define("parcel", func(ctx context.Context, to string) (string, error) {
		grams, err := durable.Step(ctx, "weigh", func(context.Context) (int, error) { return *scales, nil })
		if err != nil {
			return "", err
		}
		return durable.Retry(ctx, "send", durable.Policy{MaxAttempts: 2, Initial: time.Millisecond}, func(context.Context) (string, error) {
			if grams <= 0 {
				return "", errors.New("it weighs nothing")
			}
			return fmt.Sprintf("%d g to %s", grams, to), nil
		})
	}, durable.Steps("weigh", "send"))
	eng, err := durable.Open(ctx, memory.Open(), durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	return eng, wf
}

// The scales were broken: weigh again, and go on from there.
func ExampleOperator_Resume() {
	scales := 0
	eng, wf := parcel(context.Background(), &scales)
	defer eng.Close()
	ctx := durable.NewContext(context.Background(), eng)
	_, err := wf.Run(ctx, "parcel-1", "Ann")
	fmt.Println(err)

	scales = 850
	o := operate.ResumeOptions{FromCheckpoint: 1, DryRun: true} // 1 is the beginning
	plan, err := operate.On(eng).Resume(ctx, "parcel-1", o)
	fmt.Println(plan, plan.Again, err)
	o.DryRun = false
	if _, err := operate.On(eng).Resume(ctx, "parcel-1", o); err != nil {
		panic(err)
	}
	run, err := wf.Handle(ctx, "parcel-1")
	if err != nil {
		panic(err)
	}
	fmt.Println(run.Wait(ctx))
	// Output:
	// run parcel-1 (parcel) failed: step send: attempt 2 of 2: it weighs nothing
	// Resuming from step 1 of 2 [weigh send] <nil>
	// 850 g to Ann <nil>
}

// Somebody knows what it weighs.
func ExampleOperator_Edit() {
	scales := 0
	eng, wf := parcel(context.Background(), &scales)
	defer eng.Close()
	ctx := durable.NewContext(context.Background(), eng)
	_, _ = wf.Run(ctx, "parcel-1", "Ann")

	_, err := operate.On(eng).Edit(ctx, "parcel-1", "weigh", 850, operate.EditOptions{By: "bob", Reason: "weighed by hand"})
	if err != nil {
		panic(err)
	}
	if _, err := operate.On(eng).Resume(ctx, "parcel-1", operate.ResumeOptions{}); err != nil {
		panic(err)
	}
	run, err := wf.Handle(ctx, "parcel-1")
	if err != nil {
		panic(err)
	}
	fmt.Println(run.Wait(ctx))
	// Output: 850 g to Ann <nil>
}

// What a run has done so far is the beginning of another one.
func ExampleOperator_Fork() {
	scales := 850
	eng, wf := parcel(context.Background(), &scales)
	defer eng.Close()
	ctx := durable.NewContext(context.Background(), eng)
	fmt.Println(wf.Run(ctx, "parcel-1", "Ann"))

	at, err := operate.On(eng).CheckpointOf(ctx, "parcel-1", "weigh")
	if err != nil {
		panic(err)
	}
	id, err := operate.On(eng).Fork(ctx, "parcel-1", operate.ForkOptions{ID: "parcel-1-again", At: at})
	if err != nil {
		panic(err)
	}
	run, err := wf.Handle(ctx, id)
	if err != nil {
		panic(err)
	}
	fmt.Println(run.Wait(ctx))
	// Output:
	// 850 g to Ann <nil>
	// 850 g to Ann <nil>
}
