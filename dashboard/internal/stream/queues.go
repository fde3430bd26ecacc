package stream

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// queuesSeen is what a hub knows of the queues.
type queuesSeen struct {
	known []client.Queue // without what changes with every look
	read  bool
	next  time.Time // when to look again
}

// shareOfLooks bounds how much of the time is spent on reading queues, and schedules: where
// there are many, a look takes long, and the next one comes that many times later.
const shareOfLooks = 20

// lookAtQueues gathers whether anything has changed in the queues.
func (hub *listHub) lookAtQueues(ctx context.Context) error {
	h, seen, begin := hub.streams, &hub.queues, time.Now()
	if begin.Before(seen.next) || store.CapabilitiesOf(h.Engine.Store()).Queues == nil {
		return nil
	}
	queues, err := operate.On(h.Engine).Queues(ctx)
	if err != nil {
		return err
	}
	seen.next = time.Now().Add(shareOfLooks*time.Since(begin) - listEvery)
	now := make([]client.Queue, len(queues))
	for i := range queues {
		now[i] = h.Wire.Queue(&queues[i])
		now[i].AgeMS, now[i].Partitions = 0, nil
	}
	if seen.read && !slices.EqualFunc(seen.known, now, sameQueue) {
		hub.add(newFrame("queues", 0, map[string]any{"queues": now}))
	}
	seen.known, seen.read = now, true
	return nil
}

// sameQueue reports whether a queue looks the same on two looks.
func sameQueue(a, b client.Queue) bool {
	if !slices.Equal(a.Waits, b.Waits) {
		return false
	}
	a.Waits, b.Waits = nil, nil
	return a.Name == b.Name && a.UpdatedAt.Equal(b.UpdatedAt) && a.Paused == b.Paused && a.Reason == b.Reason && a.Running == b.Running && a.InLine == b.InLine &&
		a.Delayed == b.Delayed && a.Failed == b.Failed && a.Oldest.Equal(b.Oldest) && a.Begun == b.Begun && a.NextAt.Equal(b.NextAt)
}
