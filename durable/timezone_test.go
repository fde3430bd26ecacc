package durable_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
)

type visit struct {
	At    time.Time
	Notes map[string]any
}

// A process that runs in another zone gives the same moments another text.
func TestAValueWithTimesIsTheSameInEveryZone(t *testing.T) {
	for name, codec := range map[string]durable.Codec{"json": nil, "another codec": hexCodec{}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var h hold
				at := time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)
				define := func(zone *time.Location, at time.Time) *durable.Workflow[visit, int] {
					return durable.Define("w", func(ctx context.Context, _ visit) (int, error) {
						visits := []visit{{At: at.In(zone), Notes: map[string]any{"until": at.Add(time.Hour).In(zone)}}}
						done, err := durable.Map(ctx, "visits", visits, durable.MapOptions{}, func(ctx context.Context, v visit) (int, error) {
							return 1, durable.Do(ctx, "go", func(context.Context) error { return nil })
						})
						if err != nil {
							return 0, err
						}
						if err := durable.Do(ctx, "book", func(context.Context) error { return nil }, durable.WithInput(at.In(zone))); err != nil {
							return 0, err
						}
						return done[0], durable.Do(ctx, "hold", h.body)
					})
				}
				options := func(def durable.Definition) durable.Options {
					o := with(def)
					o.Codec = codec
					return o
				}
				here := define(time.UTC, at)
				w.boot(t, options(here))
				start(t, w, here, "r", visit{At: at})
				synctest.Wait()

				berlin := time.FixedZone("CET", 3600)
				other := define(berlin, at.Add(time.Second))
				w.reboot(t, options(other))
				_, err := wait(t, w, other, "r")
				require.ErrorIs(t, err, durable.ErrDefinitionChanged, "another moment is another value")

				there := define(berlin, at)
				w.reboot(t, options(there))
				goesOn(t, w, "r")
				got, err := wait(t, w, there, "r")
				require.NoError(t, err)
				require.Equal(t, 1, got)

				_, err = there.Start(w.ctx(), "r", visit{At: at.In(berlin)})
				require.NoError(t, err, "the same start, from another zone")
				_, err = there.Start(w.ctx(), "r", visit{At: at.Add(time.Second).In(berlin)})
				require.ErrorIs(t, err, durable.ErrConflict)
			})
		})
	}
}

// A limit that is lowered is none for a run that has begun: its steps have done their
// work by the time their results are found too large.
func TestARunKeepsTheMaxPayloadItWasStartedUnder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		large := make([]byte, 3*durable.MinMaxPayload)
		def := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Do(ctx, "hold", h.body); err != nil {
				return 0, err
			}
			b, err := durable.Step(ctx, "large", func(context.Context) ([]byte, error) { return large, nil })
			return len(b), err
		})
		options := func(limit int) durable.Options {
			o := with(def)
			o.MaxPayload = limit
			return o
		}
		for _, limit := range []int{0, 8 * durable.MinMaxPayload} {
			id := "limited"
			if limit == 0 {
				id = "unlimited"
			}
			w.boot(t, options(limit))
			start(t, w, def, id, 0)
			synctest.Wait()
			w.reboot(t, options(durable.MinMaxPayload))
			got, err := wait(t, w, def, id)
			require.NoError(t, err)
			require.Equal(t, len(large), got)
		}
		h.mu.Lock()
		h.open = true
		h.mu.Unlock()
		start(t, w, def, "new", 0)
		_, err := wait(t, w, def, "new")
		var size *durable.PayloadSizeError
		require.ErrorAs(t, err, &size)
	})
}
