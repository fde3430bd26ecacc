package queues

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// An Alarm knows when to look for runs next: when a delayed run becomes due, or a rate lets a
// run in. The heartbeats are the fallback: each looks, too, and says when the next run is due.
type Alarm struct {
	mu    sync.Mutex
	times []store.Time // sorted, each once
}

// alarmStep is how exact an Alarm is. Times that are closer together are one.
const alarmStep = store.Time(time.Millisecond / time.Microsecond)

// maxTimes limits how many times are kept. A heartbeat comes before the last of them, as a rule,
// and finds what comes later.
const maxTimes = 1024

// Set adds a time, and reports whether it is the earliest.
func (a *Alarm) Set(at store.Time) (first bool) {
	at = (at + alarmStep - 1) / alarmStep * alarmStep // never too early
	a.mu.Lock()
	defer a.mu.Unlock()
	i, there := slices.BinarySearch(a.times, at)
	if there || i == maxTimes {
		return false
	}
	a.times = slices.Insert(a.times, i, at)
	a.times = a.times[:min(len(a.times), maxTimes)]
	return i == 0
}

// Next returns how long it is until the earliest time; ok is false if there is none.
func (a *Alarm) Next(now store.Time) (wait time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.times) == 0 {
		return 0, false
	}
	return max(a.times[0].Sub(now), 0), true
}

// Rang forgets the times that have come. The caller looks afterwards.
func (a *Alarm) Rang(now store.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, _ := slices.BinarySearch(a.times, now+1)
	a.times = a.times[i:]
}
