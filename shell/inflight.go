package shell

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/stepbody"
)

// slot is the name under which the commands of a body are saved.
const slot = "holdfast/shell"

// inFlight is recorded before a command of a body is started, so that the process that
// runs the body again knows where the commands ran, and ends what is left of them.
type inFlight struct {
	Attempt int `json:"attempt"`
	// Place is where the last command began, or, with the later git state, where it ended.
	Place Place  `json:"place"`
	Mark  string `json:"mark"` // mark of that command
	// Marks are those of all commands in progress.
	Marks []string `json:"marks,omitempty"`
}

// markName is the variable that identifies the processes of one start of a command: they
// inherit it, whatever group they move to. Its value names the run, this execution of the
// body and the command within it:
//
//	4f1c2a90b7d3e815.PZ3VXJ…OQ.2
//	run              execution  command
//
// durable.AttemptInfo.Execution consists of the first two. A copy of the run has a
// different first part, and a later execution a different second part.
const markName = "HOLDFAST_COMMAND"

// body is what this execution of a step's body has run. It is nil for a command outside a
// step, of which nothing can be recorded.
type body struct {
	execution string
	attempt   int

	mu       sync.Mutex
	looked   bool // has checked what an earlier execution left
	lookErr  error
	commands int      // started so far
	running  []string // marks
}

func bodyOf(ctx context.Context) *body {
	in := stepbody.Of(ctx)
	if in == nil {
		return nil
	}
	type key struct{}
	return in.Local(key{}, func() any { return &body{} }).(*body)
}

// interrupted returns where the commands of this attempt ran in the previous process, if
// that ended without an outcome of the attempt, and ends those that still run. Only the
// first command of a body gets the place: later changes are made by this body itself.
func (b *body) interrupted(ctx context.Context) (*Place, error) {
	if b == nil {
		return nil, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.looked {
		return nil, b.lookErr
	}
	a := durable.Attempt(ctx)
	b.looked, b.execution, b.attempt = true, a.Execution, a.Number
	if !stepbody.Of(ctx).Interrupted(slot) {
		return nil, nil
	}
	before, ok, err := durable.NamedProgress[inFlight](ctx, slot)
	if err != nil || !ok {
		b.lookErr = err
		return nil, err
	}
	run, _, _ := strings.Cut(b.execution, ".")
	var variables []string
	for _, mark := range before.Marks {
		if strings.HasPrefix(mark, run+".") { // otherwise they belong to the run that this one is a copy of
			variables = append(variables, markName+"="+mark)
		}
	}
	if n := killMarked(variables); n > 0 {
		durable.Logger(ctx).Warn("shell: the command of an earlier process still ran, and was killed before it is run again", "processes", n, "dir", before.Place.Dir)
	}
	return &before.Place, nil
}

// begins records that a command is about to run, and returns its mark. It saves before the
// start, so a crash in between leaves nothing running.
func (b *body) begins(ctx context.Context, place *Place) (mark string, err error) {
	if b == nil {
		return "", nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.commands++
	mark = fmt.Sprintf("%s.%d", b.execution, b.commands)
	b.running = append(b.running, mark)
	if err := b.save(ctx, place, mark); err != nil {
		b.forget(mark)
		return "", err
	}
	return mark, nil
}

// ended says that a command is no longer running. If the body goes on and the command has
// moved the work tree, that is recorded: a process that runs the body again must not take
// it for a foreign change.
func (b *body) ended(ctx context.Context, mark string, place *Place, after *GitState, goesOn bool) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(mark)
	if !goesOn || ctx.Err() != nil || after == nil || place.Git == nil || after.Head == place.Git.Head && after.Branch == place.Git.Branch {
		return nil
	}
	left := *place
	left.Git = after
	return b.save(ctx, &left, mark)
}

func (b *body) forget(mark string) {
	b.running = slices.DeleteFunc(b.running, func(m string) bool { return m == mark })
}

func (b *body) save(ctx context.Context, place *Place, mark string) error {
	return durable.SaveNamedProgress(ctx, slot, inFlight{Attempt: b.attempt, Place: *place, Mark: mark, Marks: b.running})
}
