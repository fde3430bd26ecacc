package draft_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/draft"
)

func TestDropDecidesAboutAReceiver(t *testing.T) {
	ended := &store.Run{ID: "r", Status: store.Completed}
	open := &store.Run{ID: "r", Status: store.Running}
	strict, loose := &store.Message{To: "r"}, &store.Message{To: "r", IfLive: true}
	_, err := draft.Drop(strict, nil)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = draft.Drop(strict, ended)
	require.ErrorIs(t, err, store.ErrStatus)
	for _, r := range []*store.Run{nil, ended} {
		drop, err := draft.Drop(loose, r)
		require.NoError(t, err)
		require.True(t, drop)
	}
	for _, m := range []*store.Message{strict, loose} {
		drop, err := draft.Drop(m, open)
		require.NoError(t, err)
		require.False(t, drop)
	}
}

// room is a world of runs alone.
type room map[string]*store.Run

func (w room) Run(id string) *store.Run   { return w[id] }
func (room) Last(string) *store.Event     { return nil }
func (room) Live(string) bool             { return true }
func (room) Dedup(_, _ string) string     { return "" }
func (room) Holder(string) string         { return "" }
func (room) Held(string) []string         { return nil }
func (room) Received(*store.Message) bool { return false }
func (room) HasBranch(string, int32) bool { return false }

func status(s store.Status) *store.Status { return &s }

func TestARefusedChangeLeavesNoTrace(t *testing.T) {
	world := room{"a": {ID: "a", Status: store.Running, Epoch: 1}, "done": {ID: "done", Status: store.Completed}}
	d := draft.New(world, 100)
	child := store.Change{RunID: "child", Create: &store.Run{ID: "child", Workflow: "w", Status: store.Pending, Dedup: "k"}}
	refused := store.Change{
		RunID: "a", Expect: store.Expect{Epoch: 1}, Hold: []string{"key"}, Row: &store.RowPatch{Status: status(store.Waiting)},
		Branch: &store.Branch{N: 2},
		Start:  []store.Change{child},
		Send:   []store.Message{{To: "a", Kind: store.KindSignal, ID: "1"}, {To: "done", Kind: store.KindSignal, ID: "2"}},
	}
	require.ErrorIs(t, d.Change(&refused), store.ErrStatus)
	for id := range d.Rows {
		t.Fatalf("run %s is in the draft", id)
	}
	require.Empty(t, d.Holds())
	news := d.News()
	require.True(t, news.Empty())
	require.Equal(t, store.Running, world["a"].Status)

	// What it tried to take is free for the next one.
	refused.Send = refused.Send[:1]
	require.NoError(t, d.Change(&refused))
	require.Equal(t, store.Waiting, d.Row("a").Run.Status)
	require.Len(t, d.Row("a").Messages, 1)
	require.Equal(t, map[string]string{"key": "a"}, d.Holds())
	require.NotNil(t, d.Row("child").Created())
}

func TestEachChangeOfADraftSeesThoseBeforeIt(t *testing.T) {
	world := room{"a": {ID: "a", Status: store.Running}, "b": {ID: "b", Status: store.Running}}
	d := draft.New(world, 100)
	require.NoError(t, d.Change(&store.Change{RunID: "a", Hold: []string{"key"}}))
	var occupied *store.OccupiedError
	require.ErrorAs(t, d.Change(&store.Change{RunID: "b", Hold: []string{"key"}}), &occupied)
	require.Equal(t, "a", occupied.Holder)
	require.NoError(t, d.Change(&store.Change{RunID: "a", Release: true}))
	require.NoError(t, d.Change(&store.Change{RunID: "b", Hold: []string{"key"}}))

	message := store.Change{Send: []store.Message{{To: "b", Kind: store.KindSignal, ID: "1"}}}
	require.NoError(t, d.Change(&message))
	require.NoError(t, d.Change(&message), "delivered once")
	require.Len(t, d.Row("b").Messages, 1)
	require.EqualValues(t, 1, d.Row("b").Run.Inbox)

	first := store.Change{RunID: "c", Create: &store.Run{ID: "c", Status: store.Pending, Queue: "q", Dedup: "k"}}
	second := store.Change{RunID: "d", Create: &store.Run{ID: "d", Status: store.Pending, Queue: "q", Dedup: "k"}}
	require.NoError(t, d.Change(&first))
	var exists *store.ExistsError
	require.ErrorAs(t, d.Change(&second), &exists)
	require.Equal(t, "c", exists.RunID)
	require.NoError(t, d.Change(&store.Change{RunID: "c", Row: &store.RowPatch{Status: status(store.Cancelled)}}))
	require.NoError(t, d.Change(&second))
}
