package sim

import (
	"runtime"
	"time"
)

// What happens at one moment of virtual time happens, on one P, in nearly one order: a goroutine
// goes on until it waits, and a store in memory lets nobody wait. Two things let a world decide
// about the order, and not the scheduler:
//
//   - Pace: each call to the store takes a while, before and after it is carried out, so that
//     calls overlap.
//   - Yield: whoever looks at a clock of its process, or calls the store, may make way for the
//     others that are ready. What stands between a check and what relies on it is met so.

// draw returns the n-th of the numbers that a seed stands for.
func draw(seed, n uint64) uint64 {
	x := seed + n*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// pace returns how long the next call to the store takes, before it is carried out and after.
func (s *sim) pace() (before, after time.Duration) {
	if s.world.Pace == 0 {
		return 0, 0
	}
	x := draw(s.world.Pace, s.paced.Add(1))
	return latency(x), latency(x >> 32)
}

// latency makes a time of 20 bits: often none, seldom more than a few milliseconds.
func latency(x uint64) time.Duration {
	of := time.Duration(x>>4&0xffff) * time.Microsecond // up to 65 milliseconds
	switch x & 15 {
	case 0, 1, 2, 3, 4, 5:
		return 0
	case 6, 7, 8, 9:
		return of >> 8
	case 10, 11, 12, 13, 14:
		return of >> 3
	}
	return of
}

// yield makes way for other goroutines, if the world wants that now.
func (s *sim) yield() {
	if s.world.Yield == 0 {
		return
	}
	x := draw(s.world.Yield, s.yielded.Add(1))
	if x&3 != 0 {
		return
	}
	for range x>>2&15 + 1 { // a message is passed on by a few goroutines
		runtime.Gosched()
	}
}

// paced carries out a call at the pace of the world.
func (l *link) paced(forward func() error) error {
	before, after := l.process.sim.pace()
	if before > 0 {
		time.Sleep(before)
		if err := l.down(); err != nil {
			return err
		}
	}
	err := forward()
	if after > 0 {
		time.Sleep(after)
	}
	return err
}

// hurry has calls overlap, an operator act, and a process end, while something has begun.
func (g *Generator) hurry(w *World) {
	w.Pace, w.Yield = pick(g, 0, g.rng.Uint64()|1), pick(g, 0, g.rng.Uint64()|1, g.rng.Uint64()|1)
	if !g.chance(60) {
		return
	}
	soon := func() time.Duration {
		if w.Pace == 0 {
			return 0
		}
		return pick(g, 0, time.Millisecond, 2*time.Millisecond, 4*time.Millisecond, 8*time.Millisecond, 16*time.Millisecond, 50*time.Millisecond)
	}
	on, nth := g.event("hurry"), pick(g, 1, 1, 2, 3)
	for range g.rng.IntN(2) + 1 {
		w.Acts = append(w.Acts, Act{On: on, Nth: nth, After: soon(), Do: pick(g, PauseRun, PauseRun, CancelRun, SendSignals, UnpauseRun, g.deed())})
	}
	switch {
	case g.chance(20):
		w.Acts = append(w.Acts, Act{On: on, Nth: nth, After: soon(), Do: pick(g, KillProcess, KillProcess, CloseProcess)})
	case g.chance(80): // at one of the calls that come then
		w.Faults = append(w.Faults, Fault{On: AfterAct, Nth: 1 + g.rng.IntN(10), Do: pick(g, KillAfter, KillAfter, KillBefore)})
	}
	if g.chance(40) && w.Release == Unchanged {
		w.Program = append(Program{{Do: pick(g, Step, Relaxed, Tag)}, {Do: pick(g, Await, Answer, Sleep, Child), For: pick(g, 0, 0, 3*time.Minute), Max: 1}}, w.Program...)
		w.Program.oneAsDerived()
	}
}
