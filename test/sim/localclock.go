package sim

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// A Clock is that of the machine of a process. The zero Clock is right.
type Clock struct {
	Ahead time.Duration // of the wall clock when the process begins
	Drift int           // how much faster both its clocks go, in parts of a million
}

// A localClock is the clocks of one process: the wall clock, which is wrong and is set, and the
// monotonic one, which stands still while the machine is suspended. The store's clock, and
// everything that the oracle asks for, goes right.
type localClock struct {
	Clock
	began time.Time
	yield func() // is called whenever somebody looks

	mu     sync.Mutex
	sets   []moment // of the wall clock
	sleeps []moment // of the machine
}

// A moment is since when, and by how much or for how long.
type moment struct {
	at time.Time
	by time.Duration
}

// newClock returns the clocks of the n-th process.
func (s *sim) newClock(n int) *localClock {
	c := &localClock{began: s.began, yield: s.yield}
	if all := s.world.Clocks; len(all) > 0 {
		c.Clock = all[n%len(all)]
	}
	return c
}

// skew returns by how much the clocks differ from the right one at a moment.
func (c *localClock) skew(t time.Time) (monotonic, wall time.Duration) {
	c.yield()
	c.mu.Lock()
	defer c.mu.Unlock()
	monotonic = t.Sub(c.began) / 1_000_000 * time.Duration(c.Drift)
	wall = monotonic + c.Ahead
	for _, m := range c.sets {
		if !t.Before(m.at) {
			wall += m.by
		}
	}
	for _, m := range c.sleeps {
		// Timers are not suspended, and what waits by this clock asks again when one has fired:
		// so the clock goes at half its speed, as that of a machine that sleeps and wakes.
		monotonic -= min(max(t.Sub(m.at), 0), m.by) / 2
	}
	return monotonic, wall
}

// setWall sets the wall clock.
func (c *localClock) setWall(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sets = append(c.sets, moment{time.Now(), by})
}

// suspend has the machine stand still for a while, unless it does. What has begun goes on, as
// what a device does: nothing of it reaches the store.
func (c *localClock) suspend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if n := len(c.sleeps); n == 0 || now.After(c.sleeps[n-1].at.Add(c.sleeps[n-1].by)) {
		c.sleeps = append(c.sleeps, moment{now, d})
	}
}

// rest returns how long the machine still stands still.
func (c *localClock) rest() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.sleeps); n > 0 {
		return time.Until(c.sleeps[n-1].at.Add(c.sleeps[n-1].by))
	}
	return 0
}

// slept reports whether the machine has stood still.
func (c *localClock) slept() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sleeps) > 0
}

// tolerance is by how much an engine may be wrong about the store's time: what two sound clocks
// drift apart between heartbeats that the store has not answered for long.
const tolerance = 100 * time.Millisecond

// askLease checks that a process may begin a body: no other one can have its runs by the store's
// clock, whatever its own says.
func (x *pass) askLease(what string) {
	s, l := x.sim, x.process.link
	l.mu.Lock()
	last := l.renewed
	l.mu.Unlock()
	if last == 0 || s.world.clocksDiffer() {
		return
	}
	if since := s.now().Sub(last); since > lease-lease/10+tolerance {
		s.fail("%s begins %s after the last beat of p%d that the store has taken", what, since, x.process.n)
	}
}

// firstAsked returns when, by the store's clock, the workflow came to a wait at first: it may not
// end before its length has passed since then.
func (x *pass) firstAsked(scope, path string) time.Time {
	l, now := x.sim.ledger, x.sim.now().Time()
	key := fmt.Sprintf("%s %d %s%s", x.run, x.gen, scope, path)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked == nil {
		l.asked = map[string]time.Time{}
	}
	if _, known := l.asked[key]; !known {
		l.asked[key] = now
	}
	return l.asked[key]
}

// askWait checks that a wait that has ended by itself was long enough, by the store's clock.
func (x *pass) askWait(path string, asked time.Time, least time.Duration) {
	w := &x.sim.world
	if w.clocksDiffer() || w.slow() || x.process.isDead() || strings.HasPrefix(x.run, "f-") {
		return // the time that a slow beat tells is old; a fork has copied what began before
	}
	if took := x.sim.now().Time().Sub(asked); took < least-tolerance {
		x.sim.fail("%s: the wait at %s ended after %s, by the store's clock, and not after %s", x.run, path, took, least)
	}
}

// pauses is how long a Retry waits after its n-th failure.
func pauses(n int) time.Duration { return min(time.Second<<(n-1), 4*time.Second) }

// askPause checks that an attempt does not begin before the pause after the failure before it
// is over, by the store's clock. The ledger's mutex is held.
func (l *ledger) askPause(b *bodyBook, a durable.AttemptInfo, n *Node, at string) {
	if b.failedAt == 0 || a.Number < 2 || n.Do != Retry && n.Do != Progress && n.Do != Nested && n.Do != Transact || l.sim.world.clocksDiffer() || l.sim.world.slow() {
		return
	}
	if waited := l.sim.now().Sub(b.failedAt); waited < pauses(a.Number-1)-tolerance {
		l.sim.fail("%s begins %s after the failure before it, and its pause is %s", at, waited, pauses(a.Number-1))
	}
}

// localClocks gives the processes of a world clocks that are wrong, and has them set, and
// machines suspended, while it goes on.
func (g *Generator) localClocks(w *World) {
	for range g.rng.IntN(3) + 1 {
		w.Clocks = append(w.Clocks, Clock{
			Ahead: pick(g, 0, 0, time.Second, -time.Second, 3*time.Minute, -3*time.Minute, 50*24*time.Hour, -50*24*time.Hour),
			Drift: pick(g, 0, 0, 50, -50, 400, -400),
		})
	}
	for range g.rng.IntN(3) {
		a := Act{Do: pick(g, SetWall, SetWall, Suspend), Run: g.rng.IntN(3), After: pick(g, 0, time.Second, 12*time.Second, 40*time.Second)}
		a.By = pick(g, time.Second, -time.Second, 20*time.Second, -20*time.Second, 3*time.Minute, -3*time.Minute, 2*time.Hour, -2*time.Hour)
		if a.Do == Suspend {
			a.By = pick(g, time.Second, 8*time.Second, 25*time.Second, 40*time.Second, 90*time.Second, 3*time.Minute)
		}
		if g.chance(60) {
			a.On, a.Nth = g.event("act "+string(a.Do)), pick(g, 1, 1, 2)
		}
		w.Acts = append(w.Acts, a)
	}
}

// literalClocks prints clocks as Go code.
func literalClocks(all []Clock) string {
	var parts []string
	for _, c := range all {
		parts = append(parts, fmt.Sprintf("{Ahead: %s, Drift: %d}", duration(c.Ahead), c.Drift))
	}
	return "[]sim.Clock{" + strings.Join(parts, ", ") + "}"
}
