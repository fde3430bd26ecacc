package operate_test

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
)

// What if the parcel had weighed more? The first run stays what it is.
func ExampleOperator_Fork_edits() {
	scales := 850
	eng, wf := parcel(context.Background(), &scales)
	defer eng.Close()
	ctx := durable.NewContext(context.Background(), eng)
	fmt.Println(wf.Run(ctx, "parcel-1", "Ann"))

	what := operate.ForkOptions{ID: "parcel-1-heavy", Edits: map[string]any{"weigh": 2300}, By: "bob", Reason: "what if"}
	plan, err := operate.On(eng).PlanFork(ctx, "parcel-1", what)
	if err != nil {
		panic(err)
	}
	fmt.Println("keeps", plan.Skipped, "edited", plan.Edited, "runs again", plan.Again)
	id, err := operate.On(eng).Fork(ctx, "parcel-1", what)
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
	// keeps [weigh] edited [weigh] runs again [send]
	// 2300 g to Ann <nil>
}
