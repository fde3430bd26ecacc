package read

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Schedules reads all schedules; none from a store that keeps none.
func (rd *Reader) Schedules(ctx context.Context) ([]operate.ScheduleState, error) {
	if store.CapabilitiesOf(rd.Engine.Store()).Schedules == nil {
		return nil, nil
	}
	return operate.On(rd.Engine).Schedules(ctx)
}

// Schedule reads one schedule.
func (rd *Reader) Schedule(ctx context.Context, name string) (*operate.ScheduleState, error) {
	if store.CapabilitiesOf(rd.Engine.Store()).Schedules == nil {
		return nil, fmt.Errorf("this store keeps no schedules: %w", errors.ErrUnsupported)
	}
	states, err := operate.On(rd.Engine).Schedules(ctx, name)
	if err != nil {
		return nil, err
	}
	return &states[0], nil
}

// UsesSchedules reports whether there are schedules.
func (rd *Reader) UsesSchedules(ctx context.Context) (bool, error) {
	kept := store.CapabilitiesOf(rd.Engine.Store()).Schedules
	if kept == nil {
		return false, nil
	}
	return rd.schedules.ask(func() (bool, error) {
		due, err := kept.DueSchedules(ctx, 1)
		if err != nil || len(due.Due) > 0 || due.Next != 0 {
			return err == nil, err
		}
		list, err := kept.Schedules(ctx) // those that never fire, such as paused ones
		return len(list) > 0, err
	})
}
