package everystore_test

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// between is a store on which something happens after a run was loaded and before
// its events are read, which a store does only when they are ranged over.
type between struct {
	store.Store
	mu      sync.Mutex
	happens func() // nil: nothing, any more
}

func (b *between) next(happens func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.happens = happens
}

func (b *between) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	h, err := b.Store.Load(ctx, id, c)
	if err != nil || c.NoEvents {
		return h, err
	}
	events := h.Events
	h.Events = func(yield func(store.Event, error) bool) {
		b.mu.Lock()
		happens := b.happens
		b.happens = nil
		b.mu.Unlock()
		if happens != nil {
			happens()
		}
		events(yield)
	}
	return h, nil
}

// until waits for what a run is to become.
func (d *data) until(t *testing.T, id string, is func(*store.Run) bool) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(moment) {
		h, err := d.outside.Load(context.Background(), id, store.Cursor{NoEvents: true})
		require.NoError(t, err)
		if is(&h.Run) {
			return
		}
		require.Less(t, time.Since(began), patience, "run %s: %+v", id, h.Run)
	}
}

func TestUnpauseInTheMomentInWhichAPauseIsCarriedOutLetsTheRunGoOn(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		var unpaused atomic.Bool
		body, begun := make(chan struct{}), make(chan struct{}, 2)
		slow := durable.Define("slow", func(ctx context.Context, _ int) (string, error) {
			err := durable.Do(ctx, "slow", func(context.Context) error {
				begun <- struct{}{}
				<-body
				return nil
			})
			for resumed := false; err == nil && !resumed; {
				resumed, err = durable.Step(ctx, "until it is resumed", func(context.Context) (bool, error) {
					time.Sleep(moment)
					return unpaused.Load(), nil
				})
			}
			return "done", err
		})
		here := d.program(t, slow)
		st, err := d.open()
		require.NoError(t, err)
		defer func() { require.NoError(t, st.Close()) }()
		looking := &between{Store: st}
		there, operator := engineOf(t, looking)

		run, err := slow.Start(here, "r", 0)
		require.NoError(t, err)
		<-begun
		require.NoError(t, operator.Pause(there, "r", "hold on"))
		looking.next(func() {
			close(body)
			d.until(t, "r", func(r *store.Run) bool { return r.Paused })
		})
		require.NoError(t, operator.Unpause(there, "r"))
		unpaused.Store(true)
		out, err := run.Wait(here)
		require.NoError(t, err)
		require.Equal(t, "done", out)
	})
}

// TestWhatIsSaidOfARunIsOfOneMoment goes over what an engine says of a run by
// comparing its row or inbox with its events, while the run goes on in between.
func TestWhatIsSaidOfARunIsOfOneMoment(t *testing.T) {
	asks := durable.Define("asks", func(ctx context.Context, _ int) (int, error) {
		if err := durable.Publish(ctx, "state", "asking"); err != nil {
			return 0, err
		}
		if _, err := durable.Await[bool](ctx, "first", durable.Prompt("First?")); err != nil {
			return 0, err
		}
		return durable.Step(ctx, "work", func(context.Context) (int, error) { return 1, nil })
	})
	type saying struct {
		name string
		say  func(t *testing.T, ctx context.Context, e *durable.Engine, id string)
	}
	sayings := []saying{ // those first that look at all runs
		{"Approvals", func(t *testing.T, ctx context.Context, e *durable.Engine, id string) {
			open, err := operate.On(e).Approvals(ctx)
			require.NoError(t, err)
			require.Len(t, open, 1)
			require.Equal(t, "first", open[0].Key)
		}},
		{"ApprovalsOf", func(t *testing.T, ctx context.Context, e *durable.Engine, id string) {
			open, err := operate.On(e).ApprovalsOf(ctx, id)
			require.NoError(t, err)
			require.Len(t, open, 1)
		}},
		{"Standing", func(t *testing.T, ctx context.Context, e *durable.Engine, id string) {
			s, err := operate.On(e).Standing(ctx, id)
			require.NoError(t, err)
			require.Equal(t, store.Waiting, s.Status)
			require.Equal(t, 0, s.Done)
		}},
		{"Verify", func(t *testing.T, ctx context.Context, e *durable.Engine, id string) {
			v, err := operate.On(e).Verify(ctx, id)
			require.NoError(t, err)
			require.Empty(t, v.Findings)
		}},
		{"RecoverRun", func(t *testing.T, ctx context.Context, e *durable.Engine, id string) {
			rec, err := e.RecoverRun(ctx, id)
			require.NoError(t, err)
			require.False(t, rec.Needed)
		}},
		{"Branches", func(t *testing.T, ctx context.Context, e *durable.Engine, id string) {
			all, err := operate.On(e).Branches(ctx, id)
			require.NoError(t, err)
			require.Len(t, all, 1)
			require.Equal(t, 4, all[0].Events)
		}},
		{"Export", func(t *testing.T, ctx context.Context, e *durable.Engine, id string) {
			var file bytes.Buffer
			require.NoError(t, operate.On(e).Export(ctx, id, &file))
			_, err := operate.On(e).Import(ctx, &file, operate.ImportOptions{NewID: id + " copy"})
			require.NoError(t, err)
			v, err := operate.On(e).Verify(ctx, id+" copy")
			require.NoError(t, err)
			require.Empty(t, v.Findings)
		}},
		{"Fork", func(t *testing.T, ctx context.Context, e *durable.Engine, id string) {
			made, err := operate.On(e).Fork(ctx, id, operate.ForkOptions{ID: id + " fork"})
			require.NoError(t, err)
			v, err := operate.On(e).Verify(ctx, made)
			require.NoError(t, err)
			require.Empty(t, v.Findings)
		}},
		{"Published", func(t *testing.T, ctx context.Context, e *durable.Engine, id string) {
			state, ok, err := durable.Published[string](ctx, id, "state")
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, "asking", state)
		}},
		{"Watch", func(t *testing.T, ctx context.Context, e *durable.Engine, id string) {
			var last store.Event
			for ev, err := range e.Watch(ctx, id, 0) {
				require.NoError(t, err)
				if ev.Type != store.WaitRequested { // those pending are told first, too
					require.Equal(t, max(last.Seq+1, ev.Seq), ev.Seq)
				}
				last = ev
			}
			require.Equal(t, store.WorkflowCompleted, last.Type)
		}},
	}
	onEach(t, func(t *testing.T, b backend, d *data) {
		here := d.program(t, asks)
		st, err := d.open()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, st.Close()) })
		looking := &between{Store: st}
		there, operator := engineOf(t, looking)
		for _, x := range sayings {
			what := x.name
			run, err := asks.Start(here, what, 0)
			require.NoError(t, err)
			d.until(t, what, func(r *store.Run) bool { return r.Status == store.Waiting })
			looking.next(func() {
				require.NoError(t, here.eng.Signal(here, what, "first", true))
				_, err := run.Wait(here)
				require.NoError(t, err)
			})
			t.Log(what)
			x.say(t, there, operator, what)
			require.Nil(t, looking.happens, "%s has looked at no events", what)
		}
	})
}
