package sim

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A Release says how the second build of the program of a world differs from the first one, at
// its Change nodes. Deploy acts roll from one to the other, and back.
type Release string

// The ways in which code changes.
const (
	Unchanged Release = ""        // there is one build; a Change does what is old
	ByPatch   Release = "patched" // the second build asks Patched
	ByVersion Release = "version" // it registers another version beside the first one
	Plainly   Release = "plain"   // it asks nothing
)

// The ways of a Change, as they stand in the names of calls.
const (
	oldWay = "old-"
	newWay = "new-"
)

// build is which of the two builds a process is.
type build int

// builds returns what a process that is opened now is.
func (s *sim) current() build {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deployed
}

// name is Options.Build of a build.
func (b build) name() string { return fmt.Sprint("sim", int(b)) }

// deploy rolls to a build, one process after the other.
func (s *sim) deploy(b build) {
	s.mu.Lock()
	was := s.deployed
	s.deployed = b
	s.mu.Unlock()
	if was == b {
		return
	}
	s.note("build %d is deployed", b)
	s.each(func(p *process) {
		if p.build != b {
			p.stop()
		}
	})
	for try := 0; try < 600 && s.live(0) == nil && !s.isEnding(); try++ {
		time.Sleep(time.Second)
	}
}

// definitions are the workflows of a process.
func (s *sim) definitions(p *process) []durable.Definition {
	all := []durable.Definition{s.workflow(p)}
	if s.world.Release == ByVersion && p.build == 1 {
		all = append(all, s.workflow(p, durable.Version("2")))
	}
	return all
}

// ways returns for each node of a Change which way it is part of, by path, as its name begins: no
// call of one way may be taken for one of another, or for one that is the same in both builds.
func (p Program) ways() map[string]string {
	ways := map[string]string{}
	p.walk("", func(at string, n *Node) {
		if n.Do == Change {
			of := strings.ReplaceAll(at, "/", "_") + "-"
			n.Body.walk(at+".", func(at string, _ *Node) { ways[at] = newWay + of })
			n.Then.walk(at+"/", func(at string, _ *Node) { ways[at] = oldWay + of })
		}
	})
	return ways
}

// takes returns which way an execution takes at a Change.
func (x *pass) takes(asked func() bool) string {
	isNew := false
	switch x.sim.world.Release {
	case ByVersion:
		isNew = x.version == "2"
	case Plainly:
		isNew = x.process.build == 1
	case ByPatch:
		isNew = x.process.build == 1 && asked()
	}
	if isNew {
		return newWay
	}
	return oldWay
}

// goes notes which way a run has gone, by the key of an event that is recorded. The ledger's
// mutex is held.
func (t *told) goes(e *store.Event) {
	_, name, nested := cutLast(e.Key)
	if !nested {
		name = e.Key
	}
	switch {
	case e.Type == store.Patched:
		t.ways |= 2
	case strings.HasPrefix(name, newWay):
		t.ways |= 2
	case strings.HasPrefix(name, oldWay):
		t.ways |= 1
	}
}

func cutLast(key string) (before, after string, found bool) {
	i := strings.LastIndexByte(key, '/')
	if i < 0 {
		return "", key, false
	}
	return key[:i], key[i+1:], true
}

// misfits reports whether a build may be unable to continue a run that has gone these ways.
func (t *told) misfits(w *World, b build) bool {
	switch w.Release {
	case ByPatch: // the second build takes both; the first one no run that has a marker
		return b == 0 && t.ways&2 != 0
	case Plainly:
		return b == 0 && t.ways&2 != 0 || b == 1 && t.ways&1 != 0
	}
	return false
}

// parks checks that a run that a process parks, because its code has changed, does not fit.
func (s *sim) parks(p *process, c *store.Change) {
	if c.Row == nil || c.Row.Code == nil || *c.Row.Code != durable.CodeDefinitionChanged {
		return
	}
	l := s.ledger
	l.mu.Lock()
	t := l.run(c.RunID)
	ok := t.meddled || strings.HasPrefix(c.RunID, "f-") || t.misfits(&s.world, p.build)
	ways := t.ways
	l.mu.Unlock()
	if !ok {
		reason := ""
		if c.Row.Reason != nil {
			reason = *c.Row.Reason
		}
		s.fail("%s is parked as changed by build %d, which fits it (it has gone the ways %d): %s", c.RunID, p.build, ways, reason)
	}
}

// pinned checks that an execution has the version that the run has had before. The ledger's
// mutex is held.
func (t *told) pinned(x *pass) {
	if x.sim.world.Release != ByVersion || x.process.isDead() || x.sim.ownerOf(x.run) != x.process.id() {
		return
	}
	if t.version != "" && t.versionGen == x.gen && t.version != x.version {
		x.sim.fail("%s is executed by version %s, and was by version %s", x.run, x.version, t.version)
	}
	t.version, t.versionGen = x.version, x.gen
}

// lastRelease deploys what can end all runs.
func (s *sim) lastRelease() {
	if s.world.Release == ByPatch || s.world.Release == ByVersion {
		s.deploy(1)
	}
}

// tryOther deploys the other build for the runs that do not fit the one that is there. One that was
// edited or imported keeps the code of that until it is resumed where it fits.
func (s *sim) tryOther(rows []store.Run) {
	if s.world.Release != Plainly {
		return
	}
	for i := range rows {
		switch rows[i].Code {
		case durable.CodeDefinitionChanged, durable.CodeEdited, durable.CodeImported:
			if !rows[i].Status.Terminal() {
				s.deploy(1 - s.current())
				return
			}
		}
	}
}

// isChanged reports whether a run does not fit the code that is here.
func isChanged(err error) bool {
	var changed *durable.DefinitionChangedError
	return errors.As(err, &changed)
}

// release makes a second build of the program of a world.
func (g *Generator) release(w *World) {
	w.Release = pick(g, ByPatch, ByPatch, ByVersion, Plainly)
	way := func() Program {
		return Program{{Do: pick(g, Step, Step, Retry, Once, Long, Progress), Max: 2, For: pick(g, 0, 0, time.Second, 10*time.Second), Handled: true}}
	}
	change := func() Node {
		n := Node{Do: Change, Body: way(), Then: way()}
		if w.Release != Plainly { // one that is inserted or removed leaves no trace of its old way
			switch g.rng.IntN(4) {
			case 0:
				n.Then = nil
			case 1:
				n.Body = nil
			case 2:
				budget := 3
				if p := g.program(&budget, place{depth: 2, item: true}); !w.Program.has(Renew) || !p.has(Undo) {
					n.Body = append(n.Body, p...)
				}
			}
		}
		return n
	}
	at := g.rng.IntN(len(w.Program) + 1)
	for i := range w.Program {
		if i < at && w.Program[i].Do == Renew {
			at = i
		}
	}
	w.Program = append(w.Program[:at:at], append(Program{change()}, w.Program[at:]...)...)
	if w.Release != Plainly { // in a Plain world other goroutines must not go both ways
		w.Program.walk("", func(_ string, n *Node) {
			if len(n.Body) > 0 && n.Do != Change && g.chance(30) && (n.Do == Block || n.Do == Map || n.Do == MapSeq || n.Do == Child || n.Do == Cleanup) {
				n.Body = append(Program{change()}, n.Body...)
			}
		})
	}
	for range g.rng.IntN(3) + 1 {
		a := Act{Do: Deploy, After: pick(g, 0, time.Second, 3*time.Second, 12*time.Second, 40*time.Second, 100*time.Second)}
		if g.chance(50) {
			a.On, a.Nth = g.event("act "+string(a.Do)), pick(g, 1, 1, 2, 3)
		}
		w.Acts = append(w.Acts, a)
	}
	w.Program.oneAsDerived()
}
