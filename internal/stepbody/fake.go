package stepbody

import "context"

// FakeKey is the context key under which durable/durabletest holds a Fake. It is in the context
// that a function of durable.Options.Around passes on: without such a function no body is replaced,
// and nothing looks for a Fake.
type FakeKey struct{}

// A Fake stands in for the body of one attempt. result points to the step's result, which is zero.
type Fake func(ctx context.Context, result any) error

// FakeOf returns what stands in for the body that is called with ctx, nil for the body itself.
func FakeOf(ctx context.Context) Fake {
	f, _ := ctx.Value(FakeKey{}).(Fake)
	return f
}

// StandIn returns the result of a Fake.
func StandIn[T any](ctx context.Context, fake Fake) (value T, err error) {
	err = fake(ctx, &value)
	return value, err
}
