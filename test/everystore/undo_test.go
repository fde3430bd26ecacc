package everystore_test

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// book registers what undoes a booking, and books.
func (l *life) book(ctx context.Context, what string, err error) error {
	if err := durable.Compensate(ctx, "cancel "+what, func(ctx context.Context) error { l.did(ctx); return nil }); err != nil {
		return err
	}
	return durable.Do(ctx, "book "+what, func(ctx context.Context) error { l.did(ctx); return err })
}

func undoShapes() []*shape {
	return []*shape{
		{
			name: "undone after a failure", want: []string{", run r (undone after a failure) failed: step book car: no car"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("undone after a failure", func(ctx context.Context, _ int) (string, error) {
					if err := l.book(ctx, "hotel", nil); err != nil {
						return "", err
					}
					return "booked", l.book(ctx, "car", errors.New("no car"))
				})}
			},
		},
		{
			name: "undone after a cancel", want: []string{", run r (undone after a cancel) cancelled: enough"},
			define: func(l *life) []durable.Definition {
				return []durable.Definition{durable.Define("undone after a cancel", func(ctx context.Context, _ int) (string, error) {
					for _, what := range []string{"hotel", "car"} {
						if err := l.book(ctx, what, nil); err != nil {
							return "", err
						}
					}
					return "booked", durable.Sleep(ctx, time.Hour)
				})}
			},
			script: func(ctx context.Context, l *life) error {
				if err := l.until(ctx, "r timer_set sleep"); err != nil {
					return err
				}
				return l.cancel()
			},
		},
	}
}
