package durabletest

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"github.com/holdfast-dev/holdfast/durable"
)

// A Call is one execution of a Fake.
type Call struct {
	durable.AttemptInfo
	// N is the number of this execution among those of the fake in this run, from 1. One that is
	// repeated because its process ended has the number of the first time.
	N int
	// Input is what the step was given with durable.WithInput; nil: nothing.
	Input any
}

// A Reply is what a Fake does when it is called.
type Reply struct {
	do    func(ctx context.Context, c Call) (any, error)
	zero  bool // the result is the zero value of whatever type it has
	real  bool // the step's own body
	gate  *Gate
	times int
}

// Returns is the reply of a step that succeeds with this result.
func Returns[T any](v T) Reply {
	return Func(func(context.Context, Call) (T, error) { return v, nil })
}

// Succeeds is the reply of a step that has no result (durable.Do), or whose result is the zero
// value of its type.
func Succeeds() Reply {
	return Reply{do: func(context.Context, Call) (any, error) { return nil, nil }, zero: true}
}

// ReturnsErr is the reply of an attempt that fails with err.
func ReturnsErr(err error) Reply {
	return Reply{do: func(context.Context, Call) (any, error) { return nil, err }, zero: true}
}

// Func is a reply that f decides on. Its ctx is that of a body: durable.IdempotencyKey and
// durable.Note work in it.
func Func[T any](f func(ctx context.Context, c Call) (T, error)) Reply {
	return Reply{do: func(ctx context.Context, c Call) (any, error) {
		v, err := f(ctx, c)
		return &v, err // a pointer: an interface that is nil keeps its type
	}}
}

// Body is the reply of the step's own body, to let it run after the replies before.
func Body() Reply { return Reply{real: true} }

// Times gives the same reply n times in a row.
func (r Reply) Times(n int) Reply {
	r.times = n
	return r
}

// A misfit is the result of a fake that is of another type than that of its step.
type misfit struct{ what string }

func (m *misfit) Error() string { return m.what }

// answer puts the reply into the result of a step.
func (r Reply) answer(ctx context.Context, c Call, result any) error {
	v, err := r.do(ctx, c)
	if err != nil || r.zero {
		return err
	}
	into, from := reflect.ValueOf(result).Elem(), reflect.ValueOf(v).Elem()
	if !from.Type().AssignableTo(into.Type()) {
		want := "a result of type " + into.Type().String()
		if into.Type() == reflect.TypeFor[struct{}]() {
			want = "no result (Succeeds)"
		}
		return &misfit{fmt.Sprintf("returns %s, and the step %s in run %s has %s", from.Type(), c.Key, c.RunID, want)}
	}
	into.Set(from)
	return nil
}

// A Gate holds fakes back until it is opened: the moment in which a step is under way then lasts
// as long as the test needs it. The zero value is closed.
type Gate struct {
	mu      sync.Mutex
	reached chan struct{}
	open    chan struct{}
}

// ways returns the channels of the gate, made where they are first used: in the bubble of
// a test that has one.
func (g *Gate) ways() (reached, open chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		g.reached, g.open = make(chan struct{}), make(chan struct{})
	}
	return g.reached, g.open
}

// Before is a reply that waits at the gate, and is then the reply r. If the context of the attempt
// ends first, the attempt fails with the cause of that.
func (g *Gate) Before(r Reply) Reply {
	r.gate = g
	return r
}

// pass waits at the gate.
func (g *Gate) pass(ctx context.Context) error {
	reached, open := g.ways()
	g.mu.Lock()
	if !isClosed(reached) {
		close(reached)
	}
	g.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Reached is closed when the first fake waits at the gate.
func (g *Gate) Reached() <-chan struct{} {
	reached, _ := g.ways()
	return reached
}

// Open lets through who waits at the gate, and who comes later.
func (g *Gate) Open() {
	_, open := g.ways()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !isClosed(open) {
		close(open)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
