package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

func TestCheckNamesWhatStandsInTheWay(t *testing.T) {
	row := store.Run{ID: "r", Status: store.Waiting, Epoch: 5, Owner: "e", CancelAsked: true}
	for name, c := range map[string]struct {
		change store.Change
		dead   bool
		want   error
	}{
		"allowed":               {change: store.Change{Expect: store.Expect{Epoch: 5}, Row: &store.RowPatch{Status: ptr(store.Running)}}},
		"other epoch":           {change: store.Change{Expect: store.Expect{Epoch: 4}}, want: store.ErrFenced},
		"live owner":            {change: store.Change{Expect: store.Expect{Epoch: 5, TakeEpoch: true}}, want: store.ErrOwned},
		"dead owner":            {change: store.Change{Expect: store.Expect{Epoch: 5, TakeEpoch: true}}, dead: true},
		"cancel unread":         {change: store.Change{Expect: store.Expect{Epoch: 5, NoCancel: true}}, want: store.ErrCancelAsked},
		"status not in set":     {change: store.Change{Expect: store.Expect{Epoch: 5, Statuses: []store.Status{store.Failed}}}, want: store.ErrStatus},
		"status in set":         {change: store.Change{Expect: store.Expect{Epoch: 5, Statuses: []store.Status{store.Failed, store.Waiting}}}},
		"status may not follow": {change: store.Change{Expect: store.Expect{Epoch: 5}, Row: &store.RowPatch{Status: ptr(store.Pending)}}, want: store.ErrStatus},
	} {
		err := c.change.Check(&row, nil, !c.dead)
		if c.want == nil {
			require.NoError(t, err, name)
		} else {
			require.ErrorIs(t, err, c.want, name)
		}
	}
}

func TestDidLooksAtTheLastEventOrTheFirstOfACreate(t *testing.T) {
	c := store.Change{RunID: "r", Expect: store.Expect{Epoch: 5}, Yield: true, Events: []store.Event{{Seq: 3, Sum: 30}, {Seq: 4, Sum: 40}}}
	require.EqualValues(t, 4, c.Mark())
	require.True(t, c.Did(&store.Event{Seq: 4, Epoch: 6, Sum: 40}))
	require.False(t, c.Did(&store.Event{Seq: 4, Epoch: 5, Sum: 40}), "without the yield")
	require.False(t, c.Did(&store.Event{Seq: 4, Epoch: 6, Sum: 41}), "another event")
	require.False(t, c.Did(nil), "none")

	c = store.Change{RunID: "r", Create: &store.Run{Epoch: 9}, Events: []store.Event{{Seq: 1, Sum: 10}, {Seq: 2, Sum: 20}}}
	require.EqualValues(t, 1, c.Mark())
	require.True(t, c.Did(&store.Event{Seq: 1, Epoch: 9, Sum: 10}))

	c = store.Change{RunID: "r"}
	require.Zero(t, c.Mark())
	require.False(t, c.Did(&store.Event{}))
}

// Whatever else stands in the way, a caller that was replaced is told so.
func TestErrFencedComesBeforeEveryOtherReason(t *testing.T) {
	row := store.Run{ID: "r", Status: store.Completed, Epoch: 5, Owner: "e", CancelAsked: true}
	last := store.Event{Seq: 7, Epoch: 5}
	everything := func(edit func(*store.Change)) error {
		c := store.Change{
			RunID: "r", Events: []store.Event{{Seq: 8, Type: store.StepCompleted}}, Row: &store.RowPatch{Status: ptr(store.Running)},
			Expect: store.Expect{Epoch: 5, TakeEpoch: true, NoCancel: true, Statuses: []store.Status{store.Failed}},
		}
		edit(&c)
		return c.Check(&row, &last, true)
	}
	require.ErrorIs(t, everything(func(c *store.Change) { c.Expect.Epoch = 4 }), store.ErrFenced)
	require.ErrorIs(t, everything(func(c *store.Change) { c.Events[0].Seq = 7 }), store.ErrFenced)
	require.ErrorIs(t, everything(func(c *store.Change) { c.Events[0].Seq = 9 }), store.ErrFenced)
	require.ErrorIs(t, everything(func(c *store.Change) { c.Events, c.Expect.Epoch = nil, 6 }), store.ErrFenced)
	require.ErrorIs(t, everything(func(*store.Change) {}), store.ErrOwned)
	require.ErrorIs(t, everything(func(c *store.Change) { c.Expect.TakeEpoch = false }), store.ErrCancelAsked)
	require.ErrorIs(t, everything(func(c *store.Change) { c.Expect.TakeEpoch, c.Expect.NoCancel = false, false }), store.ErrStatus)
	ahead := last
	ahead.Epoch = 4
	c := store.Change{RunID: "r", Expect: store.Expect{Epoch: 5}, Events: []store.Event{{Seq: 8}}}
	require.ErrorIs(t, c.Check(&row, &ahead, false), store.ErrFenced, "the event before is another owner's")
	taken := row
	taken.Epoch = 6
	require.NoError(t, c.Check(&taken, &last, false), "a plain checkpoint is fenced by the log alone")
}
