package store_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// What an engine asks of a store: a run is created with its first event, and is appended to only
// by who has its epoch.
func Example() {
	ctx := context.Background()
	st := memory.Open()
	defer st.Close()

	created := store.Event{Seq: 1, Type: store.WorkflowCreated}
	created.Sum = store.Seal("order-1", 0, &created)
	row := store.Run{ID: "order-1", Workflow: "order", Version: "1", Status: store.Pending, Epoch: 1, CreatedAt: 1}
	begin := store.Change{RunID: row.ID, Expect: store.Expect{Absent: true}, Create: &row, Events: []store.Event{created}}
	fmt.Println(st.Commit(ctx, []store.Change{begin})) // one error for each change

	// No id is used for two runs.
	created.Data = []byte(`{"of":"another"}`)
	created.Sum = store.Seal("order-1", 0, &created)
	begin.Events = []store.Event{created}
	fmt.Println(errors.Is(st.Commit(ctx, []store.Change{begin})[0], store.ErrExists))

	h, err := st.Load(ctx, "order-1", store.Cursor{})
	if err != nil {
		panic(err)
	}
	for ev, err := range h.Events {
		fmt.Println(h.Run.Status, ev.Seq, ev.Type, err)
	}
	page, err := st.List(ctx, store.Filter{Workflows: []string{"order"}})
	fmt.Println(len(page.Runs), page.Next == "", err)
	// Output:
	// [<nil>]
	// true
	// pending 1 workflow_created <nil>
	// 1 true <nil>
}
