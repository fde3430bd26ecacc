package operate

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/runfile"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// A newer version may have begun a branch with an event of a type that this one does not
// know, and left the branch. What that event repeats of the log before it is the copy's.
func TestACopyHasItsOwnSumInACutOfAnUnknownType(t *testing.T) {
	eng, err := durable.Open(context.Background(), memory.Open(), durable.Options{})
	require.NoError(t, err)
	defer eng.Close()
	f := &runfile.File{
		Run:      store.Run{ID: "r", Workflow: "w", Status: store.Interrupted, Branch: 2},
		Branches: []store.Branch{{N: 1, Cutoff: 2}, {N: 2, Cutoff: 2}},
		Events: []store.Event{
			{Type: store.WorkflowCreated, Data: []byte(`{"seed":"0102030405060708"}`)},
			{Type: store.WorkflowStarted, Data: []byte(`{"executor":"e1"}`)},
			{Type: "rewound", Branch: 1, Data: []byte(`{"cut":{"parent":0,"cutoff":2,"sum":77}}`)},
			{Type: store.JumpActivated, Branch: 2, Data: []byte(`{"to_branch":2,"cutoff":2,"cut":{"parent":0,"cutoff":2,"sum":88}}`)},
		},
	}
	sum := uint32(0)
	for i := range f.Events {
		e := &f.Events[i]
		e.Seq, e.At, e.Epoch = int64(i)+1, store.Time(i+1), 1
		e.Sum = store.Seal("r", sum, e)
		sum = e.Sum
	}
	require.NoError(t, rename(t.Context(), On(eng), f, "copy"))
	require.NotContains(t, string(f.Events[2].Data), `"sum":77`)
	require.NotContains(t, string(f.Events[3].Data), `"sum":88`)
}
