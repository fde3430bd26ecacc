package durable_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func TestADefinitionAndItsStoredFormConvertBothWaysWithoutLoss(t *testing.T) {
	fn := func(ctx context.Context, in int) (int, error) {
		if err := durable.Do(ctx, "reserve", func(context.Context) error { return nil }); err != nil {
			return 0, err
		}
		return durable.Step(ctx, "charge", func(context.Context) (int, error) { return in, nil })
	}
	wf := durable.Define("checkout", fn, durable.Version("3"), durable.Steps("reserve", "charge"))
	eng, err := durable.Open(t.Context(), memory.Open(), durable.Options{Workflows: []durable.Definition{wf}})
	require.NoError(t, err)
	defer eng.Close()
	_, err = wf.Run(durable.NewContext(t.Context(), eng), "r", 1)
	require.NoError(t, err)

	stored, err := operate.On(eng).Form(t.Context(), "r")
	require.NoError(t, err)
	require.Equal(t, []string{"reserve", "charge"}, stored.Observed)
	text, err := json.Marshal(stored)
	require.NoError(t, err)
	var read operate.Form
	require.NoError(t, json.Unmarshal(text, &read))
	read.Observed = nil
	require.Equal(t, operate.FormOf(wf), read)
	require.Equal(t, operate.FormOf(wf), operate.FormOf(durable.Define(read.Workflow, fn, read.Options()...)))
}
