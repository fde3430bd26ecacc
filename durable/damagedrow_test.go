package durable_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// damagedDisk calls rows damaged, or the events alone.
type damagedDisk struct {
	store.Store
	rows, events atomic.Bool
	loads        atomic.Int64
}

func (u *damagedDisk) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	rows, events := u.rows.Load(), u.events.Load()
	if rows || events {
		u.loads.Add(1)
	}
	if rows || events && !c.NoEvents {
		return nil, fmt.Errorf("page 17: %w", store.ErrCorrupt)
	}
	return u.Store.Load(ctx, id, c)
}

func TestAWaitingRunWhoseRowIsDamagedIsToldOnceAndListedAsStuck(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return 1, durable.Sleep(ctx, time.Hour)
		})
		st := &damagedDisk{Store: w.data.Handle()}
		eng := openOn(t, w, st, wf)
		h, err := wf.Start(durable.NewContext(context.Background(), eng), "r", 0)
		require.NoError(t, err)
		pass(time.Minute)
		st.rows.Store(true)
		pass(2 * time.Hour)
		require.Len(t, w.log.find("damaged"), 1, w.log.String())
		require.Contains(t, w.log.find("damaged")[0], "operate.On(engine).Verify")
		require.Empty(t, w.log.find("tried again"))
		require.Less(t, st.loads.Load(), int64(20))
		stuck, err := operate.On(eng).Stuck(context.Background(), 0)
		require.NoError(t, err)
		require.Len(t, stuck, 1)
		require.Equal(t, "r", stuck[0].RunID)
		require.Equal(t, "w", stuck[0].Workflow)
		require.Equal(t, durable.CodeDamaged, stuck[0].Code)
		require.Contains(t, stuck[0].Reason, "page 17")
		require.Contains(t, stuck[0].Next, "operate.On(engine).Verify")

		st.rows.Store(false) // the file was mended
		out, err := h.Wait(context.Background())
		require.NoError(t, err)
		require.Equal(t, 1, out)
		stuck, err = operate.On(eng).Stuck(context.Background(), 0)
		require.NoError(t, err)
		require.Empty(t, stuck)
	})
}

func TestAWaitingRunWhoseEventsAreDamagedIsParked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return 1, durable.Sleep(ctx, time.Hour)
		})
		st := &damagedDisk{Store: w.data.Handle()}
		eng := openOn(t, w, st, wf)
		start, err := wf.Start(durable.NewContext(context.Background(), eng), "r", 0)
		require.NoError(t, err)
		pass(time.Minute)
		st.events.Store(true)
		_, err = start.Wait(context.Background())
		require.ErrorIs(t, err, durable.ErrInterrupted)
		synctest.Wait()
		require.Equal(t, durable.CodeDamaged, w.row("r").Code)
		require.Empty(t, w.log.find("tried again"))
		stuck, err := operate.On(eng).Stuck(context.Background(), 0)
		require.NoError(t, err)
		require.Len(t, stuck, 1)
	})
}
