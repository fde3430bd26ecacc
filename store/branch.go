package store

import "strings"

// Branch is a line of history. Branch 0 exists from the start and has no
// record; every other one begins where its parent was cut.
type Branch struct {
	N          int32 // 1, 2, ... per run
	Parent     int32
	Generation int32  // of the events on it; a new generation starts a new branch
	Cutoff     int64  // the last event of the parent's lineage that is kept; for a root (Parent >= N), the last event before it
	CutScope   string // empty: the cut takes the whole run; else only keys in this scope
	Reason     string
	CreatedAt  Time
}

// Keeps reports whether the cut that has made b keeps an event of the history that was cut. A cut in a
// scope keeps an Edited though its key is in the scope: it has begun a branch, and what was recorded on
// that branch outside of the scope is kept.
func (b *Branch) Keeps(e *Event) bool {
	return e.Seq <= b.Cutoff || b.CutScope != "" && (!InScope(e.Key, b.CutScope) || e.Type == Edited)
}

// Lineage decides whether an event belongs to a branch's history: the branch's
// own events, and those of its ancestors that no cut removed. It is a pure
// value; build it with LineageOf.
type Lineage struct{ steps []lineageStep }

type lineageStep struct {
	branch int32
	cuts   []Branch // all must keep an event of this branch
}

// LineageOf returns the lineage of branch n among branches. A branch that is
// not listed (always 0, and any branch whose record is lost) counts as a root.
//
// For example, with branch 1 cut from 0 at event 5 and branch 2 cut from 1 at
// event 8, the lineage of 2 holds the events of branch 0 up to 5, those of
// branch 1 up to 8, and all of branch 2.
func LineageOf(branches []Branch, n int32) Lineage {
	byN := make(map[int32]Branch, len(branches))
	for _, b := range branches {
		byN[b.N] = b
	}
	var l Lineage
	var cuts []Branch
	// A parent is always older than its branch. A record that says otherwise is
	// damaged and must not send this loop round for ever.
	for {
		l.steps = append(l.steps, lineageStep{branch: n, cuts: cuts})
		b, ok := byN[n]
		if !ok || b.Parent >= n {
			return l
		}
		// A new slice each time, because earlier steps keep theirs.
		cuts = append(cuts[:len(cuts):len(cuts)], b)
		n = b.Parent
	}
}

// Has reports whether e is in the lineage.
func (l Lineage) Has(e *Event) bool {
	for _, s := range l.steps {
		if s.branch != e.Branch {
			continue
		}
		for _, c := range s.cuts {
			if !c.Keeps(e) {
				return false
			}
		}
		return true
	}
	return false
}

// Branches returns the numbers of the lineage's branches, youngest first.
func (l Lineage) Branches() []int32 {
	ns := make([]int32, len(l.steps))
	for i, s := range l.steps {
		ns[i] = s.branch
	}
	return ns
}

// InScope reports whether key is the scope itself or lies inside it:
// "items[3]/resize" is in "items[3]", but "items[31]" is not. Every key is in
// the root scope, "".
func InScope(key, scope string) bool {
	if scope == "" {
		return true
	}
	rest, ok := strings.CutPrefix(key, scope)
	return ok && (rest == "" || rest[0] == '/')
}
