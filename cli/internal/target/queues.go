package target

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/internal/wire"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// unknown says that there is no queue or schedule, what, with a name.
func unknown(what, name string, c *show.Commands) *show.Failure {
	return &show.Failure{Code: "not_found", Exit: show.ExitNotFound, Message: "There is no " + what + " " + name, Next: "List: " + c.Self(what+"s", "ls"), Err: durable.ErrNotFound}
}

// Queues implements Target.
func (l *Local) Queues(ctx context.Context, names ...string) ([]client.Queue, error) {
	queues, err := operate.On(l.Engine).Queues(ctx, names...)
	if err != nil {
		return nil, l.lostQueue(names, err)
	}
	list := make([]client.Queue, len(queues))
	for i := range queues {
		list[i] = wire.Queue(&queues[i], store.TimeOf(time.Now()), time.Local)
	}
	return list, nil
}

// lostQueue returns err, in our words if it says that there is no such queue.
func (l *Local) lostQueue(names []string, err error) error {
	if errors.Is(err, durable.ErrNotFound) && len(names) == 1 {
		return unknown("queue", names[0], l.commands)
	}
	return err
}

// PauseQueue implements Target.
func (l *Local) PauseQueue(ctx context.Context, name, reason string) error {
	return l.lostQueue([]string{name}, operate.On(l.Engine).PauseQueue(ctx, name, reason))
}

// ResumeQueue implements Target.
func (l *Local) ResumeQueue(ctx context.Context, name string) error {
	return l.lostQueue([]string{name}, operate.On(l.Engine).ResumeQueue(ctx, name))
}

// Retry implements Target.
func (l *Local) Retry(ctx context.Context, id string, dry bool) (operate.Plan, error) {
	p, err := operate.On(l.Engine).RetryDeadLetter(ctx, id, operate.RetryOptions{DryRun: dry})
	return p, l.Lost(id, err)
}

// RetryAll implements Target.
func (l *Local) RetryAll(ctx context.Context, queue string, dry bool, each func(id string, refused error)) error {
	for plan, err := range operate.On(l.Engine).RetryDeadLetters(ctx, queue, operate.RetryOptions{DryRun: dry}) {
		if plan.RunID == "" && err != nil {
			return l.lostQueue([]string{queue}, err)
		}
		each(plan.RunID, err)
	}
	return ctx.Err()
}

// line reads where a run stands in line; nil: in none.
func (l *Local) line(ctx context.Context, row *store.Run) (*outline.Line, error) {
	if !row.NeedsPlace() {
		return nil, nil
	}
	line, err := operate.On(l.Engine).Line(ctx, row.ID)
	return (*outline.Line)(line), err
}

// Queues implements Target.
func (r *Remote) Queues(ctx context.Context, names ...string) ([]client.Queue, error) {
	if len(names) == 0 {
		list, err := r.c.Queues(ctx)
		return list, r.said(err)
	}
	return named(ctx, r, "queue", names, r.c.Queue)
}

// named asks for each of the queues or schedules, what, with these names.
func named[T any](ctx context.Context, r *Remote, what string, names []string, one func(context.Context, string) (T, error)) ([]T, error) {
	list := make([]T, 0, len(names))
	for _, name := range names {
		v, err := one(ctx, name)
		if err != nil {
			return nil, r.lost(what, name, err)
		}
		list = append(list, v)
	}
	return list, nil
}

// lost returns err, in our words if it says that there is no queue or schedule, what, with a
// name.
func (r *Remote) lost(what, name string, err error) error {
	var e *client.Error
	if errors.As(err, &e) && e.Code == "not_found" {
		return unknown(what, name, r.commands)
	}
	return r.said(err)
}

// PauseQueue implements Target.
func (r *Remote) PauseQueue(ctx context.Context, name, reason string) error {
	_, err := r.c.PauseQueue(ctx, name, reason)
	return r.lost("queue", name, err)
}

// ResumeQueue implements Target.
func (r *Remote) ResumeQueue(ctx context.Context, name string) error {
	_, err := r.c.ResumeQueue(ctx, name)
	return r.lost("queue", name, err)
}

// Retry implements Target.
func (r *Remote) Retry(ctx context.Context, id string, dry bool) (operate.Plan, error) {
	done, err := r.c.Retry(ctx, id, dry)
	if err != nil {
		return operate.Plan{}, r.said(err)
	}
	return planFrom(&done.Plan), nil
}

// RetryAll implements Target.
func (r *Remote) RetryAll(ctx context.Context, queue string, dry bool, each func(id string, refused error)) error {
	if _, err := r.Queues(ctx, queue); err != nil {
		return err
	}
	req := client.BulkRequest{Filter: map[string][]string{"queue": {client.FilterValue(queue)}, "status": {string(store.Failed)}}, DryRun: dry}
	return r.onAll(ctx, r.c.RetryAll, req, each)
}

// line returns where a run stands in line as a story takes it; nil: in none.
func (r *Remote) line(ctx context.Context, l *client.Line) *outline.Line {
	if l == nil {
		return nil
	}
	q, err := r.c.Queue(ctx, l.Queue)
	if err != nil {
		return nil // the run may be shown to this user, and its queue not
	}
	return &outline.Line{
		Partition: l.Partition, Position: l.Position, Served: l.Reason != string(outline.Unserved),
		Queue: store.QueueState{
			Queue: store.Queue{
				Name: q.Name, Max: q.Max, MaxPerPartition: q.MaxPerPartition, Rate: q.Rate, Per: time.Duration(q.PerMS) * time.Millisecond,
				Paused: q.Paused, Reason: q.Reason,
			},
			Placed: q.Running, InLine: q.InLine, Begun: q.Begun, NextAt: store.TimeOf(q.NextAt), Partitions: partitionsFrom(q.Partitions),
		},
	}
}

func partitionsFrom(list []client.QueuePartition) []store.PartitionState {
	out := make([]store.PartitionState, 0, len(list))
	for _, p := range list {
		out = append(out, store.PartitionState{Name: p.Name, Placed: p.Running, InLine: p.InLine})
	}
	return out
}
