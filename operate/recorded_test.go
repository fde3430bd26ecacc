package operate_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// The errors of acts came from package durable once. What a history says of them is
// compared by name.
func TestErrorsOfActsAreRecordedUnderTheNamesTheyHad(t *testing.T) {
	for name, fails := range map[string]error{
		"BusyError": &operate.BusyError{}, "CheckpointError": &operate.CheckpointError{}, "CrossingError": &operate.CrossingError{},
		"EditError": &operate.EditError{}, "TooLateError": &operate.TooLateError{}, "UndoneError": &operate.UndoneError{}, "UnrepairableError": &operate.UnrepairableError{},
	} {
		t.Run(name, func(t *testing.T) {
			wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				_ = durable.Do(ctx, "act", func(context.Context) error { return durable.Permanent(fails) })
				return 0, nil
			})
			eng, err := durable.Open(t.Context(), memory.Open(), durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			defer eng.Close()
			_, err = wf.Run(durable.NewContext(t.Context(), eng), "r", 0)
			require.NoError(t, err)
			for ev, err := range eng.History(t.Context(), "r") {
				require.NoError(t, err)
				if ev.Type == store.StepFailed {
					require.Contains(t, string(ev.Data), `"*github.com/holdfast-dev/holdfast/durable.`+name+`"`)
					return
				}
			}
			t.Fatal("the step has not failed")
		})
	}
}
