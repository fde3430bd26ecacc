package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// sequence is the source of a MapSeq. It may fail after its first item.
func (n *Node) sequence(items []int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, i := range items {
			if !yield(i) {
				return
			}
			if n.Fails == 2 {
				breakBy(n.How)
			}
		}
	}
}

// fold is the fold of a MapSeq. It may fail.
func (n *Node) fold(all, v string) string {
	if n.Fails == 1 {
		breakBy(n.How)
	}
	return all + "," + v
}

// breakBy panics, or ends the goroutine.
func breakBy(how string) {
	if how == ByExit {
		runtime.Goexit()
	}
	panic("in a MapSeq")
}

func (n *Node) policy() durable.Policy {
	p := durable.Policy{MaxAttempts: max(n.Max, 1), Initial: time.Second, Max: 4 * time.Second, Jitter: -1}
	if n.How == ByBlock {
		p.Timeout = n.For + 2*time.Second
	}
	return p
}

// body is the body of a step: it takes a while, and fails as often as its node says.
func (x *pass) body(scope, path string, n *Node) func(ctx context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		a := durable.Attempt(ctx)
		defer x.sim.ledger.begin(x, a, scope, path, n)()
		switch n.Do {
		case Progress:
			x.progress(ctx, a, n)
		case Seek:
			x.asksRefused(a, path)
		case Transact:
			if err := x.writes(ctx, a, path, n); err != nil {
				return "", err
			}
		case Nested:
			_, err := durable.Step(ctx, "inner", func(context.Context) (string, error) { return path, nil })
			return "", err
		}
		if took := x.held(n); n.How == ByDeaf {
			time.Sleep(took)
		} else if took > 0 {
			timer := time.NewTimer(took)
			defer timer.Stop()
			select {
			case <-ctx.Done():
				x.endedBy(a, context.Cause(ctx))
				return "", context.Cause(ctx)
			case <-timer.C:
			}
		}
		if n.Do == Settled {
			x.sim.ledger.happens(ctx, x, path)
		}
		if a.Number > n.Fails {
			return path, nil
		}
		switch {
		case n.Do == Seek:
			return refusedResult(path, a.Number), nil
		case n.How == ByPanic:
			panic("at " + path)
		case n.How == ByExit:
			runtime.Goexit()
		case n.How == ByBlock && n.attempts() > 1:
			<-ctx.Done()
			x.endedBy(a, context.Cause(ctx))
			return "", context.Cause(ctx)
		}
		if n.How == ByType {
			return "", &oddError{At: path}
		}
		return "", fmt.Errorf("attempt %d at %s failed %w", a.Number, path, errOfBody)
	}
}

// errOfBody is in the errors that bodies return. It is not registered.
var errOfBody = errors.New("by itself")

// An oddError is of a registered type, and cannot be read back.
type oddError struct{ At string }

func (e *oddError) Error() string { return "odd at " + e.At }

// UnmarshalJSON panics.
func (*oddError) UnmarshalJSON([]byte) error { panic("sim: an error of this type is read") }

// progress checks what was saved before, and saves the number of the attempt.
func (x *pass) progress(ctx context.Context, a durable.AttemptInfo, n *Node) {
	v, ok, err := durable.Progress[int](ctx)
	if err == nil {
		x.sim.ledger.progressRead(x, a, v, ok)
	}
	x.sim.ledger.savesProgress(x, a)
	x.sim.ledger.progressSaved(x, a, durable.SaveProgress(ctx, a.Number))
	go func() { // a goroutine that the body leaves behind
		time.Sleep(n.For + 300*time.Millisecond)
		if x.sim.ledger.endedAttempt(x, a) && durable.SaveProgress(ctx, -a.Number) == nil && !x.process.isDead() {
			x.sim.fail("%s: progress of attempt %d of %s is saved after its end", x.run, a.Number, a.Key)
		}
	}()
}

// endedBy checks the cause for which the context of a body has ended.
func (x *pass) endedBy(a durable.AttemptInfo, cause error) {
	var cancelled *durable.CancelledError
	w := &x.sim.world
	s := x.sim
	ok := x.process.isDead()
	switch {
	case errors.Is(cause, durable.ErrAttemptTimeout):
		ok = true
	case errors.Is(cause, durable.ErrShutdown):
		ok = x.process.isOver() && !x.process.graceLasts()
	case errors.Is(cause, durable.ErrLost):
		ok = x.process.isOver() || w.shaken() || s.meddles()
	case errors.Is(cause, durable.ErrLeaseExpired):
		ok = x.process.isOver() || w.shaken()
	case errors.As(cause, &cancelled), errors.Is(cause, durable.ErrOutsideRun), errors.Is(cause, durable.ErrContinued), errors.Is(cause, durable.ErrCancelled):
		ok = true // a parent's end cancels; an undoing and a renewal stop branches that nobody waits for
	case errors.Is(cause, durable.ErrDeadline):
		ok = w.Deadline > 0
	}
	if !ok {
		s.fail("%s: the context of attempt %d of %s has ended, and its cause is: %v", x.run, a.Number, a.Key, cause)
	}
}
