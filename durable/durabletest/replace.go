package durabletest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/stepbody"
)

// Around is the type of a function of durable.Options.Around.
type Around = func(ctx context.Context, a durable.AttemptInfo, next func(ctx context.Context) error) error

// Replace puts these fakes in the place of the bodies of steps, whatever makes the step: Step, Do,
// Retry, Seek, Once, Transact, Compensate. The workflow's code stays as it is. What Replace returns
// goes into the options of an engine on any store, or into Engine for Survives, Simulate and
// Replays:
//
//	durable.Options{Workflows: workflows, Around: durabletest.Replace(t, charge, ship)}
//
// A replaced Transact begins no transaction, and so works on the memory store as well. Once keeps
// its promise: after a crash Reconcile runs as it is, and without one the outcome is unknown. A
// child run is replaced by a workflow of the same name in Options.Workflows.
//
// The test fails if, at its end, one of the fakes was never called, which then names the steps that
// were made, and if the type of a result does not fit its step.
func Replace(t testing.TB, fakes ...*Fake) []Around {
	t.Helper()
	r := &replacement{t: t, fakes: fakes, byKey: map[string]*Fake{}, byName: map[string]*Fake{}, seen: map[string]bool{}}
	for _, f := range fakes {
		if r.byKey[f.step] != nil {
			t.Fatalf("durabletest: two fakes replace step %q: give one of them all the replies", f.step)
		}
		r.byKey[f.step], r.byName[history.EscapeName(f.step)] = f, f
	}
	t.Cleanup(r.end)
	return []Around{r.around}
}

// A replacement is what one call of Replace has set up.
type replacement struct {
	t      testing.TB
	fakes  []*Fake
	byKey  map[string]*Fake
	byName map[string]*Fake // by the name as a key has it

	mu   sync.Mutex
	over bool            // the test has ended, and t must not be used
	seen map[string]bool // names of steps that were made
}

// around puts a fake in the place of a body.
func (r *replacement) around(ctx context.Context, a durable.AttemptInfo, next func(ctx context.Context) error) error {
	name := nameOf(a.Key)
	f := r.byKey[a.Key]
	if f == nil {
		f = r.byName[name]
	}
	r.mu.Lock()
	r.seen[name] = true
	r.mu.Unlock()
	if f == nil {
		return next(ctx)
	}
	reply, call := f.turn(a, stepbody.Of(ctx))
	if reply.real {
		if err := f.called(ctx, reply, call); err != nil {
			return err
		}
		return next(ctx)
	}
	var fake stepbody.Fake = func(ctx context.Context, result any) error {
		err := f.called(ctx, reply, call)
		if err == nil {
			err = reply.answer(ctx, call, result)
		}
		if wrong, ok := err.(*misfit); ok {
			r.fail("durabletest: the fake of step %q %s", f.step, wrong.what)
			return durable.Permanent(fmt.Errorf("durabletest: the fake of this step %s", wrong.what))
		}
		return err
	}
	return next(context.WithValue(ctx, stepbody.FakeKey{}, fake))
}

func (r *replacement) fail(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.t.Errorf(format, args...)
	}
}

// end fails the test if a fake was never called.
func (r *replacement) end() {
	r.mu.Lock()
	seen := slices.Sorted(maps.Keys(r.seen))
	r.mu.Unlock()
	// A test that was skipped has not come so far; neither has one that this library has started
	// to replay a history.
	if !r.t.Skipped() && os.Getenv(envDir) == "" {
		for _, f := range r.fakes {
			if !f.optional && len(f.Calls()) == 0 {
				r.fail("durabletest: step %q was replaced and never ran; %s. A fake that need not be called is Optional", f.step, stepsOf(seen))
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

func stepsOf(names []string) string {
	if len(names) == 0 {
		return "no step did: an engine needs what Replace returns, in durable.Options.Around"
	}
	return "the steps that did are " + strings.Join(names, ", ")
}

// nameOf returns the name in a key, as it is escaped there.
func nameOf(key string) string {
	name, _, _ := strings.Cut(nameAndNumber(key), "#")
	return name
}

// nameAndNumber returns the part of a key after its scopes: "resize#2".
func nameAndNumber(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

// A Fake stands in for the bodies of the steps with one name. See Step and Replace.
type Fake struct {
	step     string
	replies  []Reply
	optional bool

	mu    sync.Mutex
	turns map[turn]int        // their number in the run, from 1
	last  map[string]int      // the last number, by run
	reset map[[2]string]int64 // when its failures were reset last, by run and key
	calls []Call
}

// A turn is an execution of a body that the run counts as one, however often a crash repeats it.
type turn struct {
	run, key string
	branch   int32
	reset    int64
	attempt  int
}

// Step is a fake for the steps with this name. In each run, the first execution of such a body gets
// the first reply, the next one the second, and so on; the last reply is for all that follow.
// Attempts of a Retry count one by one, and so do steps of one name in a loop. An execution that is
// repeated because its process ended gets the same reply again.
//
// Steps of one name that run at the same time, in items of a Map, take the replies in any order:
// decide by Call.Key or Call.Input then (Func). A name may also be the key of one step, as the
// history has it: "charge#2", "items[3]/resize".
func Step(name string, replies ...Reply) *Fake {
	var each []Reply
	for _, r := range replies {
		for range max(r.times, 1) {
			each = append(each, r)
		}
	}
	if len(each) == 0 {
		each = []Reply{Succeeds()}
	}
	return &Fake{step: name, replies: each, turns: map[turn]int{}, last: map[string]int{}, reset: map[[2]string]int64{}}
}

// Optional says that the test does not fail if the fake is never called.
func (f *Fake) Optional() *Fake {
	f.optional = true
	return f
}

// Calls returns the executions of the fake so far, in order, also those that were repeated.
func (f *Fake) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// turn returns the reply to an attempt.
func (f *Fake) turn(a durable.AttemptInfo, body stepbody.Body) (Reply, Call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	branch, reset := body.Anew()
	if reset != 0 {
		f.reset[[2]string{a.RunID, a.Key}] = reset
	}
	t := turn{a.RunID, a.Key, branch, f.reset[[2]string{a.RunID, a.Key}], a.Number}
	n := f.turns[t]
	if n == 0 {
		f.last[a.RunID]++
		n = f.last[a.RunID]
		f.turns[t] = n
	}
	return f.replies[min(n, len(f.replies))-1], Call{AttemptInfo: a, N: n, Input: body.Input()}
}

// called notes a call, and waits at the gate of its reply.
func (f *Fake) called(ctx context.Context, r Reply, c Call) error {
	f.mu.Lock()
	f.calls = append(f.calls, c)
	f.mu.Unlock()
	if r.gate == nil {
		return nil
	}
	return r.gate.pass(ctx)
}
