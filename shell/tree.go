package shell

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/stepbody"
)

// tree is what this execution of a run knows about one work tree, or about a
// directory outside any. When the first command begins there, the state is compared
// with what the run left there. Later differences come from this execution: from
// another command, a concurrent branch, or a body between two commands.
type tree struct {
	gate chan struct{} // has a value while a comparison is in progress
	live atomic.Bool   // a command of this execution has begun here
}

type trees struct {
	mu sync.Mutex
	by map[string]*tree
}

// tree returns a name that identifies the work tree of a place.
func (p *Place) tree() string {
	if p.Git != nil && p.Git.Tree != "" {
		return p.Git.Tree
	}
	return p.Dir
}

// treeAt returns the tree of this name. Outside a step nothing is known about any
// tree.
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

// enter waits until no other comparison is in progress in a tree. The caller must
// leave.
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

// leftIn returns the state in which the last recorded command left a tree; ok is
// false when the history has none. nil: the state is unknown. It considers the
// commands of every step and attempt, because each may have moved HEAD.
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
		if seq <= last || json.Unmarshal(note, &n) != nil { // otherwise the note is not ours
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
