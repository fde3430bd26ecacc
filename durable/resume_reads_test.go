package durable_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// readEvents counts the events that are read from a store.
type readEvents struct {
	*disk
	n atomic.Int64
}

func (s *readEvents) LoadAll(ctx context.Context, loads []store.RunCursor) []store.Loaded {
	return store.LoadAll(ctx, struct{ store.Store }{s}, loads)
}

func (s *readEvents) Load(ctx context.Context, id string, from store.Cursor) (*store.History, error) {
	h, err := s.disk.Load(ctx, id, from)
	if err != nil || h.Events == nil {
		return h, err
	}
	events := h.Events
	h.Events = func(yield func(store.Event, error) bool) {
		for ev, err := range events {
			s.n.Add(1)
			if !yield(ev, err) {
				return
			}
		}
	}
	return h, nil
}

// What is looked at before a run is resumed, and what the execution needs, is one
// history, and it is read once.
func TestAResumeReadsTheHistoryOnce(t *testing.T) {
	for _, generation := range []int{0, 1} {
		inWorld(t, func(t *testing.T, w *world) {
			const steps = 200
			h := hold{}
			bodies := map[string]int{}
			wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
				if n < generation {
					return 0, durable.Continue(ctx, n+1)
				}
				for i := range steps {
					name := fmt.Sprint("s", i)
					if err := durable.Do(ctx, name, func(context.Context) error { bodies[name]++; return nil }); err != nil {
						return 0, err
					}
				}
				return steps, durable.Do(ctx, "hold", h.body)
			})
			w.serve(t, wf)
			start(t, w, wf, "r", 0)
			synctest.Wait()
			w.crash()
			w.expire()
			s := &readEvents{disk: &disk{Store: w.data.Handle()}}
			eng, err := durable.Open(context.Background(), s, durable.Options{Workflows: []durable.Definition{wf}, Grace: -1, Logger: slog.New(w.log)})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, eng.Close()) })
			require.NoError(t, durable.Signal(durable.NewContext(context.Background(), eng), "r", "mail", "unread"))
			_, err = operate.On(eng).Resume(context.Background(), "r", operate.ResumeOptions{})
			require.NoError(t, err)
			out, err := finish(t, &world{eng: eng, t: t}, wf, "r")
			require.NoError(t, err)
			require.Equal(t, steps, out)
			require.Equal(t, 1, bodies["s0"])
			require.Less(t, s.n.Load(), int64(steps+20))
		})
	}
}
