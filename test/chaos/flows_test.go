//go:build unix && cgo

package chaos_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// ending is how a run must end, as a function of its input alone.
type ending struct {
	status store.Status
	result int
}

// flow is a workflow, with what must become of a run of it.
type flow struct {
	*durable.Workflow[int, int]
	want    func(n int) ending
	options []durable.StartOption
}

// brief is a policy with pauses that a crowd of runs can afford.
var brief = durable.Policy{MaxAttempts: 4, Initial: 5 * time.Millisecond, Max: 20 * time.Millisecond}

// signals is how many signals a run of "talk" waits for.
const signals = 3

var errRefused = errors.New("the order is refused")

func init() { durableErrors = []durable.ErrorKind{durable.Sentinel("refused", errRefused)} }

var durableErrors []durable.ErrorKind

// flows is the program. What its bodies do in the world is in the ledger of p.
func flows(p *process) map[string]flow {
	all := map[string]flow{}
	add := func(name string, want func(n int) ending, fn func(ctx context.Context, n int) (int, error), o ...durable.StartOption) {
		all[name] = flow{durable.Define(name, p.watched(fn)), want, o}
	}
	completes := func(f func(n int) int) func(int) ending {
		return func(n int) ending { return ending{store.Completed, f(n)} }
	}
	leaf := func(ctx context.Context, n int) (int, error) { return n + 1, p.token(ctx, "token") }
	add("leaf", completes(func(n int) int { return n + 1 }), leaf)
	add("order", func(n int) ending {
		if n%7 == 3 {
			return ending{status: store.Failed}
		}
		return ending{store.Completed, n}
	}, p.order)
	add("fan", completes(func(n int) int { return fanned(n) }), func(ctx context.Context, n int) (int, error) { return p.fan(ctx, all["leaf"].Workflow, n) })
	add("talk", completes(func(n int) int { return n + signals*(signals+1)/2 }), p.talk)
	add("loop", completes(func(n int) int { return max(n, n%1000+3000) }), p.loop)
	add("pay", completes(func(n int) int { return n }), p.pay)
	add("stop", func(int) ending { return ending{status: store.Cancelled} }, p.stop)
	add("narrow", completes(func(n int) int { return n + 1 }), leaf, durable.OnQueue("narrow"))
	add("long", completes(func(int) int { return 3 }), p.long)
	return all
}

// watched notes when a process executes a run.
func (p *process) watched(fn func(ctx context.Context, n int) (int, error)) func(ctx context.Context, n int) (int, error) {
	return func(ctx context.Context, n int) (int, error) {
		id := durable.RunID(ctx)
		p.note("enter", id, "", 0, "")
		defer p.note("leave", id, "", 0, "")
		return fn(ctx, n)
	}
}

// body notes a body that begins, takes a moment, looking at its context, and notes its end.
func (p *process) body(ctx context.Context) error {
	a := durable.Attempt(ctx)
	p.note("begin", a.RunID, a.Key, a.Number, "")
	defer p.note("end", a.RunID, a.Key, a.Number, "")
	if len(a.Failures) != a.Number-1 {
		return durable.Permanent(fmt.Errorf("attempt %d knows %d failures", a.Number, len(a.Failures)))
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Duration(rand.IntN(8000)) * time.Microsecond):
		return nil
	}
}

// token is a step whose outcome no second execution would have, and tells the ledger of what
// the run was told: once, or again at each replay.
func (p *process) token(ctx context.Context, name string) error { return p.tokenIn(ctx, "", name) }

// tokenIn is token in a scope within the run.
func (p *process) tokenIn(ctx context.Context, scope, name string) error {
	v, err := durable.Step(ctx, name, func(ctx context.Context) (int64, error) { return rand.Int64N(1 << 50), p.body(ctx) })
	if err == nil {
		p.note("ack", durable.RunID(ctx), scope+name, 0, fmt.Sprint(v))
	}
	return err
}

func (p *process) order(ctx context.Context, n int) (int, error) {
	p.note("drawn", durable.RunID(ctx), "id", 0, durable.NewID(ctx)+fmt.Sprint(durable.Rand(ctx).Int64()))
	if err := p.token(ctx, "token"); err != nil {
		return 0, err
	}
	if err := durable.Compensate(ctx, "refund", p.body); err != nil {
		return 0, err
	}
	v, err := durable.Retry(ctx, "charge", brief, func(ctx context.Context) (int, error) {
		if err := p.body(ctx); err != nil {
			return 0, err
		}
		if durable.Attempt(ctx).Number <= n%3 {
			return 0, errors.New("not yet")
		}
		return n, nil
	})
	if err != nil {
		return 0, err
	}
	if err := durable.Do(ctx, "note", p.body, durable.Relaxed()); err != nil {
		return 0, err
	}
	file := filepath.Join(p.Dir, "once", strings.ReplaceAll(durable.RunID(ctx), "/", "_"))
	_, err = durable.Once(ctx, "ship", func(ctx context.Context) (int, error) {
		p.note("ships", durable.RunID(ctx), "ship", durable.Attempt(ctx).Number, "")
		f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			p.note("twice", durable.RunID(ctx), "ship", durable.Attempt(ctx).Number, err.Error())
			return 0, err
		}
		p.note("shipped", durable.RunID(ctx), "ship", durable.Attempt(ctx).Number, "")
		return n, f.Close()
	}, durable.Reconcile(func(ctx context.Context) (int, bool, error) {
		_, err := os.Stat(file)
		p.note("asked", durable.RunID(ctx), "ship", 0, fmt.Sprint(err))
		return n, err == nil, nil
	}))
	if err != nil {
		return 0, err
	}
	if n%7 == 3 {
		return 0, durable.Permanent(errRefused)
	}
	return v, nil
}

func fanned(n int) int { return 3*(n+1) + 2*(n+1) + n }

func (p *process) fan(ctx context.Context, leaf *durable.Workflow[int, int], n int) (int, error) {
	sum := 0
	out, err := durable.Map(ctx, "items", []int{0, 1, 2}, durable.MapOptions{Concurrency: 2}, func(ctx context.Context, k int) (int, error) {
		return n + 1, durable.Do(ctx, "item", p.body)
	})
	if err != nil {
		return 0, err
	}
	for _, v := range out {
		sum += v
	}
	a := durable.Go(ctx, "a", func(ctx context.Context) (int, error) { return n + 1, p.tokenIn(ctx, "a/", "token") })
	child, err := leaf.Start(ctx, durable.RunID(ctx)+"/leaf", n)
	if err != nil {
		return 0, err
	}
	for _, wait := range []func(context.Context) (int, error){a.Wait, child.Wait} {
		v, err := wait(ctx)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	last, err := durable.MapSeq(ctx, "seq", slices.Values([]int{n, 0}), durable.MapOptions{}, func(ctx context.Context, k int) (int, error) {
		return k, durable.Do(ctx, "item", p.body)
	}, 0, func(a, k int) int { return a + k })
	if err != nil {
		return 0, err
	}
	return sum + last, durable.Sleep(ctx, 5*time.Millisecond)
}

func (p *process) talk(ctx context.Context, n int) (int, error) {
	if err := durable.Publish(ctx, "state", "listening"); err != nil {
		return 0, err
	}
	if err := durable.SetAttributes(ctx, map[string]string{"kind": "talk"}); err != nil {
		return 0, err
	}
	for range signals {
		v, err := durable.Await[int](ctx, "number")
		if err != nil {
			return 0, err
		}
		n += v
	}
	_, err := durable.Await[int](ctx, "number", durable.Timeout(20*time.Millisecond))
	if _, late := errors.AsType[*durable.TimeoutError](err); !late {
		return 0, fmt.Errorf("a signal more than was sent, or: %w", err)
	}
	return n, p.token(ctx, "token")
}

func (p *process) loop(ctx context.Context, n int) (int, error) {
	if err := p.token(ctx, fmt.Sprint("token ", n/1000)); err != nil {
		return 0, err
	}
	if n < 3000 {
		return 0, durable.Continue(ctx, n+1000)
	}
	return n, nil
}

func (p *process) pay(ctx context.Context, n int) (int, error) {
	run := strings.ReplaceAll(durable.RunID(ctx), "'", "")
	return durable.RetryTransact(ctx, "pay", brief, func(ctx context.Context, tx *sql.Tx) (int, error) {
		if err := p.body(ctx); err != nil { // first: it notes that the body begins, and a statement may take long
			return 0, err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO chaos_effects (run) VALUES ('"+run+"')"); err != nil {
			return 0, err
		}
		if durable.Attempt(ctx).Number <= n%2 {
			return 0, errors.New("not yet")
		}
		return n, nil
	})
}

// stop waits until it is cancelled, and then clears up.
func (p *process) stop(ctx context.Context, n int) (int, error) {
	if err := durable.Compensate(ctx, "clear up", p.body); err != nil {
		return 0, err
	}
	if err := p.token(ctx, "token"); err != nil {
		return 0, err
	}
	return durable.Await[int](ctx, "never")
}

func (p *process) long(ctx context.Context, n int) (int, error) {
	return durable.Step(ctx, "parts", func(ctx context.Context) (int, error) {
		done, _, err := durable.Progress[int](ctx)
		for ; err == nil && done < 3; done++ {
			if err = p.body(ctx); err == nil {
				err = durable.SaveProgress(ctx, done+1)
			}
		}
		return done, err
	}, durable.LongOperation())
}
