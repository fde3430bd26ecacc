package outline

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A Builder takes the events of a run one by one. More events may be added after
// Outline was called, as a page does that follows a run. When the run's branches
// change, start a new Builder (Stale).
type Builder struct {
	in      Input
	lineage store.Lineage
	lanes   map[int32]*lane
	order   []int32
	root    int64          // last event before the current generation
	inGen   map[int32]bool // branches of the current generation
	execs   map[string]*store.Executor

	rows     map[string]*Row // of the current history, by key
	lives    []Life
	begin    store.Time
	last     store.Event // without Data and Payload
	declared []string
	fork     string
	edited   map[string]*Edit // of a fork: the results that differ from its source
	claimed  bool             // by any executor, in this generation
	scopeAt  scopeTimes       // when the last outcome in a scope was recorded
	suspect  *suspects        // calls that may have begun in a lost life
	acts     []act
	failure  failure
	caught   *Row // the last call that failed without ending the run
	stop     stop
	attempts int
	failed   int
	resets   int
	events   int
	stale    bool
}

type lane struct {
	Lane
	top       []*Row
	left      map[string]*Row
	leftOrder []*Row
}

// act is what an operator, or recovery, did to the run.
type act struct {
	typ        store.Type
	at         store.Time
	seq        int64
	branch     int32
	key        string
	reason, by string
}

// failure is the last workflow_failed.
type failure struct {
	at          store.Time
	message     string
	code        string
	recoverable bool
	goexit      bool    // the function returned nothing: it ended its goroutine
	calls       []cause // the calls it concerns
}

// stop is the last workflow_interrupted, workflow_cancelled or workflow_paused.
type stop struct {
	typ          store.Type
	at           store.Time
	code, reason string
}

// New starts the story of a run.
func New(in Input) *Builder {
	b := &Builder{
		in: in, lineage: store.LineageOf(in.Branches, in.Run.Branch), lanes: map[int32]*lane{}, inGen: map[int32]bool{},
		rows: map[string]*Row{}, execs: map[string]*store.Executor{}, scopeAt: scopeTimes{},
	}
	if in.Zone == nil {
		b.in.Zone = time.UTC
	}
	for i := range in.Executors {
		b.execs[in.Executors[i].ID] = &in.Executors[i]
	}
	known := map[int32]bool{}
	for _, br := range in.Branches {
		known[br.N] = true
		if br.Generation != in.Run.Generation {
			continue
		}
		root := br.Parent >= br.N
		if root {
			b.root = br.Cutoff
		}
		b.addLane(Lane{Branch: br.N, Parent: br.Parent, Root: root, Cutoff: br.Cutoff, Scope: br.CutScope, Reason: br.Reason, At: br.CreatedAt})
	}
	if in.Run.Generation == 0 && !known[0] {
		b.addLane(Lane{Root: true})
	}
	slices.Sort(b.order)
	return b
}

func (b *Builder) addLane(l Lane) {
	l.Current = l.Branch == b.in.Run.Branch
	b.lanes[l.Branch] = &lane{Lane: l, left: map[string]*Row{}}
	b.order = append(b.order, l.Branch)
	b.inGen[l.Branch] = true
}

// Stale reports whether an event was added on a branch that the Builder does not
// know: read the run again.
func (b *Builder) Stale() bool { return b.stale }

// Add takes the next event of the log. It does not read the payload.
func (b *Builder) Add(e *store.Event) {
	if e.Seq <= b.root || e.Seq <= b.last.Seq {
		return
	}
	l := b.lanes[e.Branch]
	if l == nil {
		b.stale = b.stale || !b.known(e.Branch)
		return
	}
	said := decode(e)
	b.events++
	if b.begin == 0 {
		b.begin = e.At
	}
	if !e.Type.Claims() || e.Key != "" {
		b.close(e, said)
	}
	if e.Key != "" && e.Type != store.Edited && e.Type != store.Patched {
		b.addCall(l, e, said)
	} else {
		b.addRun(l, e, said)
	}
	b.last = *e
	b.last.Data, b.last.Payload = nil, nil
}

func (b *Builder) known(branch int32) bool {
	return branch == 0 || slices.ContainsFunc(b.in.Branches, func(x store.Branch) bool { return x.N == branch })
}

// addRun takes an event of the run itself.
func (b *Builder) addRun(l *lane, e *store.Event, said any) {
	_, by, reason, reset := actOf(said)
	switch d := said.(type) {
	case *history.Beginning:
		b.begins(e, d)
	case *history.Claim:
		b.claim(e, d)
	case *history.End:
		switch e.Type {
		case store.WorkflowFailed:
			b.failure = failure{at: e.At, message: orElse(messageOf(d.Error), d.Reason), code: d.Code, calls: causesOf(d.Error), goexit: endedGoroutine(d.Error), recoverable: d.Recoverable != nil && *d.Recoverable}
		case store.WorkflowCancelled:
			b.stop = stop{typ: e.Type, at: e.At, code: d.Code, reason: d.Reason}
		}
	case *history.Stop:
		if e.Type != store.WorkflowUnpaused {
			b.stop = stop{typ: e.Type, at: e.At, code: d.Code, reason: d.Reason}
		}
	case *history.Act, *history.Recovery:
		b.acts = append(b.acts, act{typ: e.Type, at: e.At, seq: e.Seq, branch: e.Branch, key: e.Key, reason: reason, by: by})
	}
	if l.Act == "" && e.Branch != 0 && e.Type != store.JumpRequested {
		l.Act, l.By, l.Key = e.Type, by, e.Key
		if l.At == 0 {
			l.At = e.At
		}
		if reason != "" {
			l.Reason = reason
		}
	}
	if len(reset) > 0 && b.lineage.Has(e) {
		b.reset(reset)
	}
}

// begins takes the first event of the run, or of a later generation.
func (b *Builder) begins(e *store.Event, d *history.Beginning) {
	if e.Type == store.WorkflowStarted {
		if d.Declared != nil {
			b.declared = d.Declared
		}
		b.claim(e, d.Claim())
		return
	}
	b.declared = d.Declared
	if d.Fork != nil {
		b.fork = d.Fork.From
		b.edited = map[string]*Edit{}
		for key := range d.Fork.Edits {
			b.edited[key] = &Edit{At: b.in.Run.CreatedAt, By: d.Fork.By, Reason: d.Fork.Reason}
		}
	}
}

// reset reopens calls whose failures no longer count.
func (b *Builder) reset(keys []string) {
	b.resets++
	for _, key := range keys {
		r := b.rows[key]
		if r == nil {
			continue
		}
		r.State, r.Outcome, r.End, r.Error, r.NextAt, r.Reset = Stopped, 0, 0, "", 0, true
		for i := range r.Attempts {
			r.Attempts[i].Reset = true
		}
	}
}

// addCall takes an event of a durable call or an item.
func (b *Builder) addCall(l *lane, e *store.Event, said any) {
	var r *Row
	if b.lineage.Has(e) {
		r = b.row(l, e, said)
	} else {
		l.LeftEvents++
		if r = l.left[e.Key]; r == nil {
			r = newRow(e, said)
			r.Depth = strings.Count(e.Key, "/")
			l.left[e.Key] = r
			l.leftOrder = append(l.leftOrder, r)
		}
	}
	b.suspicion(r, e)
	b.take(r, e, said)
	if !r.open() {
		b.scopeAt.set(e)
	}
}

// row finds the row of an event of the current history, or creates it and its
// enclosing rows.
func (b *Builder) row(l *lane, e *store.Event, said any) *Row {
	if r := b.rows[e.Key]; r != nil {
		if r.Seq == 0 { // it was created for a row inside it
			r.Seq, r.Ordinal = e.Seq, e.Ordinal
			if k := kindOf(said); k != Step {
				r.Kind = k
			}
		}
		if edit := b.lastAct(e); edit != nil && r.open() {
			b.replaced(r, edit) // the attempts before the outcome are kept
		}
		return r
	}
	r := newRow(e, said)
	if edit := b.lastAct(e); edit != nil {
		b.replaced(r, edit)
	}
	if r.Copied = !b.claimed && b.fork != ""; r.Copied {
		r.Edited = b.edited[e.Key]
	}
	b.rows[e.Key] = r
	if moved := b.lanes[r.Branch]; moved != nil {
		l = moved
	}
	b.place(l, r)
	return r
}

// place adds a row to the row of its scope, or to its lane.
func (b *Builder) place(l *lane, r *Row) {
	around := scopeOf(r.Key)
	if around == "" {
		l.top = append(l.top, r)
		return
	}
	p := b.rows[around]
	if p == nil {
		p = &Row{Key: around, Name: nameOf(around), Kind: Branch, State: Running, Branch: r.Branch, Begin: r.Begin, Ordinal: 1 << 30, life: r.life}
		switch {
		case around == undoScope:
			p.Kind, p.Name = Undoing, "compensations"
		case strings.HasSuffix(around, "]"):
			p.Kind = Item
			p.Ordinal = int32(itemOf(around) + 1)
		case r.Kind == Item:
			p.Kind = Map
		}
		b.rows[around] = p
		b.place(l, p)
	}
	if around == undoScope {
		r.Kind = Undo
	}
	r.Depth = p.Depth + 1
	p.Rows = append(p.Rows, r)
	if r.Begin != 0 && (p.Begin == 0 || r.Begin < p.Begin) {
		p.Begin = r.Begin
	}
}

// lastAct returns the edit that e, the event after it, carries out.
func (b *Builder) lastAct(e *store.Event) *act {
	if n := len(b.acts); n > 0 && b.acts[n-1].typ == store.Edited && b.acts[n-1].seq == e.Seq-1 && b.acts[n-1].key == e.Key {
		return &b.acts[n-1]
	}
	return nil
}

// replaced takes over what is known about an edited call from the branch it was
// recorded on: it ran there, and only its result differs.
func (b *Builder) replaced(r *Row, edit *act) {
	r.Edited = &Edit{At: edit.at, By: edit.by, Reason: edit.reason}
	for i := len(b.order) - 1; i >= 0; i-- {
		old := b.lanes[b.order[i]].left[r.Key]
		if old == nil || old.Outcome == 0 || old.skip {
			continue
		}
		if r.Begin == 0 || len(r.Attempts) == 0 {
			r.Begin = old.Begin
		}
		r.Attempts = append(slices.Clip(r.Attempts), old.Attempts...) // those after the cut were left behind
		r.End, r.Max, r.life, r.Branch = old.End, max(r.Max, old.Max), old.life, old.Branch
		r.Edited.Seq = old.Outcome
		old.skip = true
		return
	}
}

func newRow(e *store.Event, said any) *Row {
	return &Row{Key: e.Key, Name: nameOf(e.Key), Kind: kindOf(said), State: Running, Branch: e.Branch, Ordinal: e.Ordinal, Seq: e.Seq, life: -1}
}

func (r *Row) open() bool { return r.Outcome == 0 }

const undoScope = "~undo"

// scopeOf returns the key of the scope of a call: for "items[3]/resize" it is
// "items[3]", for that "items".
func scopeOf(key string) string {
	if strings.HasSuffix(key, "]") {
		if i := strings.LastIndexByte(key, '['); i > 0 {
			return key[:i]
		}
	}
	if i := strings.LastIndexByte(key, '/'); i >= 0 {
		return key[:i]
	}
	return ""
}

// nameOf returns the last part of a key, as written in the code.
func nameOf(key string) string {
	name := key[strings.LastIndexByte(key, '/')+1:]
	if !strings.Contains(name, "%") {
		return name
	}
	return unescape.Replace(name)
}

var escape = strings.NewReplacer("/", "%2F", "#", "%23", "@", "%40", "~", "%7E", "[", "%5B", "]", "%5D", "%", "%25")

var unescape = strings.NewReplacer("%2F", "/", "%23", "#", "%40", "@", "%7E", "~", "%5B", "[", "%5D", "]", "%25", "%")

func itemOf(key string) int {
	n := 0
	for _, c := range key[strings.LastIndexByte(key, '[')+1 : len(key)-1] {
		n = n*10 + int(c-'0')
	}
	return n
}

func orElse(s, t string) string {
	if s != "" {
		return s
	}
	return t
}
