package durable_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
)

type bill struct{ Total int }

func gives[T any](ctx context.Context, name string, v T) error {
	_, err := durable.Step(ctx, name, func(context.Context) (T, error) { return v, nil })
	return err
}

// The code would read null as the zero value of what it expects: as a no, or as nothing owed.
func TestAResultIsReplacedByNullOnlyWhereNullIsAValue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		one := 1
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			for _, err := range []error{
				gives(ctx, "int", 1), gives(ctx, "string", "a"), gives(ctx, "bool", true), gives(ctx, "struct", bill{1}), gives(ctx, "array", [2]int{1, 2}),
				gives(ctx, "pointer", &one), gives(ctx, "slice", []int{1}), gives(ctx, "map", map[string]int{"a": 1}), gives[any](ctx, "any", 1), gives(ctx, "raw", json.RawMessage("1")),
			} {
				if err != nil {
					return 0, err
				}
			}
			return 0, nil
		})
		w.boot(t, with(wf))
		_, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		plan := func(key string, force bool) error {
			_, err := operate.On(w.eng).PlanFork(w.ctx(), "r", operate.ForkOptions{ID: "f", Edits: map[string]any{key: json.RawMessage(" null")}, Force: force})
			return err
		}
		for _, key := range []string{"int", "string", "bool", "struct", "array"} {
			require.ErrorContains(t, plan(key, false), "and null is none: the code would read its zero value. Force replaces it all the same", key)
			require.NoError(t, plan(key, true), key)
		}
		for _, key := range []string{"pointer", "slice", "map", "any", "raw"} {
			require.NoError(t, plan(key, false), key)
		}
	})
}
