package durable_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// BenchmarkSealing is a step whose result is compressed, encrypted or both.
func BenchmarkSealing(b *testing.B) {
	small, large := strings.Repeat("x", 100), strings.Repeat(`{"name":"Ada","n":12345},`, 400_000)
	for name, c := range map[string]struct {
		value string
		o     durable.Options
	}{
		"100 B in clear":                 {small, durable.Options{}},
		"100 B encrypted":                {small, durable.Options{Encrypt: keysOf("k1")}},
		"10 MB in clear":                 {large, durable.Options{CompressAbove: -1}},
		"10 MB compressed":               {large, durable.Options{}},
		"10 MB encrypted":                {large, durable.Options{Encrypt: keysOf("k1"), CompressAbove: -1}},
		"10 MB compressed and encrypted": {large, durable.Options{Encrypt: keysOf("k1")}},
	} {
		b.Run(name, func(b *testing.B) {
			ctx := context.Background()
			wf := durable.Define("w", func(ctx context.Context, in int) (int, error) {
				for range in {
					if _, err := durable.Step(ctx, "a", func(context.Context) (string, error) { return c.value, nil }); err != nil {
						return 0, err
					}
				}
				return 0, nil
			})
			c.o.Workflows, c.o.Logger = []durable.Definition{wf}, quiet
			eng, err := durable.Open(ctx, memory.Open(), c.o)
			require.NoError(b, err)
			b.SetBytes(int64(len(c.value)))
			_, err = wf.Run(durable.NewContext(ctx, eng), "r", b.N)
			require.NoError(b, err)
			require.NoError(b, eng.Close())
		})
	}
}
