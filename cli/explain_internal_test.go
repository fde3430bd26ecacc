package cli

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Whatever is wrong with a checkpoint: the run is named, so is the checkpoint where one
// is known, and what to do next.
func TestEveryProblemWithACheckpointIsExplained(t *testing.T) {
	root := Command(nil, Program("durable"))
	list, _, err := root.Find([]string{"sessions", "ls"})
	require.NoError(t, err)
	c := (&app{program: []string{"durable"}, getenv: func(string) string { return "" }}).invocation(list)
	for name, problem := range map[string]struct {
		err  error
		says []string
		next string
		exit int
	}{
		"no such checkpoint":   {&operate.CheckpointError{RunID: "order-42", Seq: 9, Reason: "it is not stable"}, []string{"checkpoint 9"}, "durable checkpoints list order-42", ExitNotFound},
		"an outcome not there": {&operate.CheckpointError{RunID: "order-42", Key: "ship", Reason: "it has no outcome"}, []string{"checkpoint ship"}, "durable checkpoints list order-42", ExitNotFound},
		"a damaged event":      {&durable.DamagedError{RunID: "order-42", Seq: 5, Err: store.ErrCorrupt}, []string{"event 5"}, "durable checkpoints repair order-42 --dry-run", ExitRefused},
		"a damaged run":        {&durable.DamagedError{RunID: "order-42", Err: store.ErrCorrupt}, nil, "durable checkpoints repair order-42 --dry-run", ExitRefused},
		"no history at all":    {&durable.DamagedError{RunID: "order-42", Err: durable.ErrNoHistory}, nil, "durable checkpoints delete order-42 --dry-run", ExitRefused},
		"a value of another type": {&durable.UndecodableError{RunID: "order-42", Key: "charge", Recorded: "string", Wanted: "[]int", Err: fmt.Errorf("no array")},
			[]string{"checkpoint of charge", "a string", "as []int"}, "durable checkpoints validate order-42", ExitRefused},
		"a call of Once between": {&operate.CrossingError{RunID: "order-42", Keys: []string{"pay"}}, []string{"pay must run at most once"}, "--force", ExitRefused},
		"what was undone":        {&operate.UndoneError{RunID: "order-42", Calls: []string{"pay"}, By: []string{"refund"}, Before: 7}, nil, "--from-checkpoint 7", ExitRefused},
	} {
		for _, err := range []error{problem.err, fmt.Errorf("resuming: %w", problem.err)} {
			f := c.explain(err)
			require.Contains(t, f.Message, "order-42", name)
			for _, part := range problem.says {
				require.Contains(t, f.Message, part, name)
			}
			require.Contains(t, f.Next, problem.next, name)
			require.Equal(t, problem.exit, f.Exit, name)
		}
	}
}
