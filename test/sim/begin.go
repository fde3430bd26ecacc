package sim

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A Beginning is how the root runs of a world are started.
type Beginning struct {
	Bulk bool // by one StartAll
	Key  bool // each holds one exclusive key until it ends
	Mail bool // with a signal to the first wait of the program
}

// theKey is what only one root run of a world with a Key may work on at a time.
const theKey = "the key"

// options are those of the start of each root run.
func (s *sim) options(id string) []durable.StartOption {
	w := &s.world
	o := w.Queue.options(s.spot(id))
	if w.Deadline > 0 {
		o = append(o, durable.Deadline(w.Deadline))
	}
	if w.Begin.Key {
		o = append(o, durable.Exclusive(theKey))
	}
	if name := w.mailed(); name != "" {
		o = append(o, durable.WithSignal(name, signalled, durable.SignalID("with the start")))
	}
	return o
}

// mailed is the name of the signal with which root runs are started; empty: there is none.
func (w *World) mailed() string {
	if all := w.Program.signals(); w.Begin.Mail && len(all) > 0 {
		return all[0]
	}
	return ""
}

// startBulk starts all root runs at once, and again until each of them is started.
func (s *sim) startBulk() {
	left := s.roots()
	for try := 0; try < 60 && len(left) > 0 && !s.isEnding(); try++ {
		p := s.live(0)
		if p == nil || p.engine() == nil {
			time.Sleep(time.Second)
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		done, err := s.ref().StartAll(durable.NewContext(ctx, p.engine()), pairs(left), s.options("")...)
		cancel()
		s.note("StartAll: %d, %d, refused %v, %v", done.Started, done.Existing, done.Refused, err)
		if n := s.present(); n < done.Started+done.Existing && !s.hasAct(CleanUp) {
			s.fail("StartAll has started %d runs, and %d were there before; there are %d", done.Started, done.Existing, n)
		}
		refused := map[string]error{}
		for _, r := range done.Refused {
			refused[r.ID] = r.Err
		}
		if got := done.Started + done.Existing + len(done.Refused); err == nil && got != len(left) || got > len(left) {
			s.fail("StartAll of %d runs says %d, and %v", len(left), got, err)
		}
		var again []string
		for i, id := range left {
			why := refused[id]
			switch {
			case why == nil && err == nil, isThere(why):
				s.begun(i, id)
			case why == nil || s.mayBeRefused(id, why):
				again = append(again, id)
			default:
				s.fail("StartAll refuses %s: %v", id, why)
			}
		}
		if left = again; len(left) > 0 {
			time.Sleep(5 * time.Second)
		}
	}
}

// begun notes that the start of a root run was acknowledged.
func (s *sim) begun(i int, id string) {
	s.ledger.started(id)
	s.clients.Go(func() { s.waitFor(i, id) })
	if s.world.Program.has(Publish) {
		s.follow(i, id)
	}
}

// isThere reports whether a start with a signal was refused because the run, which it has started
// before, has ended.
func isThere(err error) bool {
	var over *durable.NotRunningError
	return errors.As(err, &over)
}

// mayBeRefused reports whether a start was refused for a while, by a run that may do so.
func (s *sim) mayBeRefused(id string, err error) bool {
	var occupied *store.OccupiedError
	if errors.As(err, &occupied) {
		if !s.world.Begin.Key || occupied.Key != theKey || occupied.Holder == id {
			s.fail("Start of %s is refused for a key of %s: %v", id, occupied.Holder, err)
		}
		return true
	}
	return s.heldByAnother(id, err)
}

// pairs are what StartAll takes.
func pairs(ids []string) iter.Seq2[string, Input] {
	return func(yield func(string, Input) bool) {
		for _, id := range ids {
			if !yield(id, Input{}) {
				return
			}
		}
	}
}

// present returns how many root runs there are.
func (s *sim) present() (n int) {
	for _, id := range s.roots() {
		if _, err := s.data.Load(context.Background(), id, store.Cursor{NoEvents: true}); err == nil {
			n++
		}
	}
	return n
}

// askKey checks that one root run at most holds the key.
func (s *sim) askKey() {
	if !s.world.Begin.Key {
		return
	}
	holder := ""
	for _, id := range s.roots() {
		h, err := s.data.Load(context.Background(), id, store.Cursor{NoEvents: true})
		if err != nil || h.Run.Status.Terminal() {
			continue
		}
		if holder != "" {
			s.fail("%s and %s hold one key, and neither has ended", holder, id)
		}
		holder = id
	}
}

// gotMail notes that a run has taken the signal that came with its start, and checks that a wait
// for it has not timed out before.
func (x *pass) gotMail(path, v string) {
	l := x.sim.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.run(x.run)
	if path != x.sim.world.mailed() {
		return
	}
	if v == "timeout" && t.started && !t.mailed && !t.meddled {
		x.sim.fail("%s: the wait at %s has timed out, and its signal came with the start", x.run, path)
	}
	t.mailed = true // even if the start is not acknowledged yet
}

// begin chooses how root runs are started.
func (g *Generator) begin(w *World) {
	w.Begin = Beginning{Bulk: g.chance(50), Key: g.chance(40), Mail: g.chance(40)}
	if w.Begin.Bulk && w.Queue == nil && g.chance(70) {
		w.Runs = pick(g, 2, 3, 5, 20)
	}
	if w.Begin.Mail {
		w.Program = append(Program{{Do: Await, For: pick(g, 0, time.Second, 15*time.Second)}}, w.Program...)
		if g.chance(40) && !w.Program.has(Undo) && !w.Program.has(Renew) && w.Release == Unchanged { // it is taken by a later generation
			w.Program = append(Program{{Do: pick(g, Step, Sleep, Relaxed)}, {Do: Renew, Max: 2}}, w.Program...)
		}
	}
	w.Program.oneAsDerived()
}
