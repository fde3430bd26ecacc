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

// slot is the name under which is saved what a body runs.
const slot = "holdfast/shell"

// inFlight is what is recorded of the commands of a body before one of them is
// started, so that the process that runs the body again knows where they had run, and ends
// what is left of them.
type inFlight struct {
	Attempt int `json:"attempt"`
	// Place is where the last command has begun or, with the git state of then, what
	// it has left.
	Place Place  `json:"place"`
	Mark  string `json:"mark"` // of that command
	// Marks are those of all commands that were under way.
	Marks []string `json:"marks,omitempty"`
}

// markName is the variable that tells the processes of one start of a command from
// all others: they inherit it, whatever group they move to. Its value names the
// run, this execution of the body and the command within it:
//
//	4f1c2a90b7d3e815.PZ3VXJ…OQ.2
//	run              execution  command
//
// durable.AttemptInfo.Execution is made of the first two. A copy of the run has
// another first part, and a later execution another second one.
const markName = "HOLDFAST_COMMAND"

// body is what this execution of a step's body has run. A nil one is that of a
// command outside of a step, of which nothing can be recorded.
type body struct {
	execution string
	attempt   int

	mu       sync.Mutex
	looked   bool // for what an earlier execution has left
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

// interrupted returns where the commands of this attempt had run in the process
// before, if that has ended without an outcome of the attempt, and ends what still
// runs of them. Only the first command of a body is told: what is changed from then
// on is this body's own doing.
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
		if strings.HasPrefix(mark, run+".") { // else they are those of the run that this one is a copy of
			variables = append(variables, markName+"="+mark)
		}
	}
	if n := killMarked(variables); n > 0 {
		durable.Logger(ctx).Warn("shell: the command of an earlier process still ran, and was killed before it is run again", "processes", n, "dir", before.Place.Dir)
	}
	return &before.Place, nil
}

// begins records that a command is about to run, and returns its mark. It is saved
// before the start: a crash in between leaves nothing running.
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

// ended says that a command is not under way any more. A body that goes on, and in
// which the command has moved the work tree, has that recorded: a process that runs
// the body again must not take it for somebody else's doing.
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
