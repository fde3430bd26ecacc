package termview_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/termview"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func TestItemsOfAMapAreTold(t *testing.T) {
	lines := func(t *testing.T, n int) string {
		var out strings.Builder
		synctest.Test(t, func(t *testing.T) {
			wf := durable.Define("thumbnails", func(ctx context.Context, n int) (int, error) {
				items := make([]int, n)
				for i := range items {
					items[i] = i
				}
				_, err := durable.Map(ctx, "thumb", items, durable.MapOptions{Concurrency: 1, KeepGoing: true}, func(ctx context.Context, i int) (int, error) {
					if i == 1 {
						return 0, errors.New("no picture")
					}
					return 1, nil
				})
				return n, err
			})
			eng, err := durable.Open(t.Context(), memory.Open(), durable.Options{Workflows: []durable.Definition{wf}, Grace: -1, Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			_, err = wf.Start(durable.NewContext(t.Context(), eng), "order-42", n)
			require.NoError(t, err)
			v := termview.New(&out, termview.Options{}, words)
			stop := follow(t, eng, v, 0)
			time.Sleep(time.Minute)
			stop()
			require.NoError(t, v.Err())
			require.NoError(t, eng.Close())
		})
		return out.String()
	}
	text := lines(t, 3)
	require.Contains(t, text, "Processing input 1/3: thumb[0]\n")
	require.Contains(t, text, "Processing input 2/3: thumb[1] ✗ no picture\n")
	require.Contains(t, text, "Processing input 3/3: thumb[2]\n")
	text = lines(t, 1000)
	require.Contains(t, text, "Processing input 1000/1000: thumb[999]\n")
	require.LessOrEqual(t, strings.Count(text, "Processing input"), 110, "of many a hundred or so")
}
