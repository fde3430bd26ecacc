package durable_test

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// A row says that a run waits, and its events know of no wait: somebody has
// reached into the store. RecoverRun begins a branch behind the last step.
func ExampleEngine_RecoverRun() {
	ctx := context.Background()
	st := memory.Open()
	work := durable.Define("work", func(ctx context.Context, _ int) (string, error) {
		if err := durable.Do(ctx, "first", func(context.Context) error { return nil }); err != nil {
			return "", err
		}
		return durable.Await[string](ctx, "go")
	})
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{work}, Logger: quiet})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	ctx = durable.NewContext(ctx, eng)
	rec, err := eng.RecoverRun(ctx, tornRun(ctx, st))
	fmt.Println(rec.Reason, err)
	branches, err := operate.On(eng).Branches(ctx, rec.RunID)
	fmt.Printf("on branch %d, cut behind event %d, %v\n", rec.NewBranch, branches[1].Cutoff, err)
	// Output:
	// A1: Status awaiting_input but no pending interaction <nil>
	// on branch 1, cut behind event 2, <nil>
}

// tornRun writes such a run.
func tornRun(ctx context.Context, st store.Store) string {
	events := []store.Event{
		{Seq: 1, Type: store.WorkflowCreated, At: 1, Data: []byte(`{"seed":"0000000000000000"}`)},
		{Seq: 2, Type: store.StepCompleted, Key: "first", Attempt: 1, Ordinal: 1, At: 2, Steps: 1},
		{Seq: 3, Type: store.WorkflowInterrupted, At: 3, Steps: 1},
	}
	for i, sum := 0, uint32(0); i < len(events); i++ {
		events[i].Sum = store.Seal("torn", sum, &events[i])
		sum = events[i].Sum
	}
	row := store.Run{ID: "torn", Workflow: "work", Version: "1", InitialVersion: "1", Status: store.Waiting, Epoch: 1, CreatedAt: 1}
	for _, err := range st.Commit(ctx, []store.Change{{RunID: "torn", Expect: store.Expect{Absent: true}, Create: &row, Events: events}}) {
		if err != nil {
			panic(err)
		}
	}
	return "torn"
}
