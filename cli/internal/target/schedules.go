package target

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/internal/wire"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Schedules implements Target.
func (l *Local) Schedules(ctx context.Context, names ...string) ([]client.Schedule, error) {
	if store.CapabilitiesOf(l.Store).Schedules == nil && len(names) == 0 {
		return nil, nil
	}
	states, err := operate.On(l.Engine).Schedules(ctx, names...)
	if err != nil {
		if len(names) > 0 {
			err = l.lostSchedule(names[0], err)
		}
		return nil, err
	}
	list := make([]client.Schedule, len(states))
	for i := range states {
		list[i] = wire.Schedule(&states[i])
	}
	return list, nil
}

func (l *Local) lostSchedule(name string, err error) error {
	if errors.Is(err, operate.ErrScheduleNotFound) {
		return unknown("schedule", name, l.commands)
	}
	return err
}

// PauseSchedule implements Target.
func (l *Local) PauseSchedule(ctx context.Context, name, reason string) error {
	return l.lostSchedule(name, operate.On(l.Engine).PauseSchedule(ctx, name, reason))
}

// ResumeSchedule implements Target.
func (l *Local) ResumeSchedule(ctx context.Context, name string) error {
	return l.lostSchedule(name, operate.On(l.Engine).ResumeSchedule(ctx, name))
}

// TriggerSchedule implements Target.
func (l *Local) TriggerSchedule(ctx context.Context, name, key string) (string, error) {
	id, err := operate.On(l.Engine).TriggerSchedule(ctx, name, key)
	return id, l.lostSchedule(name, err)
}

// DeleteSchedule implements Target.
func (l *Local) DeleteSchedule(ctx context.Context, name string) error {
	return l.lostSchedule(name, operate.On(l.Engine).DeleteSchedule(ctx, name))
}

// BackfillSchedule implements Target.
func (l *Local) BackfillSchedule(ctx context.Context, name string, from, to time.Time, dry bool) (client.Backfill, error) {
	op := operate.On(l.Engine)
	plan, err := op.PlanBackfill(ctx, name, from, to)
	if err != nil || dry {
		return wire.Planned(plan), l.lostSchedule(name, err)
	}
	did, err := op.BackfillSchedule(ctx, name, from, to)
	if err != nil {
		return client.Backfill{}, l.lostSchedule(name, err)
	}
	return wire.Backfilled(plan, &did), nil
}

// Schedules implements Target.
func (r *Remote) Schedules(ctx context.Context, names ...string) ([]client.Schedule, error) {
	if len(names) == 0 {
		list, err := r.c.Schedules(ctx)
		return list, r.said(err)
	}
	return named(ctx, r, "schedule", names, r.c.Schedule)
}

// PauseSchedule implements Target.
func (r *Remote) PauseSchedule(ctx context.Context, name, reason string) error {
	_, err := r.c.PauseSchedule(ctx, name, reason)
	return r.lost("schedule", name, err)
}

// ResumeSchedule implements Target.
func (r *Remote) ResumeSchedule(ctx context.Context, name string) error {
	_, err := r.c.ResumeSchedule(ctx, name)
	return r.lost("schedule", name, err)
}

// TriggerSchedule implements Target.
func (r *Remote) TriggerSchedule(ctx context.Context, name, key string) (string, error) {
	done, err := r.c.TriggerSchedule(ctx, name, key)
	return done.RunID, r.lost("schedule", name, err)
}

// DeleteSchedule implements Target.
func (r *Remote) DeleteSchedule(ctx context.Context, name string) error {
	_, err := r.c.DeleteSchedule(ctx, name)
	return r.lost("schedule", name, err)
}

// BackfillSchedule implements Target.
func (r *Remote) BackfillSchedule(ctx context.Context, name string, from, to time.Time, dry bool) (client.Backfill, error) {
	done, err := r.c.BackfillSchedule(ctx, name, client.BackfillRequest{From: from, To: to, DryRun: dry})
	return done, r.lost("schedule", name, err)
}
