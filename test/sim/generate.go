package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// A Generator makes worlds. What it makes of a seed depends on nothing else, unless it has
// a Coverage and a corpus to steer by.
type Generator struct {
	rng      *rand.Rand
	coverage *Coverage
	large    int // how many of a hundred programs are large ones
}

// Generate makes the world of a seed.
func Generate(seed uint64) World { return generator(seed, nil).world() }

func generator(seed uint64, c *Coverage) *Generator {
	return &Generator{rng: rand.New(rand.NewPCG(seed, 0x51a)), coverage: c}
}

func (g *Generator) chance(percent int) bool { return g.rng.IntN(100) < percent }

func pick[T any](g *Generator, of ...T) T { return of[g.rng.IntN(len(of))] }

// world makes a world.
func (g *Generator) world() World {
	if g.rng.IntN(300) == 0 {
		return World{Unload: pick(g, 0, time.Nanosecond, -1), Program: Program{{Do: Drain, Max: pick(g, 100, 400, 800)}, {Do: Step}}}
	}
	w := World{
		Engines: pick(g, 1, 1, 1, 2, 2, 3, 5), Runs: pick(g, 1, 1, 1, 2, 3),
		Unload: pick(g, 0, 0, time.Nanosecond, time.Minute, -1),
	}
	if g.chance(15) {
		w.Deadline = pick(g, 5*time.Second, 30*time.Second, 2*time.Minute)
	}
	w.Grace = pick(g, 0, 0, 0, 10*time.Second, 2*time.Minute)
	budget := g.rng.IntN(10) + 2
	w.Program = g.program(&budget, place{})
	if g.chance(12) {
		w.Program = append(g.pattern(), w.Program...)
	}
	if g.chance(g.large) {
		w.Program = append(w.Program, g.largeProgram()...)
	}
	if g.chance(8) && !w.Program.has(Undo) {
		w.Program = append(w.Program, Node{Do: Renew, Max: 2})
	}
	w.Faults = g.faults(pick(g, 0, 1, 1, 2, 2, 3, 4))
	w.Acts = g.acts(pick(g, 0, 0, 1, 1, 2, 3))
	w.Program.oneAsDerived()
	g.tighten(&w)
	if g.chance(6) {
		g.longKeys(&w)
	}
	if g.chance(7) {
		g.clocks(&w)
	}
	if g.chance(15) {
		g.localClocks(&w)
	}
	if g.chance(12) && w.Names == 0 { // the key of a marker may be too long, too, and Patched then panics
		g.release(&w)
	}
	if g.chance(15) {
		g.queue(&w)
	}
	if g.chance(10) {
		g.schedule(&w)
	}
	if g.chance(12) {
		g.begin(&w)
	}
	if g.chance(9) && w.Release != ByVersion { // whose starts of two versions are no one run
		g.stream(&w)
	}
	if g.chance(12) {
		g.approvals(&w)
	}
	if g.chance(40) {
		g.hurry(&w)
	}
	g.transactions(&w)
	return w
}

// largeProgram makes one of some hundred events, most errors of which are handled.
func (g *Generator) largeProgram() (p Program) {
	for budget := g.rng.IntN(100) + 50; budget > 0; {
		p = append(p, g.program(&budget, place{})...)
	}
	p.walk("", func(_ string, n *Node) {
		if n.Do != Undo && g.chance(97) {
			n.Handled = true
		}
	})
	return p
}

// longKeys begins the program with a Map at such a depth, and with names of such a length, that
// its key, or those of its items, are about as long as one may be.
func (g *Generator) longKeys(w *World) {
	depth := 6 + g.rng.IntN(4)
	p := Program{{Do: pick(g, Map, Map, MapSeq), Max: 1 + g.rng.IntN(3), Handled: g.chance(70), Body: Program{{Do: Step}}}, {Do: Step}}
	room := store.MaxKey - pick(g, 0, 0, 1, 2, 3, 13) - (depth - 1)
	for range depth - 1 {
		outer := Node{Do: pick(g, Go, Group, Map), Body: p}
		if outer.Do == Map {
			outer.Max = 1
			room -= len("[0]")
		} else if len(p) > 1 { // in one branch
			outer.Body = Program{{Do: Block, Body: p}}
		}
		p = Program{outer}
	}
	w.Program = append(p, w.Program...)
	w.Names = room / depth
}

// tighten has two things happen nearly at once that seldom do by chance.
func (g *Generator) tighten(w *World) {
	outage := Fault{On: pick(g, common...), Nth: pick(g, 1, 2), Do: pick(g, Cut, Restart, LostThenRefused), For: pick(g, 20*time.Second, 45*time.Second, 90*time.Second)}
	switch {
	case g.chance(4): // a pause while a run begins to wait, whose process then ends, or cannot write
		w.Program = append(Program{{Do: pick(g, Await, Answer, Sleep, Until), For: pick(g, 15*time.Second, 2*time.Minute), Max: 1}}, w.Program...)
		w.Faults = append(w.Faults,
			Fault{On: pick(g, "wait_requested", "timer_set", "child_started", "row"), Nth: 1, Do: pick(g, SlowBefore, SlowAfter, Stuck, LostAfter), For: pick(g, 1500*time.Millisecond, 5*time.Second, 20*time.Second)},
			Fault{On: pick(g, "workflow_paused", "workflow_paused", "row"), Nth: 1, Do: pick(g, KillBefore, Cut, Restart, LostThenRefused), For: 45 * time.Second})
		w.Acts = append(w.Acts, Act{On: AFault, Nth: 1, Do: PauseRun, After: pick(g, 0, time.Second)})
	case w.Deadline > 0 && g.chance(40): // a cancel at the deadline, which nobody can read
		w.Faults = append(w.Faults, outage)
		w.Acts = append(w.Acts, Act{Do: CancelRun, After: w.Deadline - pick(g, 0, time.Millisecond, time.Second, 3*time.Second)})
	case w.Deadline > 0 && g.chance(40): // and one after it, while a body goes on
		w.Program = append(Program{{Do: pick(g, Step, Long, Retry), Max: 1, For: w.Deadline + 20*time.Second, How: ByDeaf}}, w.Program...)
		w.Acts = append(w.Acts, Act{Do: CancelRun, After: w.Deadline + pick(g, time.Second, 10*time.Second)})
	case w.Program.choosesIDs() && g.chance(40): // a child's id is met again after a jump
		w.Acts = append(w.Acts, Act{On: pick(g, "child_started", "child_finished", "step_completed"), Nth: 1, Do: JumpBack, Back: pick(g, 0, 0, 0, 1, 2), After: pick(g, 0, time.Second)})
	case g.chance(4): // Close while a call stands still and others wait for it
		w.Program = append(Program{{Do: Go, Body: Program{{Do: Step}, {Do: Step, For: 100 * time.Millisecond}, {Do: Retry, Fails: 1, Max: 2}}}}, w.Program...)
		w.Faults = append(w.Faults, Fault{On: pick(g, common...), Nth: pick(g, 1, 2), Do: pick(g, Stuck, SlowBefore, SlowAfter), For: pick(g, 20*time.Second, 90*time.Second, 4*time.Minute)})
		w.Acts = append(w.Acts, Act{Do: CloseProcess, After: pick(g, 500*time.Millisecond, time.Second, 5*time.Second)})
	case g.chance(5): // Close while the store is down
		w.Faults = append(w.Faults, outage)
		w.Acts = append(w.Acts, Act{Do: CloseProcess, After: pick(g, 100*time.Millisecond, time.Second, 5*time.Second, 15*time.Second)})
	}
}

// pattern makes the beginning of a program that seldom comes by chance, and often breaks.
func (g *Generator) pattern() Program {
	last := Node{Do: pick(g, Fail, Fail, Panic, Step), For: 0}
	undone := Node{Do: Block, Body: Program{{Do: Undo}, {Do: pick(g, Step, Long, Retry), Max: 1}}}
	pause := Node{Do: pick(g, Step, Long), For: pick(g, 100*time.Millisecond, 5*time.Second, 20*time.Second)}
	switch g.rng.IntN(6) {
	case 4: // a child that goes on while its parent is changed
		child := Node{Do: Child, Max: 1, ID: pick(g, "", "*-kid", "*/kid", AsDerived), Body: Program{{Do: Sleep, For: pick(g, 5*time.Second, 15*time.Second)}, {Do: Step}}}
		return Program{{Do: Step}, child, last}
	case 0: // bodies that nothing of the store begins and ends
		var p Program
		for range g.rng.IntN(5) + 3 {
			p = append(p, Node{Do: Relaxed, For: pick(g, 5*time.Second, 20*time.Second)})
		}
		return p
	case 1: // something to undo in a scope that has ended
		return Program{{Do: pick(g, Go, Group), Body: Program{undone}}, pause, last}
	case 2:
		return Program{{Do: pick(g, Map, MapSeq), Max: 1 + g.rng.IntN(3), Body: Program{undone}}, pause, last}
	case 3: // a child that nobody waits for any more
		child := Node{Do: Child, Max: 1, ID: pick(g, "", "*-kid", "*/kid", AsDerived), Body: Program{{Do: Sleep, For: pick(g, time.Second, 3*time.Minute, 10*time.Minute)}, {Do: Step}}}
		return Program{{Do: First, Body: Program{child, pause}}, last}
	default: // a body that outlives a lease
		return Program{{Do: pick(g, Step, Long), For: pick(g, time.Minute, 2*time.Minute)}, {Do: Step}}
	}
}

// A place is where a node stands, which decides what it may be.
type place struct {
	depth int
	item  bool // in an item of a Map
}

func (p place) inner() place { return place{p.depth + 1, p.item} }

var (
	leaves = []Kind{Step, Step, Step, Relaxed, Long, Retry, Retry, Seek, Progress, Once, Settled, Transact, Transact, Sleep, Sleep, Until, Await, Answer, Approve, Draw, Publish, Tag, Sync, Undo, Undo, Look, Nested}
	trees  = []Kind{Go, Go, Group, First, Map, Map, MapSeq, Child, Child, Cleanup, Cleanup, Block}
	ends   = []Kind{Fail, Panic, Exit}
)

// program makes nodes until the budget is used up, or chance ends it.
func (g *Generator) program(budget *int, at place) (p Program) {
	for *budget > 0 && (len(p) == 0 || !g.chance(20)) {
		p = append(p, g.node(budget, at))
	}
	return p
}

func (g *Generator) node(budget *int, at place) Node {
	*budget--
	n := Node{Do: pick(g, leaves...)}
	if at.depth < 3 && *budget > 0 && g.chance(40) {
		n.Do = pick(g, trees...)
	} else if g.chance(4) {
		n.Do = pick(g, ends...)
	}
	if (n.Do == Await || n.Do == Answer) && at.item {
		n.Do = Step
	}
	n.Handled = g.chance(25)
	switch n.Do {
	case Step, Relaxed, Long, Once, Draw:
		n.For = pick(g, 0, 0, 100*time.Millisecond, time.Second, 5*time.Second, 20*time.Second, 40*time.Second)
		if g.chance(15) {
			n.Fails, n.How = 1, pick(g, "", "", "", ByPanic, ByExit, ByType)
		} else if n.For > 0 && g.chance(10) {
			n.How = ByDeaf
		}
	case Nested:
		n.Max = 3
	case Settled:
		n.For = pick(g, 0, time.Second, 5*time.Second, 20*time.Second, 40*time.Second)
	case Seek:
		n.Max = g.rng.IntN(4) + 1
		n.Fails = g.rng.IntN(n.Max + 1)
		n.For = pick(g, 0, 0, 100*time.Millisecond, 5*time.Second)
	case Retry, Progress:
		n.Max = g.rng.IntN(4) + 1
		n.Fails = g.rng.IntN(n.Max + 1)
		n.For = pick(g, 0, 0, 100*time.Millisecond, 5*time.Second)
		n.How = pick(g, "", "", "", "", ByBlock, ByType)
	case Transact:
		n.Max = g.rng.IntN(4) + 1
		n.Fails = pick(g, 0, 0, g.rng.IntN(n.Max+1))
		n.For = pick(g, 0, 0, 0, 100*time.Millisecond, time.Second, 5*time.Second, 40*time.Second)
		n.How = pick(g, "", "", "", "", ByTell, ByBlock, ByType, ByPanic, ByExit, ByDeaf)
		if n.How == ByTell {
			n.For = min(n.For, time.Second)
		}
		if *budget > 0 && g.chance(25) {
			n.Body = g.program(budget, place{depth: at.depth + 1})
		}
	case Sleep, Until:
		n.For = pick(g, 0, time.Second, 15*time.Second, 70*time.Second, 3*time.Minute)
	case Await, Approve:
		n.For = pick(g, 0, time.Second, 15*time.Second, 2*time.Minute)
	case Answer:
		n.For = pick(g, 0, time.Second, 15*time.Second, 2*time.Minute)
		n.Fails, n.Max = pick(g, 0, 0, 1), pick(g, 1, 1, 2)
	case Undo:
		n.Handled, n.Fails = false, pick(g, 0, 0, 0, 1, 9)
		n.For = pick(g, 0, 0, time.Second)
		n.How = pick(g, "", "", ByPanic, ByExit)
	case Go, Group, First:
		for range g.rng.IntN(3) + 1 {
			n.Body = append(n.Body, g.node(budget, at.inner()))
		}
		if n.Do != Group && g.chance(20) {
			n.Then = g.program(budget, at.inner())
		}
	case Map, MapSeq:
		n.Max = g.rng.IntN(4) + 1
		n.Body = g.program(budget, place{at.depth + 1, true})
		if n.Do == MapSeq && g.chance(15) {
			n.Fails, n.How = 1+g.rng.IntN(2), pick(g, ByPanic, ByExit)
		}
	case Child:
		n.Max = pick(g, 1, 1, 2)
		if g.chance(12) {
			n.How = ByLeave
		}
		if !at.item {
			n.ID = pick(g, "", "", "*-kid", "*/kid", AsDerived, BadID)
		}
		n.Body = g.program(budget, place{depth: at.depth + 1})
	case Cleanup:
		n.Body = g.program(budget, at.inner())
		n.Then = g.program(budget, at.inner())
	case Block:
		n.Body = g.program(budget, at.inner())
	}
	return n
}

// calls are what faults can meet besides writes of events.
var calls = []string{"claim", "beat", "load", "list", "executors", "row", aBegin, "queue", "schedule", "schedules"}

// common are events that nearly every world has; more are learnt.
var common = []string{"workflow_created", "step_completed", "workflow_completed", "attempt_failed", "timer_set", "wait_requested", "child_started", "item_completed", "step_started"}

// event chooses what a disturbance meets: one that was seldom seen with it, if coverage
// knows.
func (g *Generator) event(disturbance string) string {
	if g.coverage != nil && g.chance(60) {
		if rare := g.coverage.rare(disturbance, g.rng.IntN); rare != "" {
			return rare
		}
	}
	return pick(g, common...)
}

func (g *Generator) faults(n int) (all []Fault) {
	for range n {
		f := Fault{Do: pick(g, harms()...), Nth: pick(g, 1, 1, 1, 2, 2, 3, 4, 6)}
		f.On = g.event(string(f.Do))
		if g.chance(20) {
			f.On = pick(g, calls...)
		}
		if f.Do.lasts() {
			f.For = pick(g, 1500*time.Millisecond, 5*time.Second, 20*time.Second, 28*time.Second, 45*time.Second, 90*time.Second)
		}
		all = append(all, f)
	}
	return all
}

// deed chooses what an act does: what stops runs and processes more often than the rest.
func (g *Generator) deed() Deed {
	if g.chance(50) {
		return pick(g, CancelRun, CancelRun, KillProcess, PauseRun)
	}
	return pick(g, deeds()...)
}

func (g *Generator) acts(n int) (all []Act) {
	for range n {
		a := Act{Do: g.deed(), Run: g.rng.IntN(2), After: pick(g, 0, 50*time.Millisecond, 500*time.Millisecond, 3*time.Second, 12*time.Second, 40*time.Second)}
		if g.chance(70) {
			a.On, a.Nth = g.event("act "+string(a.Do)), pick(g, 1, 1, 2, 3)
		} else if g.chance(40) {
			a.On, a.Nth = AFault, pick(g, 1, 1, 1, 2)
		}
		if a.Do == JumpBack || a.Do == EditStep {
			a.Back = pick(g, 0, 0, 0, 1, 2, 4)
		}
		all = append(all, a)
	}
	return all
}

// mutate makes a world of one that has shown something new.
func (g *Generator) mutate(w World) World {
	switch g.rng.IntN(5) {
	case 0:
		w.Faults = g.faults(1 + g.rng.IntN(3))
	case 1:
		w.Acts = g.acts(1 + g.rng.IntN(2))
	case 2:
		w.Faults = append(slices.Clone(w.Faults), g.faults(1)...)
	case 3:
		w.Acts = append(slices.Clone(w.Acts), g.acts(1)...)
	default:
		budget := 3
		if p := slices.Insert(slices.Clone(w.Program), 0, g.node(&budget, place{})); !p.has(Renew) || !p.has(Undo) {
			p.oneAsDerived()
			w.Program = p // a run with compensations must not continue with a new input
		}
	}
	if w.Program.has(Transact) && g.chance(30) {
		w.Faults = append(slices.Clip(w.Faults), g.ofTransaction())
	}
	return w
}

// A Hunt plays worlds, one seed after the other, steered by what was not yet seen.
type Hunt struct {
	Coverage *Coverage
	Worlds   int
	Events   int
	Acts     int
	Fired    map[Harm]int
	Failures int
	Large    int // how many of a hundred programs are large ones
	corpus   []World
}

// NewHunt returns one that has seen nothing.
func NewHunt() *Hunt { return &Hunt{Coverage: NewCoverage(), Fired: map[Harm]int{}} }

// corpusSize bounds how many worlds are kept to be mutated.
const corpusSize = 500

// Next makes the world of a seed: a new one, or one made of a world of the corpus.
func (h *Hunt) Next(seed uint64) World {
	g := generator(seed, h.Coverage)
	g.large = h.Large
	if len(h.corpus) > 20 && g.chance(50) {
		return g.mutate(h.corpus[g.rng.IntN(len(h.corpus))])
	}
	return g.world()
}

// Took takes in what a world has shown.
func (h *Hunt) Took(w World, r Result) {
	h.Worlds++
	h.Events += r.Events
	h.Acts += r.Acts
	if r.Failure != "" {
		h.Failures++
	}
	for harm, n := range r.Fired {
		h.Fired[harm] += n
	}
	if h.Coverage.Add(r.Seen) {
		if len(h.corpus) >= corpusSize {
			h.corpus = h.corpus[1:]
		}
		h.corpus = append(h.corpus, w)
	}
}

// Proof is what docs/proof.md says of the worlds.
func (h *Hunt) Proof() string {
	faults := 0
	for _, n := range h.Fired {
		faults += n
	}
	return fmt.Sprintf("worlds=%d events=%d acts=%d faults=%d failures=%d", h.Worlds, h.Events, h.Acts, faults, h.Failures)
}

// String prints the totals.
func (h *Hunt) String() string {
	pairs, triples := len(h.Coverage.pairs), len(h.Coverage.Triples)
	text := fmt.Sprintf("%d worlds, %d durable events, %d acts, %d pairs of event and disturbance, %d triples with the next event\nfaults:", h.Worlds, h.Events, h.Acts, pairs, triples)
	for _, harm := range slices.Sorted(maps.Keys(h.Fired)) {
		text += fmt.Sprintf(" %s %d,", harm, h.Fired[harm])
	}
	return text[:len(text)-1]
}
