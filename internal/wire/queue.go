// Package wire turns what package operate says of queues and schedules into the types of
// package client: the server sends them, and the terminal prints them also when it acts on
// a store, so both say the same. Texts are as they were given: redact them before.
package wire

import (
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Queue returns a queue as seen from a moment, which texts write in zone.
func Queue(q *operate.Queue, now store.Time, zone *time.Location) client.Queue {
	w := client.Queue{
		Name: q.Name, Max: q.Max, MaxPerPartition: q.MaxPerPartition, Rate: q.Rate, PerMS: q.Per.Milliseconds(), Paused: q.Paused, Reason: q.Reason,
		UpdatedAt: q.UpdatedAt.Time(), Running: q.Placed, InLine: q.InLine, Delayed: q.Delayed, Failed: q.Failed,
		Oldest: q.Oldest.Time(), Begun: q.Begun, NextAt: q.NextAt.Time(),
	}
	if q.Oldest != 0 {
		w.AgeMS = max(now.Sub(q.Oldest), 0).Milliseconds()
	}
	for _, wait := range q.Waits {
		text := (*outline.LineWait)(&wait).Text(&q.QueueState, now, zone)
		w.Waits = append(w.Waits, client.QueueWait{Reason: string(wait.Reason), Partition: wait.Partition, Runs: wait.Runs, Until: wait.Until.Time(), Text: text.String()})
	}
	for _, p := range q.Partitions {
		w.Partitions = append(w.Partitions, client.QueuePartition{Name: p.Name, Running: p.Placed, InLine: p.InLine})
	}
	return w
}

// Line returns where a run stands in line; nil: in none.
func Line(l *outline.Line, now store.Time, zone *time.Location) *client.Line {
	if l == nil {
		return nil
	}
	why, until := l.Reason()
	return &client.Line{Queue: l.Queue.Name, Partition: l.Partition, Position: l.Position, Reason: string(why), Until: until.Time(), Text: l.Text(now, zone).String()}
}
