package shell

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/stepbody"
)

// tree is what this execution of a run knows of one work tree, or of a directory
// that is in none. The first command that begins there is compared with what the
// run has left there. What differs later is the doing of this execution: of another
// command, of a branch beside it, of a body between two commands.
type tree struct {
	gate chan struct{} // has a value while somebody compares
	live atomic.Bool   // a command of this execution was let in
}

type trees struct {
	mu sync.Mutex
	by map[string]*tree
}

// tree returns what tells the work tree of a place from others.
func (p *Place) tree() string {
	if p.Git != nil && p.Git.Tree != "" {
		return p.Git.Tree
	}
	return p.Dir
}

// treeAt returns the tree of this name. Outside of a step nothing is known of any.
func treeAt(ctx context.Context, name string) *tree {
	in := stepbody.Of(ctx)
	if in == nil {
		return &tree{gate: make(chan struct{}, 1)}
	}
	type key struct{}
	all := in.RunLocal(key{}, func() any { return &trees{by: map[string]*tree{}} }).(*trees)
	all.mu.Lock()
	defer all.mu.Unlock()
	t := all.by[name]
	if t == nil {
		t = &tree{gate: make(chan struct{}, 1)}
		all.by[name] = t
	}
	return t
}

// enter waits until nobody else compares in a tree. The caller must leave.
func enter(ctx context.Context, name string) (*tree, error) {
	t := treeAt(ctx, name)
	select {
	case t.gate <- struct{}{}:
		return t, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (t *tree) leave() { <-t.gate }

// leftIn returns the state in which the last command that the history has of a tree
// has left it; ok is false when the history has none. nil: it is not known.
// Whichever command that was, of whichever step and attempt: each of them may have
// moved HEAD.
func leftIn(ctx context.Context, tree string) (left *GitState, ok bool) {
	in := stepbody.Of(ctx)
	if in == nil {
		return nil, false
	}
	last := int64(0)
	in.Notes(noteKey, func(seq int64, note json.RawMessage) {
		var n struct {
			Dir   string    `json:"dir"`
			Git   *GitState `json:"git"`
			After *GitState `json:"after"`
		}
		if seq <= last || json.Unmarshal(note, &n) != nil { // else it is somebody else's
			return
		}
		p := Place{Dir: n.Dir, Git: n.After}
		if p.Git == nil {
			p.Git = n.Git
		}
		if p.tree() == tree {
			last, left, ok = seq, n.After, true
		}
	})
	return left, ok
}
