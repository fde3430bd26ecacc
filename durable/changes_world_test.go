package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// bodies notes which bodies ran, over all processes of a trial.
type bodies struct {
	mu  sync.Mutex
	ran []string
}

func (b *bodies) note(ctx context.Context) durable.AttemptInfo {
	a := durable.Attempt(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ran = append(b.ran, fmt.Sprintf("%s %s/%d", a.RunID, a.Key, a.Number))
	return a
}

// take returns what ran since the last call.
func (b *bodies) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	ran := b.ran
	b.ran = nil
	return ran
}

// play is a workflow function, written as a list of calls: the first error ends
// it, and the result is what the calls returned.
type play struct {
	ctx context.Context
	b   *bodies
	out []string
	err error
}

func (p *play) say(v any, err error) {
	if p.err = err; err == nil {
		p.out = append(p.out, fmt.Sprint(v))
	}
}

func (p *play) result() (string, error) { return strings.Join(p.out, " "), p.err }

func (p *play) body(v string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) { p.b.note(ctx); return v, nil }
}

// steps makes a step for each name, which returns the name.
func (p *play) steps(names ...string) *play {
	for _, n := range names {
		if p.err == nil {
			p.say(durable.Step(p.ctx, n, p.body(n)))
		}
	}
	return p
}

// loop makes the same step n times.
func (p *play) loop(name string, n int) *play {
	for range n {
		p.steps(name)
	}
	return p
}

// flaky is a body whose first attempts fail.
func (p *play) flaky(v string, failures int) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if a := p.b.note(ctx); a.Number <= failures {
			return "", fmt.Errorf("failure %d", a.Number)
		}
		return v, nil
	}
}

func (p *play) retry(name string, failures int) *play {
	if p.err == nil {
		p.say(durable.Retry(p.ctx, name, durable.Policy{MaxAttempts: 3, Initial: time.Second}, p.flaky(name, failures)))
	}
	return p
}

// do makes any call that returns a value.
func (p *play) do(call func(ctx context.Context) (any, error)) *play {
	if p.err == nil {
		p.say(call(p.ctx))
	}
	return p
}

// run is do for one without a value.
func (p *play) run(call func(ctx context.Context) error) *play {
	if p.err == nil {
		p.err = call(p.ctx)
	}
	return p
}

func (p *play) sleep(d time.Duration) *play {
	return p.run(func(ctx context.Context) error { return durable.Sleep(ctx, d) })
}

func (p *play) wait(name string, o ...durable.AwaitOption) *play {
	return p.do(func(ctx context.Context) (any, error) { return durable.Await[int](ctx, name, o...) })
}

// branches runs plays side by side, in the order name, play, name, play.
func (p *play) branches(list ...any) *play {
	if p.err != nil {
		return p
	}
	var fs []*durable.Future[string]
	for i := 0; i < len(list); i += 2 {
		fn := list[i+1].(func(*play))
		fs = append(fs, durable.Go(p.ctx, list[i].(string), func(ctx context.Context) (string, error) {
			inner := &play{ctx: ctx, b: p.b}
			fn(inner)
			return inner.result()
		}))
	}
	for _, f := range fs {
		v, err := f.Wait(p.ctx)
		if err == nil {
			p.out = append(p.out, v)
		} else if p.err == nil {
			p.err = err
		}
	}
	return p
}

// items runs a play for each item.
func (p *play) items(name string, in []int, concurrency int, fn func(p *play, item int)) *play {
	return p.do(func(ctx context.Context) (any, error) {
		return durable.Map(ctx, name, in, durable.MapOptions{Concurrency: concurrency}, func(ctx context.Context, item int) (string, error) {
			inner := &play{ctx: ctx, b: p.b}
			fn(inner, item)
			return inner.result()
		})
	})
}

// edition is a workflow "w" as one release has it, with what it needs.
type edition struct {
	defs  []durable.Definition
	start func(ctx context.Context) (*durable.Run[string], error)
}

type maker func(b *bodies) edition

// of is an edition whose input is an int.
func of(fn func(p *play)) maker { return ofInput(7, func(p *play, _ int) { fn(p) }) }

func ofInput[I any](in I, fn func(p *play, in I), o ...durable.DefineOption) maker {
	return func(b *bodies) edition {
		w := durable.Define("w", func(ctx context.Context, in I) (string, error) {
			p := &play{ctx: ctx, b: b}
			fn(p, in)
			return p.result()
		}, o...)
		return edition{
			defs: append([]durable.Definition{w}, kids(b)...),
			start: func(ctx context.Context) (*durable.Run[string], error) {
				return w.Start(ctx, "r", in, durable.WithSignal("go", 5), durable.WithSignal("proceed", 5))
			},
		}
	}
}

// kids are the workflows that editions use as children.
func kids(b *bodies) []durable.Definition {
	var defs []durable.Definition
	for _, name := range []string{"kid", "niece"} {
		defs = append(defs, durable.Define(name, func(ctx context.Context, _ int) (string, error) {
			p := &play{ctx: ctx, b: b}
			p.steps("inner")
			return p.result()
		}))
	}
	return defs
}

func child(b *bodies, name string) *durable.Workflow[int, string] {
	for _, d := range kids(b) {
		if w := d.(*durable.Workflow[int, string]); w.Name() == name {
			return w
		}
	}
	panic(name)
}

// process is one life of a program with this edition on the data. It ends by
// itself when the run has come to something, or dies at the given write.
func process(t require.TestingT, data *ground, e edition, at death, resume bool) (end string, writes int, died bool, err error) {
	ctx := context.Background()
	st, leave := data.enter(t)
	m := crashstore.New(st)
	m.DieAt(at.at, at.after)
	eng, err := durable.Open(ctx, m, durable.Options{Workflows: e.defs, Logger: slog.New(slog.DiscardHandler), Lease: data.lease, QuarantineAfter: 100})
	require.NoError(t, err)
	ectx := durable.NewContext(ctx, eng)
	report, err := durable.Recover(ectx)
	var run *durable.Run[string]
	if err == nil {
		if _, missing := data.look.Load(ctx, "r", store.Cursor{NoEvents: true}); errors.Is(missing, store.ErrNotFound) {
			run, err = e.start(ectx)
		} else {
			run, err = durable.Ref[int, string]("w").Handle(ectx, "r")
		}
	}
	if err == nil && resume && !slices.Contains(report.Unparked, "r") {
		_, err = operate.On(eng).Resume(ctx, "r", operate.ResumeOptions{})
	}
	if err == nil {
		wait, stop := context.WithTimeout(ectx, data.patience)
		go func() { // the waiter dies with its process
			select {
			case <-m.Died():
			case <-wait.Done():
			}
			stop()
		}()
		end, err = run.Wait(wait)
		stop()
	}
	died = m.IsDead()
	_ = eng.Close()
	leave()
	if died {
		data.bury(t)
	} else {
		require.NotErrorIs(t, err, context.Canceled)
	}
	return end, m.Writes(), died, err
}

// moment is what the data holds when a process has died.
type moment struct {
	exists, over bool
	calls        map[string][]string // of each scope: key and kind, in order
	closed       map[string]bool     // scopes of branches and items whose outcome is recorded
	done         map[string]bool     // bodies' keys whose outcome is recorded
	events       []store.Event
}

func momentOf(t require.TestingT, data *ground) moment {
	m := moment{calls: map[string][]string{}, closed: map[string]bool{}, done: map[string]bool{}}
	h, err := data.look.Load(context.Background(), "r", store.Cursor{})
	if errors.Is(err, store.ErrNotFound) {
		return m
	}
	require.NoError(t, err)
	m.exists, m.over = true, h.Run.Status.Terminal()
	for e, err := range h.Events {
		require.NoError(t, err)
		m.events = append(m.events, e)
		if e.Key == "" || e.Type == store.Patched {
			continue
		}
		kind := kindOf(t, e)
		switch {
		case e.Type == store.ItemCompleted || e.Type == store.ItemFailed:
			m.closed[e.Key] = true
			continue
		case kind == "branch" && e.Type != store.StepStarted:
			m.closed[e.Key] = true
		case kind == "step" && (e.Type == store.StepCompleted || e.Type == store.StepFailed):
			m.done["r "+e.Key] = true
		}
		scope := ""
		if i := strings.LastIndexByte(e.Key, '/'); i >= 0 {
			scope = e.Key[:i]
		}
		if int(e.Ordinal) > len(m.calls[scope]) {
			m.calls[scope] = append(m.calls[scope], e.Key+" "+kind)
		}
	}
	return m
}

// kindOf returns the kind of call an event belongs to.
func kindOf(t require.TestingT, e store.Event) string {
	var d struct{ Kind string }
	if len(e.Data) > 0 {
		require.NoError(t, json.Unmarshal(e.Data, &d))
	}
	if d.Kind != "" {
		return d.Kind
	}
	kind, _, _ := strings.Cut(string(e.Type), "_")
	switch kind {
	case "attempt", "progress":
		return "step"
	case "signal":
		return "wait"
	}
	return kind
}

// has reports whether an event with this prefix of its key, and of one of these
// types if there are any, is recorded.
func (m moment) has(prefix string, types ...store.Type) bool {
	for _, e := range m.events {
		match := len(types) == 0
		for _, t := range types {
			match = match || e.Type == t
		}
		if match && strings.HasPrefix(e.Key, prefix) {
			return true
		}
	}
	return false
}

// fits reports whether the code whose uninterrupted run made these calls can go
// on from here: in each scope that is still open, what is recorded is a beginning
// of what the code does. It knows nothing of how the engine finds that out.
func (m moment) fits(code moment) bool {
	for scope, calls := range m.calls {
		if m.closed[scope] || m.closedAbove(scope) {
			continue
		}
		now := code.calls[scope]
		if len(calls) > len(now) {
			return false
		}
		for i := range calls {
			if calls[i] != now[i] {
				return false
			}
		}
	}
	return true
}

func (m moment) closedAbove(scope string) bool {
	for above := range m.closed {
		if store.InScope(scope, above) {
			return true
		}
	}
	return false
}
