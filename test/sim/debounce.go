package sim

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A Debounce is starts of the program, beside the roots of a world, that become one run where they
// come close together.
type Debounce struct {
	Wait, Most time.Duration
	Starts     []time.Duration // when each comes, since the world began
}

// CancelStart cancels the run that waits for more debounced starts.
const CancelStart Deed = "cancel start"

// theStream is the key of these starts.
const theStream = "stream"

// A bounced run is one that starts have become part of.
type bounced struct {
	inputs  []int // the numbers of the starts, in the order of the store
	created store.Time
	last    store.Time // when the last of them was tried; once it is recorded, it may be tried again
	begun   bool
}

// bounceBook is what is known of debounced starts outside of the store.
type bounceBook struct {
	mu      sync.Mutex
	runs    map[string]*bounced
	waiting string             // the run that has not begun; empty: none
	called  map[int]store.Time // when a start was last tried
	told    map[int]string     // the run that a start that was acknowledged is part of
}

func newBounceBook() *bounceBook {
	return &bounceBook{runs: map[string]*bounced{}, called: map[int]store.Time{}, told: map[int]string{}}
}

// debounce makes the starts, each through a process of its own, until it is acknowledged.
func (s *sim) debounce() {
	d := s.world.Debounce
	if d == nil {
		return
	}
	for i, at := range d.Starts {
		s.background(func() {
			time.Sleep(at)
			for try := i; try < i+60 && !s.isEnding(); try++ {
				if p := s.live(try); p != nil && s.startBounced(p, i+1) {
					return
				}
				time.Sleep(time.Second)
			}
		})
	}
}

// startBounced makes a start, and reports whether it was acknowledged.
func (s *sim) startBounced(p *process, n int) bool {
	eng, d, b := p.engine(), s.world.Debounce, s.bounces
	if eng == nil {
		return false
	}
	b.mu.Lock()
	b.called[n] = s.now()
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	h, err := s.ref().Start(durable.NewContext(ctx, eng), durable.AutoID, Input{Start: n}, durable.Debounce(theStream, d.Wait, d.Most))
	s.note("start %d through p%d: %v", n, p.n, err)
	if err != nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[h.ID()]
	if r == nil || !slices.Contains(r.inputs, n) {
		s.fail("start %d was acknowledged as part of %s, whose events do not know of it", n, h.ID())
	}
	b.told[n] = h.ID()
	return true
}

var numberOfStart = regexp.MustCompile(`"start":(\d+)`)

// recorded follows the runs that starts become part of by their events.
func (b *bounceBook) recorded(s *sim, run string, e *store.Event) {
	if s.world.Debounce == nil {
		return
	}
	n := 0
	if found := numberOfStart.FindSubmatch(e.Payload); found != nil {
		n, _ = strconv.Atoi(string(found[1]))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[run]
	switch e.Type {
	case store.WorkflowCreated:
		if n == 0 || strings.HasPrefix(run, "f-") {
			return
		}
		if b.waiting != "" && !s.cancelAsked(b.waiting) {
			s.fail("start %d makes %s, and %s has not begun", n, run, b.waiting)
		}
		b.runs[run] = &bounced{inputs: []int{n}, created: e.At, last: b.called[n]}
		b.waiting = run
	case store.InputReplaced:
		switch {
		case r == nil || n == 0:
			s.fail("the input of %s is replaced: %s", run, e.Payload)
		case r.begun:
			s.fail("start %d becomes part of %s, which has begun", n, run)
		case s.cancelAsked(run):
			s.fail("start %d becomes part of %s, which is to be cancelled", n, run)
		default:
			r.inputs, r.last = append(r.inputs, n), b.called[n]
		}
	case store.WorkflowStarted:
		if r == nil || r.begun {
			return
		}
		r.begun = true
		if b.waiting == run {
			b.waiting = ""
		}
		if !s.cancelAsked(run) { // then it begins in order to end
			b.askMoment(s, run, r, e.At)
		}
	case store.WorkflowCancelled:
		if r != nil {
			r.begun = true // it never will
		}
		if b.waiting == run {
			b.waiting = ""
		}
	}
}

// cancelAsked reports whether the cancel of a run is recorded.
func (s *sim) cancelAsked(run string) bool {
	h, err := s.data.Load(context.Background(), run, store.Cursor{NoEvents: true})
	return err == nil && h.Run.CancelAsked
}

// cancelStart cancels the run that waits for more starts.
func (s *sim) cancelStart(ctx context.Context, eng *durable.Engine) error {
	s.bounces.mu.Lock()
	id := s.bounces.waiting
	s.bounces.mu.Unlock()
	if id == "" {
		return nil
	}
	s.ledger.cancels(id, false)
	err := eng.Cancel(ctx, id, reasonOfCancel)
	s.ledger.cancels(id, err == nil)
	return err
}

// askMoment checks that a run begins when it is to begin. The mutex is held.
func (b *bounceBook) askMoment(s *sim, run string, r *bounced, at store.Time) {
	d := s.world.Debounce
	if s.world.clocksDiffer() || s.world.slow() {
		return // the time that a slow beat tells is old
	}
	latest := r.created.Add(d.Most)
	due := min(r.last.Add(d.Wait), latest)
	if at < due.Add(-tolerance) {
		s.fail("%s begins %s too early: the last start of it came %s ago", run, due.Sub(at), at.Sub(r.last))
	}
	if quiet := len(s.world.Faults)+len(s.world.Acts) == 0 && s.world.Pace == 0; quiet && at > due.Add(3*time.Second) {
		s.fail("%s begins %s too late", run, at.Sub(due))
	}
}

// executes checks that a run is executed with the input of the last start of it.
func (b *bounceBook) executes(s *sim, run string, in Input) {
	if in.Path != "" || in.Gen > 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[run]
	if r == nil {
		if in.Start != 0 {
			s.fail("%s is executed with the input of start %d, which is not part of it", run, in.Start)
		}
		return
	}
	if last := r.inputs[len(r.inputs)-1]; in.Start != last {
		s.fail("%s is executed with the input of start %d, and the last start of it is %d", run, in.Start, last)
	}
}

// judgeDebounce checks that each start that was acknowledged has its run.
func (s *sim) judgeDebounce(known map[string]bool) {
	s.bounces.mu.Lock()
	defer s.bounces.mu.Unlock()
	for n, id := range s.bounces.told {
		if !known[id] && !s.hasAct(CleanUp) {
			s.fail("start %d was acknowledged as part of %s, which is not there", n, id)
		}
	}
	for id, r := range s.bounces.runs {
		if !r.begun && !s.failed() {
			s.fail("%s has never begun", id)
		}
	}
}

// streamed reports whether all debounced starts have come.
func (s *sim) streamed() bool {
	d := s.world.Debounce
	return d == nil || len(d.Starts) == 0 || time.Since(s.began) > slices.Max(d.Starts)+d.Most+time.Second
}

// literal prints the starts as Go code.
func (d *Debounce) literal() string {
	var at []string
	for _, t := range d.Starts {
		at = append(at, duration(t))
	}
	return fmt.Sprintf("&sim.Debounce{Wait: %s, Most: %s, Starts: []time.Duration{%s}}", duration(d.Wait), duration(d.Most), strings.Join(at, ", "))
}

// lessDebounced lists worlds with fewer debounced starts.
func lessDebounced(w World) (all []World) {
	if w.Debounce == nil {
		return nil
	}
	v := w
	v.Debounce = nil
	all = append(all, v)
	for i := range w.Debounce.Starts {
		d := *w.Debounce
		d.Starts = slices.Delete(slices.Clone(d.Starts), i, i+1)
		v.Debounce = &d
		all = append(all, v)
	}
	return all
}

// stream adds debounced starts to a world, many of which come when a run begins.
func (g *Generator) stream(w *World) {
	d := &Debounce{Wait: pick(g, 50*time.Millisecond, time.Second, 5*time.Second, 20*time.Second)}
	d.Most = d.Wait * time.Duration(pick(g, 1, 2, 3, 10))
	at := pick(g, 0, 0, time.Second)
	for range g.rng.IntN(8) + 2 {
		d.Starts = append(d.Starts, at)
		at += pick(g, 0, 0, time.Millisecond, d.Wait/2, d.Wait-time.Millisecond, d.Wait, d.Wait, d.Wait+time.Millisecond, 2*d.Wait)
	}
	w.Debounce = d
	for range g.rng.IntN(3) {
		f := Fault{On: pick(g, "input_replaced", "input_replaced", "workflow_created", "claim", "load"), Nth: pick(g, 1, 1, 2, 3, 4), Do: pick(g, harms()...)}
		if f.Do.lasts() {
			f.For = pick(g, 1500*time.Millisecond, 5*time.Second, 20*time.Second, 45*time.Second, 90*time.Second)
		}
		w.Faults = append(w.Faults, f)
	}
	switch {
	case g.chance(20): // a cancel that is not carried out before the next start comes
		w.Engines = max(w.Engines, 2)
		w.Acts = append(w.Acts, Act{Do: CancelStart, Run: 1, After: pick(g, d.Starts...) + pick(g, 0, time.Millisecond)})
		w.Faults = append(w.Faults, Fault{On: AfterAct, Nth: 1 + g.rng.IntN(4), Do: pick(g, KillAfter, KillBefore, LostAfter, Cut, SlowBefore), For: 20 * time.Second})
	case g.chance(40):
		w.Acts = append(w.Acts, Act{On: pick(g, "input_replaced", "workflow_created", AFault), Nth: pick(g, 1, 2, 3), Do: pick(g, KillProcess, CloseProcess, CancelStart, CancelStart), After: pick(g, 0, 0, d.Wait/2, d.Wait)})
	}
}
