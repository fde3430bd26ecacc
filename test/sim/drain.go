package sim

import (
	"context"
	"fmt"
	"runtime/metrics"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// fed is how long a run sleeps until its signals are there.
const fed = time.Minute

// drain takes the signals of its node, all of which were there before.
func (x *pass) drain(ctx context.Context, path string, n *Node) error {
	x.sim.feed(x.run, path, n.Max)
	if err := durable.Sleep(ctx, fed); err != nil {
		return err
	}
	began := allocated()
	var first, last uint64 // what the first quarter took, and where the last one began
	for i := range n.Max {
		switch i {
		case n.Max / 4:
			first = allocated() - began
		case n.Max - n.Max/4:
			last = allocated()
		}
		if _, err := durable.Await[string](ctx, path); err != nil {
			return err
		}
	}
	if n.Max >= 100 { // of few, what it costs to begin counts more
		x.sim.askWork(x.run, path, first, allocated()-last)
	}
	return nil
}

// feed sends a run the signals of a node of it, once.
func (s *sim) feed(run, path string, n int) {
	s.mu.Lock()
	was := s.fedTo[run+path]
	s.fedTo[run+path] = true
	s.mu.Unlock()
	if was {
		return
	}
	s.background(func() {
		for i := 0; i < n && !s.isEnding(); {
			p := s.live(0)
			if p == nil {
				time.Sleep(time.Second)
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			err := durable.Signal(durable.NewContext(ctx, p.engine()), run, path, signalled, durable.SignalID(fmt.Sprint("fed ", i)))
			cancel()
			switch {
			case err == nil:
				i++
			case s.ended(run):
				return
			default:
				time.Sleep(time.Second)
			}
		}
	})
}

// ended reports whether a run has ended, or is not there.
func (s *sim) ended(run string) bool {
	for _, row := range s.rows() {
		if row.ID == run {
			return row.Status.Terminal()
		}
	}
	return true
}

// allocated returns how many bytes the process has allocated so far: a measure of the work it
// has done that does not depend on how busy the machine is.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// askWork checks that the first signals of many, when all the others waited, took no more work
// than the last ones. In a world that is disturbed other work comes in between.
func (s *sim) askWork(run, path string, first, last uint64) {
	s.note("the first quarter of the signals at %s took %d bytes, the last %d", path, first, last)
	quiet := len(s.world.Faults)+len(s.world.Acts) == 0 && s.world.Engines < 2 && s.world.Runs < 2 && s.world.Schedule == nil
	if quiet && first > 3*last+1<<20 {
		s.fail("%s: the first quarter of the signals at %s took %d times the work of the last one", run, path, first/max(last, 1))
	}
}
