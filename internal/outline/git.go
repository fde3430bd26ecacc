package outline

import (
	"encoding/json"

	"github.com/holdfast-dev/holdfast/store"
)

// Git is the state of the work tree of a command, as package shell notes it.
type Git struct {
	Head   string `json:"head"`   // commit; empty: none yet
	Branch string `json:"branch"` // empty: none is checked out
	Dirty  bool   `json:"dirty"`  // something is changed or not tracked
}

// String is the state for people: "main 4f1c2a9 (dirty)".
func (g *Git) String() string {
	s := g.Branch
	if s == "" {
		s = "no branch"
	}
	if g.Head == "" {
		s += ", no commit"
	} else {
		s += " " + g.Head[:min(len(g.Head), 7)]
	}
	if g.Dirty {
		s += " (dirty)"
	}
	return s
}

// Git returns the work tree as the attempt found it and as it left it, nil if that
// is not noted.
func (a *Attempt) Git() (before, after *Git) {
	for _, n := range a.Notes {
		if n.Key != "shell" {
			continue
		}
		var note struct {
			Git   *Git `json:"git"`
			After *Git `json:"after"`
		}
		if json.Unmarshal([]byte(n.Value), &note) == nil { // otherwise the note is not from package shell
			return note.Git, note.After
		}
	}
	return nil, nil
}

// commandSlot is where package shell saves what it runs.
const commandSlot = "holdfast/shell"

// Under returns the event in which the attempt that is in progress, or was when its
// process was lost, has saved its command; 0: none.
func (r *Row) Under() int64 {
	at := r.command
	if at == 0 {
		at = r.Progress // as earlier versions have saved it
	}
	n := len(r.Attempts)
	if !r.open() || n > 0 && r.Attempts[n-1].Seq > at {
		return 0
	}
	return at
}

// GitOfProgress returns the work tree in which package shell began a command, from
// what its step has saved; nil if it noted none, or the step is not from package
// shell.
func GitOfProgress(saved []byte) *Git {
	var p struct {
		Place struct {
			Dir string `json:"dir"`
			Git *Git   `json:"git"`
		} `json:"place"`
		Mark string `json:"mark"`
	}
	if json.Unmarshal(saved, &p) != nil || p.Mark == "" || p.Place.Dir == "" {
		return nil
	}
	return p.Place.Git
}

// Git returns the work tree as the last command of the current history left it, nil
// if none has noted one.
func (o *Outline) Git() *Git {
	var last *Git
	var at store.Time
	for _, l := range o.Lanes {
		Each(l.Rows, func(r *Row) bool {
			for i := range r.Attempts {
				before, after := r.Attempts[i].Git()
				if after == nil {
					after = before
				}
				if after != nil && r.Attempts[i].End >= at {
					last, at = after, r.Attempts[i].End
				}
			}
			return true
		})
	}
	return last
}
