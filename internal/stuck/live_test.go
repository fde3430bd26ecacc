package stuck_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
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

// The filters select the runs of which somebody has to be told, and no others: a
// workflow that is served in every version that rests costs no query.
func TestRunsThatNobodyServesAreFoundByCounting(t *testing.T) {
	live := stuck.LiveOf(executors, "command")
	byVersion := map[string]int64{"": 7, "v1": 1, "v3": 2}
	require.Equal(t, []store.Filter{
		{Statuses: stuck.Resting, Workflows: []string{"mail"}, Versions: []string{"v1", "v3"}},
		{Statuses: stuck.Resting, Workflows: []string{"order"}, Versions: []string{"", "v3"}},
		{Statuses: stuck.Resting, Workflows: []string{"refund", "report"}},
	}, live.Unserved(map[string]int64{"order": 5, "refund": 2, "mail": 1, "report": 2}, byVersion, nil))

	require.Empty(t, live.Unserved(map[string]int64{"mail": 3}, map[string]int64{"": 3}, nil))
	require.Empty(t, live.Unserved(nil, nil, nil))
}

func TestRunsOfQueuesThatNobodyTakesThemFromAreFoundByCounting(t *testing.T) {
	live := stuck.LiveOf([]store.Executor{
		{ID: "a", Live: true, Serves: []store.Served{{Workflow: "mail", Versions: []string{"v1"}, Queues: []string{"emails", "fast"}}}},
		{ID: "b", Live: true, Serves: []store.Served{{Workflow: "mail", Versions: []string{"v1", "v2"}, Queues: []string{"fast"}}, {Workflow: "order", Versions: []string{"v1"}}}},
		{ID: "c", Live: true, Serves: []store.Served{{Workflow: "report", Versions: []string{"v1"}, Queues: []string{"fast"}}}},
	}, "c")
	require.True(t, live.Picky())
	require.False(t, stuck.LiveOf(executors, "").Picky())
	run := func(queue, version string) *store.Run {
		return &store.Run{Workflow: "mail", Version: version, Queue: queue}
	}
	require.True(t, live.Serves(run("emails", "v1")))
	require.False(t, live.Serves(run("emails", "v2")), "who has its code takes runs from another queue")
	require.False(t, live.Serves(run("letters", "v1")))
	require.True(t, live.Serves(run("", "v2")))

	byWorkflow, byVersion := map[string]int64{"mail": 3, "order": 1, "report": 1}, map[string]int64{"v1": 2, "v2": 2}
	all := live.Unserved(byWorkflow, byVersion, map[string]int64{"": 9, "emails": 1, "fast": 1, "letters": 1})
	require.Equal(t, []store.Filter{
		{Statuses: stuck.Resting, Workflows: []string{"mail"}, Versions: []string{"v2"}, Queues: []string{"emails"}},
		{Statuses: stuck.Resting, Workflows: []string{"mail"}, Versions: []string{"v1", "v2"}, Queues: []string{"letters"}},
		{Statuses: stuck.Resting, Workflows: []string{"order"}, Versions: []string{"v2"}},
		{Statuses: stuck.Resting, Workflows: []string{"report"}},
	}, all)
	inLine := []store.Status{store.Pending, store.Interrupted}
	require.Equal(t, []store.Filter{
		{Statuses: inLine, Workflows: []string{"mail"}, Versions: []string{"v2"}, Queues: []string{"emails"}},
		{Statuses: inLine, Workflows: []string{"order"}, Versions: []string{"v2"}, Queues: []string{"emails"}},
		{Statuses: inLine, Workflows: []string{"report"}, Queues: []string{"emails"}},
	}, live.UnservedIn("emails", byWorkflow, byVersion))
}
