package outline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

func TestACancelThatIsNotCarriedOutIsTold(t *testing.T) {
	serves := []store.Served{{Workflow: "checkout", Versions: []string{"1"}}}
	mine := store.Executor{ID: "me", Live: true, Serves: serves}
	for name, c := range map[string]struct {
		run       store.Run
		executors []store.Executor
		want      string
	}{
		"executed":        {store.Run{Status: store.Running, Owner: "me"}, []store.Executor{mine}, "A cancel is recorded: no further step begins, and it ends when what is under way has."},
		"served":          {store.Run{Status: store.Interrupted}, []store.Executor{mine}, "A cancel is recorded; the process that takes it up carries it out."},
		"not known":       {store.Run{Status: store.Waiting}, nil, "A cancel is recorded; the process that takes it up carries it out."},
		"nobody serves":   {store.Run{Status: store.Interrupted}, []store.Executor{}, "A cancel is recorded; it is carried out once a process that serves checkout is started."},
		"parked":          {store.Run{Status: store.Interrupted, Code: "damaged"}, []store.Executor{mine}, "A cancel is recorded; it is carried out when somebody resumes it."},
		"paused":          {store.Run{Status: store.Interrupted, Paused: true}, []store.Executor{mine}, "A cancel is recorded; the process that takes it up carries it out."},
		"has ended since": {store.Run{Status: store.Failed}, []store.Executor{mine}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.run.ID, c.run.Workflow, c.run.Version, c.run.CancelAsked = "r", "checkout", "1", true
			events := func(yield func(store.Event, error) bool) {
				yield(store.Event{Seq: 1, Type: store.WorkflowCreated, At: 1}, nil)
			}
			o, err := outline.Of(outline.Input{Run: c.run, Executors: c.executors, Now: 2}, events)
			require.NoError(t, err)
			if c.want == "" {
				require.NotContains(t, o.Verdict.Text(), "A cancel is recorded")
				return
			}
			require.Contains(t, o.Verdict.Text(), c.want)
			require.NotContains(t, o.Verdict.Text(), "until it is unpaused")
		})
	}
}
