package operate_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// What runs ask of people is listed and answered from any process.
func ExampleOperator_Approvals() {
	refund := durable.Define("refund", func(ctx context.Context, amount int) (string, error) {
		ok, err := durable.Await[bool](ctx, "approved", durable.Prompt(fmt.Sprintf("Refund %d?", amount)))
		return fmt.Sprint("approved: ", ok), err
	})
	eng, err := durable.Open(context.Background(), memory.Open(), durable.Options{Workflows: []durable.Definition{refund}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	ctx := durable.NewContext(context.Background(), eng)
	run, err := refund.Start(ctx, "refund-1", 30)
	if err != nil {
		panic(err)
	}
	for ev, err := range eng.Watch(ctx, run.ID(), 0) { // until it asks
		if err != nil || ev.Type == store.WaitRequested {
			break
		}
	}
	op := operate.On(eng)
	open, err := op.Approvals(ctx)
	if err != nil {
		panic(err)
	}
	for _, a := range open {
		fmt.Println(a.RunID, "asks:", a.Prompt)
		yes, err := a.Verdict(true, "ada", "")
		if err != nil {
			panic(err)
		}
		if err := op.Answer(ctx, a, yes); err != nil {
			panic(err)
		}
	}
	fmt.Println(run.Wait(ctx))
	// Output:
	// refund-1 asks: Refund 30?
	// approved: true <nil>
}

// A jump takes a run back to an event of its history: what came later runs again.
func ExampleOperator_Jump() {
	scales := 0
	eng, wf := parcel(context.Background(), &scales)
	defer eng.Close()
	ctx := durable.NewContext(context.Background(), eng)
	_, err := wf.Run(ctx, "parcel-1", "Ann")
	fmt.Println(err)

	scales = 850
	plan, err := operate.On(eng).Jump(ctx, "parcel-1", 1, operate.JumpOptions{Reason: "the scales were broken"}) // 1 is the beginning
	fmt.Println(plan.Again, err)
	run, err := wf.Handle(ctx, "parcel-1")
	if err != nil {
		panic(err)
	}
	fmt.Println(run.Wait(ctx))
	// Output:
	// run parcel-1 (parcel) failed: step send: attempt 2 of 2: it weighs nothing
	// [weigh send] <nil>
	// 850 g to Ann <nil>
}
