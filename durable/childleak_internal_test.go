package durable

import (
	"context"
	"log/slog"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store/memory"
)

// contextsBelow returns how many contexts that have not ended hang below ctx.
func contextsBelow(ctx context.Context) int {
	return reflect.ValueOf(ctx).Elem().FieldByName("children").Len()
}

// A child whose code another process has is started here, and that is all: the engine
// keeps nothing of it.
func TestNothingIsKeptOfAChildThatAnotherProcessExecutes(t *testing.T) {
	const children = 20
	elsewhere := Ref[int, int]("elsewhere")
	parent := Define("parent", func(ctx context.Context, _ int) (int, error) {
		for range children {
			if _, err := elsewhere.Start(ctx, AutoID, 0, Abandon()); err != nil {
				return 0, err
			}
		}
		return 1, nil
	})
	eng, err := Open(context.Background(), memory.Open(), Options{Workflows: []Definition{parent}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() { require.NoError(t, eng.Close()) }()
	_, err = parent.Run(NewContext(context.Background(), eng), "p", 0)
	require.NoError(t, err)
	require.Zero(t, contextsBelow(eng.life.runs))
}
