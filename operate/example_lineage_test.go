package operate_test

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A scale was off by ten: the second weighing counts, and the first stays readable.
func ExampleOperator_LeftBehind() {
	scales := 0
	eng, wf := parcel(context.Background(), &scales)
	defer eng.Close()
	ctx := durable.NewContext(context.Background(), eng)
	_, _ = wf.Run(ctx, "parcel-1", "Ann")
	scales = 850
	op := operate.On(eng)
	if _, err := op.Resume(ctx, "parcel-1", operate.ResumeOptions{FromCheckpoint: 1}); err != nil {
		panic(err)
	}
	run, err := wf.Handle(ctx, "parcel-1")
	if err != nil {
		panic(err)
	}
	if _, err := run.Wait(ctx); err != nil {
		panic(err)
	}
	branches, err := op.Branches(ctx, "parcel-1")
	if err != nil {
		panic(err)
	}
	for _, b := range branches {
		fmt.Printf("branch %d from event %d:", b.N, b.Cutoff)
		for ev, err := range op.Lineage(ctx, "parcel-1", b.N) {
			if err != nil {
				panic(err)
			}
			if ev.Type == store.StepCompleted {
				fmt.Print(" ", ev.Key)
			}
		}
		fmt.Println()
	}
	for ev, err := range op.LeftBehind(ctx, "parcel-1", 1) {
		if err != nil {
			panic(err)
		}
		if ev.Type == store.StepCompleted || ev.Type == store.StepFailed {
			fmt.Println("left behind:", ev.Type, ev.Key)
		}
	}
	// Output:
	// branch 0 from event 0: weigh
	// branch 1 from event 1: weigh send
	// left behind: step_completed weigh
	// left behind: step_failed send
}

// After a fault outside: what has failed is listed, and resumed.
func ExampleOperator_ResumeAll() {
	scales := 0
	eng, wf := parcel(context.Background(), &scales)
	defer eng.Close()
	ctx := durable.NewContext(context.Background(), eng)
	_, _ = wf.Run(ctx, "parcel-1", "Ann")
	_, _ = wf.Run(ctx, "parcel-2", "Bob")

	op := operate.On(eng)
	for row, err := range op.ListResumable(ctx) {
		fmt.Println(row.ID, row.Status, err)
	}
	for plan, err := range op.ResumeAll(ctx, store.Filter{Workflows: []string{"parcel"}}, operate.ResumeOptions{DryRun: true}) {
		fmt.Println(plan.RunID, plan, err)
	}
	// Output:
	// parcel-2 failed <nil>
	// parcel-1 failed <nil>
	// parcel-2 Resuming from step 2 of 2 <nil>
	// parcel-1 Resuming from step 2 of 2 <nil>
}
