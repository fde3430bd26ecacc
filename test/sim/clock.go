package sim

import (
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// A clock is that of the store. For an engine, whose own clock goes right, it drifts and jumps:
// what an engine with a bad clock sees of a good store.
type clock struct {
	began time.Time
	drift int // parts in a million

	mu  sync.Mutex
	set time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	return now.Add(c.set + now.Sub(c.began)/1_000_000*time.Duration(c.drift))
}

func (c *clock) jump(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set += by
}

// now is the time of the store's clock.
func (s *sim) now() store.Time { return store.TimeOf(s.clock.now()) }

// clocksDiffer reports whether the store's clock does not go like those of the engines, so that
// two executors may have a run at a time, and times of two cannot be compared.
func (w *World) clocksDiffer() bool {
	for i := range w.Acts {
		if w.Acts[i].Do == SetClock {
			return true
		}
	}
	return w.Drift != 0
}

// clocks has the store's clock drift, or be set while the world goes on.
func (g *Generator) clocks(w *World) {
	if g.chance(50) {
		w.Drift = pick(g, 400, -400, 50, -50)
	}
	for range g.rng.IntN(2) + 1 {
		a := Act{Do: SetClock, After: pick(g, 0, time.Second, 12*time.Second, 40*time.Second)}
		a.By = pick(g, time.Second, -time.Second, 8*time.Second, -8*time.Second, 40*time.Second, -40*time.Second, 3*time.Minute)
		if g.chance(60) {
			a.On, a.Nth = g.event("act "+string(a.Do)), pick(g, 1, 1, 2)
		}
		w.Acts = append(w.Acts, a)
	}
}
