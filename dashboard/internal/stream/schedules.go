package stream

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// schedulesSeen are the revisions of the schedules that a hub has seen, by name.
type schedulesSeen struct {
	known map[string]int64
	next  time.Time // when to look again
}

// lookAtSchedules gathers which schedules have changed: each fire changes one.
func (hub *listHub) lookAtSchedules(ctx context.Context) error {
	h, seen, begin := hub.streams, &hub.schedules, time.Now()
	kept := store.CapabilitiesOf(h.Engine.Store()).Schedules
	if kept == nil || begin.Before(seen.next) {
		return nil
	}
	list, err := kept.Schedules(ctx)
	if err != nil {
		return err
	}
	seen.next = time.Now().Add(shareOfLooks*time.Since(begin) - listEvery)
	now := make(map[string]int64, len(list))
	changed := map[string]bool{}
	for i := range list {
		s := &list[i]
		now[s.Name] = s.Revision
		if seen.known != nil && seen.known[s.Name] != s.Revision {
			changed[s.Name] = true
		}
	}
	for name := range seen.known {
		if _, there := now[name]; !there {
			changed[name] = true
		}
	}
	seen.known = now
	if len(changed) > 0 {
		names := slices.Sorted(maps.Keys(changed))
		hub.add(newFrame("schedules", 0, map[string]any{"changed": names[:min(len(names), maxChanged)]}))
	}
	return nil
}

// maxChanged is how many schedules one message names.
const maxChanged = 100
