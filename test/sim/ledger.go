package sim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A ledger is kept outside of the store: what bodies did, what calls returned, what
// operators were told.
type ledger struct {
	sim *sim

	mu        sync.Mutex
	runs      map[string]*told
	bodies    map[string]*bodyBook // by run, generation, lineage and key
	canon     map[string][]sight   // by run, generation, lineage and scope
	effects   map[string]bool      // of Settled bodies, by idempotency key
	asked     map[string]time.Time // when a wait began at first, by the store's clock
	disturbed int                  // ends of processes and of leases
}

// bodyBook is what is known of the bodies of one step.
type bodyBook struct {
	begun    map[int]int // by attempt
	under    map[*process]int
	failed   int         // the last attempt whose failure is recorded
	failedAt store.Time  // when that was, by its event
	done     bool        // its outcome is recorded
	unknown  bool        // an earlier history may have something of it
	running  map[int]int // attempts whose bodies are under way
	saved    []int       // progress that may be there, the last certain one first
}

// A sight is what a workflow saw of one call.
type sight struct {
	path, text string
	fixed      bool // it is recorded
}

func newLedger(s *sim) *ledger {
	return &ledger{sim: s, runs: map[string]*told{}, bodies: map[string]*bodyBook{}, canon: map[string][]sight{}, effects: map[string]bool{}}
}

// A pass is one execution of a workflow function.
type pass struct {
	sim     *sim
	process *process
	run     string
	gen     int
	lineage int
	version string // of the workflow

	mu     sync.Mutex
	places map[string]int  // calls made, by scope
	undos  []string        // what it has registered to be undone
	gone   map[string]bool // scopes whose execution has ended
}

func (l *ledger) pass(p *process, run string, gen int, version string) *pass {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.run(run)
	t.gen = max(t.gen, gen) // a fork begins in the generation that it has copied
	x := &pass{sim: l.sim, process: p, run: run, gen: gen, version: version, lineage: t.lineage, places: map[string]int{}, gone: map[string]bool{}}
	t.pinned(x)
	t.stepFailed = false // of the function as another process had executed it; this one may not return
	return x
}

// saw keeps what the workflow saw of a call, and compares it with what it saw of the
// same call before.
func (x *pass) saw(scope, path string, n *Node, v string, err error) {
	if x.process.isDead() {
		return
	}
	class := classify(err)
	x.expects(path, n, class, v, err)
	x.mu.Lock()
	defer x.mu.Unlock()
	if class == "gone" {
		x.gone[scope] = true
	}
	if n.Do == Undo && err == nil {
		x.undos = append(x.undos, scope+path)
	}
	// Nothing records the last two, so code that does not fit the history comes past them, too.
	if x.gone[scope] || x.lineage%2 == 1 || n.Do == Undo || n.Do == Sync {
		return
	}
	if isStop(class) && x.sim.ownerOf(x.run) != x.process.id() {
		return // another process has had the run, and this one has heard of its cancel first
	}
	l := x.sim.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run(x.run).lineage != x.lineage {
		return
	}
	i := x.places[scope]
	x.places[scope]++
	key := fmt.Sprintf("%s %d %d %s", x.run, x.gen, x.lineage, scope)
	seen := l.canon[key]
	now := sight{path: path, text: v, fixed: !isStop(class) && !n.rides()}
	if err != nil {
		now.text = "error: " + err.Error()
	}
	switch {
	case i < len(seen) && seen[i].fixed:
		if seen[i].path != path || seen[i].text != now.text {
			x.sim.fail("%s: call %d of scope %q was seen as %s %q, and is now %s %q", x.run, i, scope, seen[i].path, seen[i].text, path, now.text)
		}
	case i <= len(seen):
		if now.fixed {
			for _, place := range x.undos {
				if in, ok := strings.CutPrefix(place, scope); ok && !strings.Contains(in, "]/") {
					l.run(x.run).firm = append(l.run(x.run).firm, place)
				}
			}
		}
		seen = append(seen[:i:i], now)
		for j := range seen {
			// A Checkpoint records what rides, and leaves no trace of its own.
			firm := now.fixed || n.Do == Sync && err == nil && x.sim.world.Program.node(seen[j].path).rides()
			seen[j].fixed = seen[j].fixed || firm && !strings.HasPrefix(seen[j].text, "error: ")
		}
		l.canon[key] = seen
	}
}

// expects checks a result against what the program says.
func (x *pass) expects(path string, n *Node, class, v string, err error) {
	f := n.fate(x.sim.shakes(x.run))
	switch class {
	case "":
		if !f.succeeds && !(x.sim.mayStop(x.run) && (n.Body.handles() || n.Then.handles())) {
			x.sim.fail("%s: %s at %s succeeded with %q, and cannot", x.run, n.Do, path, v)
		}
		if n.isBody() && v != path {
			x.sim.fail("%s: %s at %s returned %q", x.run, n.Do, path, v)
		}
		if n.Do == Answer && v == "timeout" && n.For == 0 {
			x.sim.fail("%s: the wait at %s has ended, and has no time-out", x.run, path)
		}
		if n.Do == Await && v != signalled && (v != "timeout" || n.For == 0) {
			x.sim.fail("%s: the wait at %s returned %q", x.run, path, v)
		}
	case "gone":
	case "cancelled":
		x.sim.ledger.mu.Lock()
		t := x.sim.ledger.run(x.run)
		tried := t.cancelTried || t.meddled // a run that is continued finds the children that its first end has cancelled
		x.sim.ledger.mu.Unlock()
		if !tried && !strings.ContainsAny(x.run, "/-") && !x.sim.hasAct(CancelRun) {
			x.sim.fail("%s: %s at %s was cancelled, and nobody has cancelled it: %v", x.run, n.Do, path, err)
		}
	case "deadline":
		if x.sim.world.Deadline == 0 {
			x.sim.fail("%s: %s at %s met a deadline, and there is none: %v", x.run, n.Do, path, err)
		}
	default:
		var name *store.NameError
		if x.sim.world.Names > 0 && errors.As(err, &name) {
			return // the key of a call is too long
		}
		if !f.fails && !f.breaks && !x.sim.hasHarm(Denied) {
			x.sim.fail("%s: %s at %s failed, and cannot: %v", x.run, n.Do, path, err)
		}
		if class == "failed" && n.returnsErrors() && !x.sim.hasHarm(Denied) && !errors.Is(err, errOfBody) {
			x.sim.fail("%s: %s at %s failed, and its error is not found to be what the body returned: %v", x.run, n.Do, path, err)
		}
	}
}

// returned keeps what the workflow function returned.
func (x *pass) returned(out string, err error) {
	if x.process.isDead() || isGone(err) {
		return
	}
	x.mu.Lock()
	undos := slices.Clone(x.undos)
	x.mu.Unlock()
	l := x.sim.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.run(x.run)
	if err == nil {
		t.outs = append(t.outs, out)
		return
	}
	if isStop(classify(err)) && x.sim.ownerOf(x.run) != x.process.id() {
		return // as in saw
	}
	t.mustUndo = undos
	var failed *durable.StepError
	t.stepFailed = errors.As(err, &failed)
}

func (l *ledger) book(run string, gen, lineage int, key string) *bodyBook {
	at := fmt.Sprintf("%s %d %d %s", run, gen, lineage, key)
	b := l.bodies[at]
	if b == nil {
		// After a jump, what other scopes have recorded is kept; a fork has a copy of it.
		b = &bodyBook{begun: map[int]int{}, running: map[int]int{}, under: map[*process]int{}, unknown: lineage > 0 || strings.HasPrefix(run, "f-")}
		l.bodies[at] = b
	}
	return b
}

// undoing returns the places where what undoes a call was registered: right before it.
func (x *pass) undoing(scope, path string) (places []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	at := strings.LastIndexAny(path, "./") + 1
	for i, _ := strconv.Atoi(path[at:]); i > 0; i-- {
		place := scope + path[:at] + strconv.Itoa(i-1)
		if !slices.Contains(x.undos, place) {
			break
		}
		places = append(places, place)
	}
	return places
}

// begin notes that a body begins, and checks that it may.
func (l *ledger) begin(x *pass, a durable.AttemptInfo, scope, path string, n *Node) (end func()) {
	if x.process.isDead() {
		return func() {}
	}
	undone := x.undoing(scope, path)
	l.mu.Lock()
	defer l.mu.Unlock()
	lineage := l.run(x.run).lineage
	if lineage%2 == 1 || lineage != x.lineage {
		return func() {}
	}
	b := l.book(x.run, x.gen, lineage, a.Key)
	at := fmt.Sprintf("%s: the body of %s, attempt %d, in p%d", x.run, a.Key, a.Number, x.process.n)
	if b.unknown {
		b.failed, b.unknown = a.Number-1, false
	}
	limit := n.attempts()
	if n.Do == Undo {
		limit = durable.DefaultMaxAttempts
	}
	switch {
	case a.Number > limit:
		l.sim.fail("%s begins, and the policy allows %d", at, limit)
	case l.sim.world.clocksDiffer(): // another executor may have had the run meanwhile (G4)
	case b.done:
		l.sim.fail("%s begins, and its outcome is recorded", at)
	case a.Number <= b.failed:
		l.sim.fail("%s begins, and attempt %d is recorded", at, b.failed)
	case a.Number != b.failed+1:
		l.sim.fail("%s begins, and only attempt %d is recorded", at, b.failed)
	case len(a.Failures) != b.failed:
		l.sim.fail("%s sees %d failures of %d", at, len(a.Failures), b.failed)
	}
	l.askPause(b, a, n, at)
	x.askLease(at)
	if owner := l.sim.ownerOf(x.run); !l.sim.world.clocksDiffer() && owner != "" && owner != x.process.id() {
		l.sim.fail("%s begins, and the run belongs to %s", at, owner)
	}
	for p := range b.under {
		if p != x.process && !p.isDead() && !p.own.slept() && n.Do != Progress && n.How != ByDeaf && !l.sim.world.clocksDiffer() { // SaveProgress does not return before the store answers
			l.sim.fail("%s begins, and one in p%d is under way", at, p.n)
		}
	}
	if n.Do != Undo {
		l.run(x.run).firm = append(l.run(x.run).firm, undone...)
	}
	b.begun[a.Number]++
	if n.Do == Once && b.begun[a.Number] > 1 {
		l.sim.fail("%s begins again", at)
	}
	b.under[x.process]++
	b.running[a.Number]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		b.running[a.Number]--
		if b.under[x.process]--; b.under[x.process] <= 0 {
			delete(b.under, x.process)
		}
	}
}

// undoes notes that the body of a compensation begins.
func (l *ledger) undoes(x *pass, place string) {
	if x.process.isDead() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.run(x.run)
	if t.undone == nil {
		t.undone = map[string]bool{}
	}
	t.undone[place] = true
}

// died forgets the bodies of a process that was killed.
func (l *ledger) died(p *process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.disturbed++
	for _, b := range l.bodies {
		delete(b.under, p)
	}
}

// recorded notes what a committed event says of a step.
func (l *ledger) recorded(run string, e *store.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.run(run)
	if e.Type == store.WorkflowContinued {
		t.gen++
		t.ways = 0
	}
	t.goes(e)
	if e.Key == "" {
		return
	}
	switch e.Type {
	case store.AttemptFailed:
		b := l.book(run, t.gen, t.lineage, e.Key)
		b.failed, b.failedAt = int(e.Attempt), e.At
	case store.StepCompleted, store.StepFailed:
		l.book(run, t.gen, t.lineage, e.Key).done = true
	}
}

// progressRead checks the progress that a body finds.
func (l *ledger) progressRead(x *pass, a durable.AttemptInfo, v int, ok bool) {
	if l.sim.world.clocksDiffer() && l.sim.ownerOf(x.run) != x.process.id() {
		return // the next owner has saved more (G4)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if x.process.isDead() || l.run(x.run).lineage != x.lineage {
		return
	}
	saved := l.book(x.run, x.gen, x.lineage, a.Key).saved
	if len(saved) == 0 && (!ok || x.lineage > 0 || strings.HasPrefix(x.run, "f-")) {
		return
	}
	for i, s := range saved {
		if ok && v == s || !ok && i == 0 && s == 0 {
			return
		}
	}
	l.sim.fail("%s: attempt %d of %s finds the progress %d, %v; saved was %v", x.run, a.Number, a.Key, v, ok, saved)
}

// endedAttempt reports whether the body of an attempt has ended, and none of it is under
// way.
func (l *ledger) endedAttempt(x *pass, a durable.AttemptInfo) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.book(x.run, x.gen, x.lineage, a.Key)
	known := l.run(x.run).lineage == x.lineage // what begins after an operator's act is not kept there
	return known && b.begun[a.Number] > 0 && b.running[a.Number] == 0
}

// savesProgress notes that progress is about to be saved: until SaveProgress returns, it may
// be there or not.
func (l *ledger) savesProgress(x *pass, a durable.AttemptInfo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run(x.run).lineage != x.lineage {
		return
	}
	b := l.book(x.run, x.gen, x.lineage, a.Key)
	if len(b.saved) == 0 {
		b.saved = []int{0} // there may be none
	}
	b.saved = append(b.saved, a.Number)
}

// progressSaved notes what SaveProgress returned.
func (l *ledger) progressSaved(x *pass, a durable.AttemptInfo, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || x.process.isDead() || l.run(x.run).lineage != x.lineage {
		return
	}
	// A later attempt, of another execution, may have saved its own meanwhile.
	if b := l.book(x.run, x.gen, x.lineage, a.Key); b.saved[len(b.saved)-1] == a.Number {
		b.saved = []int{a.Number}
	}
}
