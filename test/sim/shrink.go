package sim

import (
	"slices"
	"time"
)

// Shrink returns the least world that it finds that still fails in the same way, and how.
// Each smaller world is tried a few times, because
// the order of what happens at one moment is left to chance.
func Shrink(w World, failed Result, play func(World) Result, budget time.Duration) (World, string) {
	until := time.Now().Add(budget)
	why := failed.Failure
	still := func(v World) bool {
		for range 2 {
			if r := play(v); r.Kind == failed.Kind {
				why = r.Failure
				return true
			}
		}
		return false
	}
	for shrunk := true; shrunk; {
		shrunk = false
		for _, smaller := range smallerWorlds(w) {
			if time.Now().After(until) {
				return w, why
			}
			if still(smaller) {
				w, shrunk = smaller, true
				break
			}
		}
	}
	return w, why
}

// smallerWorlds lists worlds that are smaller by one thing, the largest cuts first.
func smallerWorlds(w World) (all []World) {
	add := func(change func(*World)) {
		v := w
		change(&v)
		all = append(all, v)
	}
	if len(w.Acts) > 1 {
		add(func(v *World) { v.Acts = nil })
	}
	if len(w.Faults) > 1 {
		add(func(v *World) { v.Faults = nil })
	}
	for _, p := range smallerPrograms(w.Program) {
		add(func(v *World) { v.Program = p })
	}
	for i := range w.Acts {
		add(func(v *World) { v.Acts = slices.Delete(slices.Clone(w.Acts), i, i+1) })
	}
	for i := range w.Faults {
		add(func(v *World) { v.Faults = slices.Delete(slices.Clone(w.Faults), i, i+1) })
	}
	if w.Engines > 1 {
		add(func(v *World) { v.Engines = 0 })
		add(func(v *World) { v.Engines-- })
	}
	if w.Engines == 1 {
		add(func(v *World) { v.Engines = 0 })
	}
	if w.Runs > 0 {
		add(func(v *World) { v.Runs = 0 })
		add(func(v *World) { v.Runs-- })
	}
	if w.Unload != 0 {
		add(func(v *World) { v.Unload = 0 })
	}
	if w.Deadline != 0 {
		add(func(v *World) { v.Deadline = 0 })
	}
	if w.Drift != 0 {
		add(func(v *World) { v.Drift = 0 })
	}
	if w.Pace != 0 {
		add(func(v *World) { v.Pace = 0 })
	}
	if w.Yield != 0 {
		add(func(v *World) { v.Yield = 0 })
	}
	if w.OneWriter {
		add(func(v *World) { v.OneWriter = false })
	}
	if w.Names != 0 {
		add(func(v *World) { v.Names = 0 })
	}
	for _, without := range []func(b *Beginning){func(b *Beginning) { b.Bulk = false }, func(b *Beginning) { b.Key = false }, func(b *Beginning) { b.Mail = false }} {
		if b := w.Begin; b != (Beginning{}) {
			if without(&b); b != w.Begin {
				add(func(v *World) { v.Begin = b })
			}
		}
	}
	if w.Release != Unchanged {
		add(func(v *World) { v.Release = Unchanged })
	}
	if len(w.Clocks) > 0 {
		add(func(v *World) { v.Clocks = nil })
		for i := range w.Clocks {
			add(func(v *World) { v.Clocks = slices.Delete(slices.Clone(w.Clocks), i, i+1) })
			add(func(v *World) { v.Clocks = slices.Clone(w.Clocks); v.Clocks[i].Ahead = 0 })
			add(func(v *World) { v.Clocks = slices.Clone(w.Clocks); v.Clocks[i].Drift = 0 })
		}
	}
	if w.Grace != 0 {
		add(func(v *World) { v.Grace = 0 })
	}
	all = append(all, simplerLines(w)...)
	all = append(all, lessDebounced(w)...)
	for i, a := range w.Acts {
		if a.Back > 0 {
			add(func(v *World) { v.Acts = slices.Clone(w.Acts); v.Acts[i].Back-- })
		}
		if a.After > 0 {
			add(func(v *World) { v.Acts = slices.Clone(w.Acts); v.Acts[i].After = 0 })
		}
		if a.Run > 0 {
			add(func(v *World) { v.Acts = slices.Clone(w.Acts); v.Acts[i].Run = 0 })
		}
	}
	for i, f := range w.Faults {
		if f.Nth > 1 {
			add(func(v *World) { v.Faults = slices.Clone(w.Faults); v.Faults[i].Nth-- })
		}
	}
	return all
}

// simplerLines lists worlds with less of a queue and a schedule.
func simplerLines(w World) (all []World) {
	if w.Queue != nil {
		queue := func(change func(q *Queue)) {
			v, q := w, *w.Queue
			q.Line = slices.Clone(q.Line)
			change(&q)
			v.Queue = &q
			all = append(all, v)
		}
		v := w
		v.Queue = nil
		all = append(all, v)
		for _, limit := range []func(q *Queue) *int{
			func(q *Queue) *int { return &q.Max }, func(q *Queue) *int { return &q.PerPartition },
			func(q *Queue) *int { return &q.PerProcess }, func(q *Queue) *int { return &q.Rate },
		} {
			if *limit(w.Queue) > 0 {
				queue(func(q *Queue) {
					*limit(q) = 0
					if q.Rate == 0 {
						q.Per = 0
					}
				})
			}
		}
		for i, at := range w.Queue.Line {
			if at != (Spot{}) {
				queue(func(q *Queue) { q.Line[i] = Spot{} })
			}
		}
	}
	if w.Schedule != nil {
		v, sc := w, *w.Schedule
		v.Schedule = nil
		all = append(all, v)
		if sc.Jitter > 0 || sc.InLine {
			sc.Jitter, sc.InLine = 0, false
			v.Schedule = &sc
			all = append(all, v)
		}
	}
	return all
}

// smallerPrograms lists programs that are smaller by a node, or by what is in it.
func smallerPrograms(p Program) (all []Program) {
	for i := range p {
		all = append(all, slices.Delete(slices.Clone(p), i, i+1))
	}
	for i := range p {
		n := p[i]
		put := func(with ...Node) { all = append(all, slices.Concat(p[:i], with, p[i+1:])) }
		if len(n.Body) > 0 {
			put(n.Body...)
		}
		for _, body := range smallerPrograms(n.Body) {
			m := n
			m.Body = body
			put(m)
		}
		for _, then := range smallerPrograms(n.Then) {
			m := n
			m.Then = then
			put(m)
		}
		for _, m := range smallerNodes(n) {
			put(m)
		}
	}
	return all
}

func smallerNodes(n Node) (all []Node) {
	add := func(change func(*Node)) {
		m := n
		change(&m)
		all = append(all, m)
	}
	if n.For > 0 {
		add(func(m *Node) { m.For = 0 })
	}
	if n.Fails > 0 {
		add(func(m *Node) { m.Fails, m.How = 0, "" })
		add(func(m *Node) { m.Fails-- })
	}
	if n.Max > 8 {
		add(func(m *Node) { m.Max /= 2 })
	}
	if n.Max > 1 {
		add(func(m *Node) { m.Max-- })
	}
	if n.How != "" {
		add(func(m *Node) { m.How = "" })
	}
	if n.Handled {
		add(func(m *Node) { m.Handled = false })
	}
	if n.ID != "" {
		add(func(m *Node) { m.ID = "" })
	}
	if n.Do != Step && n.isBody() {
		add(func(m *Node) { *m = Node{Do: Step} })
	}
	return all
}
