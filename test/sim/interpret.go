package sim

import (
	"slices"
	"strings"
)

// A fate says what something may come to if nothing stops it.
type fate struct {
	succeeds, fails bool
	breaks          bool // it may panic, or end its goroutine, which no Handled stops
}

// handled is the fate of what has this one and whose error is looked at and not returned.
func (f fate) handled() fate { return fate{succeeds: f.succeeds || f.fails, breaks: f.breaks} }

// apart is the fate of what runs on a goroutine of its own, seen from outside.
func (f fate) apart() fate { return fate{succeeds: f.succeeds, fails: f.fails || f.breaks} }

// fate of a program: it succeeds if all of its nodes do, and fails if one of them does.
// shaken: processes may end, so that the outcome of a Once may be unknown.
func (p Program) fate(shaken bool) fate {
	f := fate{succeeds: true}
	for i := range p {
		if f.succeeds {
			g := p[i].outcome(shaken)
			f = fate{succeeds: g.succeeds, fails: f.fails || g.fails, breaks: f.breaks || g.breaks}
		}
	}
	return f
}

// outcome is the fate of a node as its program sees it.
func (n *Node) outcome(shaken bool) fate {
	f := n.fate(shaken)
	if n.Handled {
		return f.handled()
	}
	return f
}

// handles reports whether a node looks at an error and does not return it: then what stops a run
// before it comes to a node that breaks lets what is around it succeed.
func (p Program) handles() bool {
	return slices.ContainsFunc(p, func(n Node) bool { return n.Handled || n.Body.handles() || n.Then.handles() })
}

// mayStop reports whether a run may be cancelled, or meet its deadline.
func (s *sim) mayStop(run string) bool {
	return s.world.Deadline > 0 || s.hasAct(CancelRun) || strings.ContainsAny(run, "/-") // a child
}

// exits is the fate of a body that ends its goroutine, which is that of the workflow function.
// A replay returns the failure that was recorded before.
var exits = fate{fails: true, breaks: true}

// fate of a node, Handled or not.
func (n *Node) fate(shaken bool) fate {
	switch n.Do {
	case Step, Relaxed, Long, Draw, Retry, Progress, Seek, Settled, Transact:
		switch {
		case n.Fails > 0 && n.How == ByExit:
			return exits
		case n.Fails >= n.attempts():
			return fate{fails: true}
		case (n.Do == Progress || n.Do == Transact) && n.How == ByBlock:
			return fate{succeeds: true, fails: true} // a slow store may use up the time of an attempt
		}
		return fate{succeeds: true}
	case Once:
		switch {
		case n.Fails > 0 && n.How == ByExit:
			return exits
		case n.Fails > 0:
			return fate{fails: true}
		}
		return fate{succeeds: true, fails: shaken}
	case Fail, Nested:
		return fate{fails: true}
	case Panic, Exit:
		return fate{breaks: true}
	case Block:
		return n.Body.fate(shaken)
	case Change:
		f, g := n.Body.fate(shaken), n.Then.fate(shaken)
		return fate{succeeds: f.succeeds || g.succeeds, fails: f.fails || g.fails, breaks: f.breaks || g.breaks}
	case Cleanup:
		f := n.Body.fate(shaken)
		f.breaks = f.breaks || f.fails && n.Then.fate(shaken).breaks
		return f
	case Child, Map, MapSeq:
		if n.ID == BadID || n.Do == MapSeq && n.Fails > 0 {
			return fate{fails: true}
		}
		if n.How == ByLeave {
			return fate{succeeds: true}
		}
		return n.Body.fate(shaken).apart()
	case Go, Group, First:
		return n.branches(shaken)
	}
	return fate{succeeds: true}
}

// branches is the fate of branches that are waited for: of all of them, or of the first.
func (n *Node) branches(shaken bool) fate {
	all, some := fate{succeeds: true}, fate{}
	for i := range n.Body {
		g := n.Body[i].outcome(shaken).apart()
		all.succeeds, some.succeeds = all.succeeds && g.succeeds, some.succeeds || g.succeeds
		all.fails, some.fails = all.fails || g.fails, some.fails || g.fails
	}
	f := all
	if n.Do == First {
		f = some
	}
	then := n.Then.fate(shaken)
	return fate{succeeds: f.succeeds && then.succeeds, fails: f.fails || then.fails, breaks: then.breaks}
}

// shaken reports whether processes of a world may end, or lose their runs, or bodies are ended
// by what people do.
func (w *World) shaken() bool {
	for _, f := range w.Faults {
		if f.Do.disrupts(f.For) {
			return true
		}
	}
	for _, a := range w.Acts {
		if a.Do == KillProcess || a.Do == SetClock || a.Do == Suspend || a.Do == Deploy || a.Do == CloseProcess || a.Do == PauseRun || a.Do == JumpBack || a.Do == MoveRun {
			return true
		}
	}
	return w.Engines > 1 || w.Release != Unchanged
}

// shakes reports whether a body of a run may be ended, or have been under way when the run was
// copied.
func (s *sim) shakes(run string) bool {
	return s.world.shaken() || strings.HasPrefix(run, copyOf(""))
}

// slow reports whether the store of a world stands still at times: Close then says what it
// could not wait for.
func (w *World) slow() bool {
	for _, f := range w.Faults {
		if f.Do == SlowBefore || f.Do == SlowAfter || f.Do == Stuck || f.Do == Late {
			return true
		}
	}
	return w.suspends()
}

// othersWait reports whether bodies, of which one may follow another, can be the only writer for longer than
// a Close waits.
func (w *World) othersWait() (long bool) {
	w.Program.walk("", func(_ string, n *Node) {
		long = long || w.OneWriter && n.Do == Transact && (n.How == ByBlock || n.For > 0)
	})
	return long
}

// suspends reports whether a machine of a world stands still at times.
func (w *World) suspends() bool {
	for _, a := range w.Acts {
		if a.Do == Suspend {
			return true
		}
	}
	return false
}
