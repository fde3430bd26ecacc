package stuck_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// executors are two servers, a dead one and the engine of a command.
var executors = []store.Executor{
	{ID: "a", Live: true, Serves: []store.Served{{Workflow: "order", Versions: []string{"v1", "v2"}}}},
	{ID: "dead", Serves: []store.Served{{Workflow: "refund", Versions: []string{""}}}},
	{ID: "b", Live: true, Serves: []store.Served{{Workflow: "mail", Versions: []string{""}}}},
	{ID: "command", Live: true, Serves: []store.Served{{Workflow: "report", Versions: []string{""}}}},
}

func TestOnlyTheLiveServeRuns(t *testing.T) {
	all, others := stuck.LiveOf(executors, ""), stuck.LiveOf(executors, "command")
	require.Equal(t, []string{"a", "b", "command"}, all.IDs())
	require.Equal(t, all.IDs(), others.IDs(), "an idle one is alive")
	require.True(t, others.Has("command"))
	require.False(t, others.Has("dead"))
	require.False(t, others.Has(""))

	order := func(version string) *store.Run { return &store.Run{Workflow: "order", Version: version} }
	require.True(t, all.Serves(order("v2")))
	require.False(t, all.Serves(order("v3")))
	require.False(t, all.Serves(&store.Run{Workflow: "refund"}), "by a dead one alone")
	require.True(t, all.Serves(&store.Run{Workflow: "report"}))
	require.False(t, others.Serves(&store.Run{Workflow: "report"}), "by an idle one alone")
}

// kinds are those of runs on no queue: workflow, version, workflow, version …
func kinds(of ...string) (list []store.RunKind) {
	for i := 0; i < len(of); i += 2 {
		list = append(list, store.RunKind{Workflow: of[i], Version: of[i+1]})
	}
	return list
}

// The filters select the runs of which somebody has to be told, and no others: a
// workflow that is served in every version that rests costs no query.
func TestRunsThatNobodyServesAreFoundByTheirKinds(t *testing.T) {
	live := stuck.LiveOf(executors, "command")
	require.Equal(t, []store.Filter{
		{Statuses: stuck.Resting, Workflows: []string{"mail"}, Versions: []string{"v1"}},
		{Statuses: stuck.Resting, Workflows: []string{"order"}, Versions: []string{"", "v3"}},
		{Statuses: stuck.Resting, Workflows: []string{"refund", "report"}},
	}, live.Unserved(kinds("order", "v3", "order", "v1", "order", "", "refund", "", "refund", "v1", "mail", "v1", "mail", "", "report", "")))

	require.Empty(t, live.Unserved(kinds("mail", "")))
	require.Empty(t, live.Unserved(nil))
}

func TestRunsOfQueuesThatNobodyTakesThemFromAreFoundByTheirKinds(t *testing.T) {
	live := stuck.LiveOf([]store.Executor{
		{ID: "a", Live: true, Serves: []store.Served{{Workflow: "mail", Versions: []string{"v1"}, Queues: []string{"emails", "fast"}}}},
		{ID: "b", Live: true, Serves: []store.Served{{Workflow: "mail", Versions: []string{"v1", "v2"}, Queues: []string{"fast"}}, {Workflow: "order", Versions: []string{"v1"}}}},
		{ID: "c", Live: true, Serves: []store.Served{{Workflow: "report", Versions: []string{"v1"}, Queues: []string{"fast"}}}},
	}, "c")
	run := func(queue, version string) *store.Run {
		return &store.Run{Workflow: "mail", Version: version, Queue: queue}
	}
	require.True(t, live.Serves(run("emails", "v1")))
	require.False(t, live.Serves(run("emails", "v2")), "who has its code takes runs from another queue")
	require.False(t, live.Serves(run("letters", "v1")))
	require.True(t, live.Serves(run("", "v2")))

	all := kinds("order", "v1", "order", "v2", "report", "v1", "mail", "v2")
	for _, queue := range []string{"emails", "fast", "letters"} {
		for _, version := range []string{"v2", "v1"} {
			all = append(all, store.RunKind{Workflow: "mail", Version: version, Queue: queue})
		}
	}
	require.Equal(t, []store.Filter{
		{Statuses: stuck.Resting, Workflows: []string{"mail"}, Versions: []string{"v2"}, Queues: []string{"emails"}},
		{Statuses: stuck.Resting, Workflows: []string{"mail"}, Versions: []string{"v1", "v2"}, Queues: []string{"letters"}},
		{Statuses: stuck.Resting, Workflows: []string{"order"}, Versions: []string{"v2"}},
		{Statuses: stuck.Resting, Workflows: []string{"report"}},
	}, live.Unserved(all))
	inLine := []store.Status{store.Pending, store.Interrupted}
	require.Equal(t, []store.Filter{
		{Statuses: inLine, Workflows: []string{"mail"}, Versions: []string{"v2"}, Queues: []string{"emails"}},
	}, live.UnservedIn("emails", all))
}

// A store that cannot tell its kinds counts its runs: what it returns has all kinds, and more.
func TestAStoreThatCountsHasAllItsKinds(t *testing.T) {
	s := memory.Open()
	defer s.Close()
	for i, k := range []store.RunKind{{Workflow: "a", Version: "1"}, {Workflow: "b", Version: "2", Queue: "q"}, {Workflow: "b", Version: "2", Queue: "q"}} {
		row := &store.Run{ID: fmt.Sprint(i), Workflow: k.Workflow, Version: k.Version, Queue: k.Queue, Status: store.Pending, Epoch: 1, CreatedAt: 1}
		e := store.Event{Seq: 1, Type: store.WorkflowCreated}
		e.Sum = store.Seal(row.ID, 0, &e)
		require.NoError(t, errors.Join(s.Commit(t.Context(), []store.Change{{RunID: row.ID, Expect: store.Expect{Absent: true}, Create: row, Events: []store.Event{e}}})...))
	}
	told, err := stuck.KindsOf(t.Context(), s)
	require.NoError(t, err)
	require.ElementsMatch(t, []store.RunKind{{Workflow: "a", Version: "1"}, {Workflow: "b", Version: "2", Queue: "q"}}, told)
	counted, err := stuck.KindsOf(t.Context(), struct{ store.Store }{s})
	require.NoError(t, err)
	require.Len(t, counted, 8)
	require.Subset(t, counted, told)
}
