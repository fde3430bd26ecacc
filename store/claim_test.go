package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

func TestAClaimTakesWhatIsFreeAndDue(t *testing.T) {
	const now = 100
	for name, c := range map[string]struct {
		run        store.Run
		live       bool
		byID, free bool // expected with and without ids
	}{
		"pending":               {run: store.Run{Status: store.Pending}, byID: true, free: true},
		"pending, delayed":      {run: store.Run{Status: store.Pending, WakeAt: 101}, byID: true},
		"pending, paused":       {run: store.Run{Status: store.Pending, Paused: true}},
		"paused, cancel asked":  {run: store.Run{Status: store.Pending, Paused: true, CancelAsked: true}, free: true},
		"interrupted":           {run: store.Run{Status: store.Interrupted}, byID: true, free: true},
		"parked":                {run: store.Run{Status: store.Interrupted, Code: "definition_changed"}},
		"not registered then":   {run: store.Run{Status: store.Interrupted, Code: store.CodeNotRegistered}, byID: true, free: true},
		"waiting":               {run: store.Run{Status: store.Waiting}, byID: true},
		"waiting, timer later":  {run: store.Run{Status: store.Waiting, WakeAt: 101}, byID: true},
		"waiting, due":          {run: store.Run{Status: store.Waiting, WakeAt: 100}, byID: true, free: true},
		"waiting, mail":         {run: store.Run{Status: store.Waiting, Inbox: 2, Seen: 1}, byID: true, free: true},
		"waiting, cancel":       {run: store.Run{Status: store.Waiting, CancelAsked: true}, byID: true, free: true},
		"waiting, owner lives":  {run: store.Run{Status: store.Waiting, Owner: "e", CancelAsked: true}, live: true},
		"running, owner dead":   {run: store.Run{Status: store.Running, Owner: "e"}, byID: true},
		"running, owner lives":  {run: store.Run{Status: store.Running, Owner: "e"}, live: true},
		"resuming, owner dead":  {run: store.Run{Status: store.Resuming, Owner: "e"}, byID: true},
		"completed":             {run: store.Run{Status: store.Completed}},
		"failed":                {run: store.Run{Status: store.Failed}},
		"cancelled, with timer": {run: store.Run{Status: store.Cancelled, WakeAt: 1}},
	} {
		c.run.Workflow, c.run.Version = "w", "1"
		free := store.Claim{Serves: []store.Served{{Workflow: "w", Versions: []string{"1"}}}}
		byID := free
		byID.IDs = []string{"r"}
		require.Equal(t, c.byID, byID.MayTake(&c.run, now, c.live), name+" by id")
		require.Equal(t, c.free, free.MayTake(&c.run, now, c.live), name)
		c.run.Queue = "q"
		require.Equal(t, c.byID, byID.MayTake(&c.run, now, c.live), name+" by id, in a queue")
		require.False(t, free.MayTake(&c.run, now, c.live), name+" in a queue that is not listed")
		free.Queues = []store.QueueRoom{{Queue: "q"}}
		require.Equal(t, c.free, free.MayTake(&c.run, now, c.live), name+" in a queue that is listed")
		c.run.Version = "2"
		require.False(t, free.MayTake(&c.run, now, c.live) || byID.MayTake(&c.run, now, c.live), name+" of a version that is not served")
	}
}

// What a claim does not say it changes stays as it was.
func TestAClaimChangesWhatItsCommentListsAndNothingElse(t *testing.T) {
	before := store.Run{
		ID: "r", Status: store.Running, Owner: "dead", Code: "c", Reason: "why", WakeAt: 7, Seen: 2, Inbox: 5, Priority: 3, Epoch: 5, Branch: 2,
		Strikes: 1, Resumes: 4, UpdatedAt: 300, Attributes: map[string]string{"a": "b"},
	}
	last := store.Event{Seq: 7, Epoch: 5, Type: store.RunResumed, At: 100, Active: 9, Steps: 3, Sum: 77}
	row := before
	c := store.Claim{Executor: "x", At: 50, Data: []byte(`{}`)}
	got := c.Take(&row, &last, 200)
	require.Equal(t, before, row, "the row it was given is not changed")
	event := store.Event{Seq: 8, Epoch: 6, Branch: 2, Type: store.RunResumed, At: 100, Active: 9, Steps: 3, Data: []byte(`{}`)}
	event.Sum = store.Seal("r", 77, &event)
	want := before
	want.Status, want.Owner, want.Epoch, want.Strikes, want.Resumes, want.Last = store.Resuming, "x", 6, 2, 5, &event
	require.Equal(t, want, got, "and UpdatedAt does not go back")
}
