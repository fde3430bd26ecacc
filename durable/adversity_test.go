package durable_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Whatever a program asks of its engine, in whatever order, and whatever the store
// answers meanwhile: what was acknowledged holds, what was refused did not happen,
// each step is recorded once, no log has a gap, and once the store is well again
// every run comes to its end without a look at what was left behind.

// adversity is a program, the answers that its store gives, and what it was told.
type adversity struct {
	t  require.TestingT
	tt *testing.T
	w  *world
	o  durable.Options

	commits, calls []string // answers, one after the other; then all is well
	well           bool
	ends           int // of processes and of leases
	lostClaim      bool
	others         []*durable.Engine // that live beside the process opened last

	mu     sync.Mutex
	asleep *disk          // of a process that cannot beat
	bodies map[string]int // by run and key

	told map[string]*toldOf
}

// toldOf is what the program was told of a run.
type toldOf struct {
	kind               string
	started, maybe     bool // acknowledged; not refused for sure
	cancelled, meddled bool // a cancel was acknowledged, or was tried
}

var (
	anyCommit = rapid.SampledFrom([]string{"", "", "", "lost after", "lost before", "refused", "slow", "held", "killed before", "killed after"})
	anyCall   = rapid.SampledFrom([]string{"", "", "", "", "refused", "lost after", "slow", "held before", "held after"})
	anyAct    = rapid.SampledFrom([]string{"start steps", "start waits", "start family", "start undone", "start many", "signal", "cancel", "pause", "unpause", "resume", "pass", "pass long", "close", "recover", "beside"})
	runKinds  = []string{"steps", "waits", "family", "undone"}
)

// answer takes the next answer off a list.
func (a *adversity) answer(list *[]string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.well || len(*list) == 0 {
		return ""
	}
	next := (*list)[0]
	*list = (*list)[1:]
	return next
}

// longerThanALease is how long an answer may take.
const longerThanALease = 90 * time.Second

// boot opens a process, whose store soon misbehaves, and has it recover.
func (a *adversity) boot() {
	a.w.open(a.tt, a.o)
	d := a.w.disk
	d.tamper(func(batch []store.Change, forward func() []error) []error {
		switch a.answer(&a.commits) {
		case "lost after":
			forward()
			return all(batch, store.ErrUnknown)
		case "lost before":
			return all(batch, store.ErrUnknown)
		case "refused":
			return all(batch, errDisk)
		case "slow":
			time.Sleep(1500 * time.Millisecond)
		case "held":
			time.Sleep(longerThanALease)
		case "killed before":
			d.cut()
			return all(batch, store.ErrClosed)
		case "killed after":
			forward()
			d.cut()
			return all(batch, store.ErrClosed)
		}
		return forward()
	})
	d.tamperCalls(func(call string, forward func() error) error {
		if call == "beat" {
			a.mu.Lock()
			asleep := a.asleep == d
			a.mu.Unlock()
			if asleep {
				return errDisk
			}
			return forward()
		}
		switch a.answer(&a.calls) {
		case "refused":
			return errDisk
		case "lost after":
			if call == "claim" {
				a.mu.Lock()
				a.lostClaim = true
				a.mu.Unlock()
			}
			_ = forward()
			return errDisk
		case "slow":
			time.Sleep(1500 * time.Millisecond)
		case "held before":
			time.Sleep(longerThanALease)
		case "held after":
			err := forward()
			time.Sleep(longerThanALease)
			return err
		}
		return forward()
	})
	a.recover()
}

func (a *adversity) sleeps(d *disk) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asleep = d
}

func (a *adversity) recover() {
	for range 100 {
		if _, err := a.w.eng.Recover(a.w.ctx()); err == nil || a.dead() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	require.Fail(a.t, "Recover does not succeed")
}

func (a *adversity) dead() bool { return a.w.disk.isDead() }

// next replaces a process that was killed.
func (a *adversity) next() {
	for a.dead() {
		a.ends++
		a.w.crash()
		a.w.expire()
		a.boot()
	}
}

func (a *adversity) body(ctx context.Context) (int, error) {
	at := durable.Attempt(ctx)
	a.mu.Lock()
	a.bodies[at.RunID+" "+at.Key]++
	a.mu.Unlock()
	time.Sleep(100 * time.Millisecond)
	return 1, nil
}

func (a *adversity) define() map[string]*durable.Workflow[int, int] {
	kid := durable.Define("kid", func(ctx context.Context, _ int) (int, error) {
		if err := durable.Sleep(ctx, 2*time.Minute); err != nil {
			return 0, err
		}
		return durable.Step(ctx, "work", a.body)
	})
	wfs := map[string]*durable.Workflow[int, int]{
		"kid": kid,
		"steps": durable.Define("steps", func(ctx context.Context, _ int) (int, error) {
			for range 3 {
				if _, err := durable.Step(ctx, "s", a.body); err != nil {
					return 0, err
				}
				if _, err := durable.Step(ctx, "relaxed", a.body, durable.Relaxed()); err != nil {
					return 0, err
				}
			}
			return 3, durable.Sleep(ctx, 3*time.Minute)
		}),
		"waits": durable.Define("waits", func(ctx context.Context, _ int) (int, error) {
			if _, err := durable.Await[int](ctx, "go"); err != nil {
				return 0, err
			}
			return durable.Step(ctx, "s", a.body)
		}),
		"family": durable.Define("family", func(ctx context.Context, _ int) (int, error) {
			one := durable.Go(ctx, "one", func(ctx context.Context) (int, error) { return kid.Run(ctx, durable.AutoID, 0) })
			two := durable.Go(ctx, "two", func(ctx context.Context) (int, error) { return durable.Step(ctx, "s", a.body) })
			n, err := one.Wait(ctx)
			m, again := two.Wait(ctx)
			return n + m, errors.Join(err, again)
		}),
		"undone": durable.Define("undone", func(ctx context.Context, _ int) (int, error) {
			for _, name := range []string{"u", "v"} {
				if err := durable.Compensate(ctx, name, func(ctx context.Context) error { _, err := a.body(ctx); return err }); err != nil {
					return 0, err
				}
			}
			if _, err := durable.Step(ctx, "s", a.body); err != nil {
				return 0, err
			}
			return 0, errStock
		}),
	}
	for _, wf := range wfs {
		a.o.Workflows = append(a.o.Workflows, wf)
	}
	return wfs
}

// run makes the acts, mends the store, and judges what has become of the runs.
func (a *adversity) run(acts []string, which []int) {
	wfs := a.define()
	a.boot()
	defer func() {
		for _, eng := range a.others {
			_ = eng.Close()
		}
	}()
	var ids []string
	of := func(i int) string { return ids[which[i]%len(ids)] }
	for i, act := range acts {
		a.next()
		ctx, cancel := context.WithTimeout(a.w.ctx(), time.Minute)
		kind, isStart := strings.CutPrefix(act, "start ")
		switch {
		case act == "start many":
			kind = runKinds[which[i]%len(runKinds)]
			var many []string
			for n := range 3 {
				many = append(many, fmt.Sprintf("many-%d-%d", i, n))
				a.told[many[n]] = &toldOf{kind: kind, maybe: true}
			}
			ids = append(ids, many...)
			b, err := wfs[kind].StartAll(ctx, withZero(many))
			for _, id := range many {
				a.told[id].started = err == nil && len(b.Refused) == 0
			}
		case isStart:
			id := fmt.Sprint(kind, "-", which[i]%3) // now and then one that is there
			told := a.told[id]
			if told == nil {
				told = &toldOf{kind: kind}
				a.told[id], ids = told, append(ids, id)
			}
			_, err := wfs[kind].Start(ctx, id, 0)
			told.started = told.started || err == nil
			told.maybe = told.maybe || err != nil && !refusedForSure(err)
		case len(ids) == 0:
		case act == "signal":
			_ = durable.Signal(ctx, of(i), "go", 1)
		case act == "cancel":
			told := a.told[of(i)]
			told.meddled = true
			told.cancelled = a.w.eng.Cancel(ctx, of(i), "enough") == nil || told.cancelled
		case act == "pause":
			_ = a.w.eng.Pause(ctx, of(i), "later")
		case act == "unpause":
			_ = a.w.eng.Unpause(ctx, of(i))
		case act == "resume":
			_, _ = operate.On(a.w.eng).Resume(ctx, of(i), operate.ResumeOptions{})
		}
		switch act {
		case "pass":
			pass(time.Second)
		case "pass long":
			pass(4 * time.Minute)
		case "close":
			if a.ends++; !a.dead() {
				_ = a.w.eng.Close()
			}
			a.w.disk.cut()
		case "recover":
			a.recover()
		case "beside":
			// It loses its lease, another one takes its runs, and then it is back.
			a.ends++
			a.others = append(a.others, a.w.eng)
			a.sleeps(a.w.disk)
			a.w.expire()
			a.boot()
			pass(time.Minute)
			a.sleeps(nil)
		}
		cancel()
	}
	a.mu.Lock()
	a.well = true
	a.mu.Unlock()
	synctest.Wait() // an answer that was drawn before may yet be a kill
	a.next()
	a.settle(ids)
	a.judge(ids)
}

// settle lets every run come to its end.
func (a *adversity) settle(ids []string) {
	ctx := a.w.ctx()
	left := ids
	for range 12 {
		pass(time.Minute)
		left = slices.DeleteFunc(slices.Clone(left), func(id string) bool {
			h, err := a.w.data.Load(ctx, id, store.Cursor{NoEvents: true})
			return errors.Is(err, store.ErrNotFound) || h.Run.Status.Terminal()
		})
		for _, id := range left {
			soon, cancel := context.WithTimeout(ctx, time.Second)
			_ = a.w.eng.Unpause(soon, id)
			if a.told[id].kind == "waits" {
				_ = durable.Signal(soon, id, "go", 1)
			}
			cancel()
		}
	}
	for _, id := range left {
		row := a.w.row(id)
		require.Fail(a.t, "a run does not end", "%s is %s %s %s, of %q (%q is alive)\n%s", id, row.Status, row.Code, row.Reason, row.Owner, a.w.eng.ID(), a.w.log)
	}
}

func (a *adversity) judge(ids []string) {
	ctx := a.w.ctx()
	if !a.lostClaim {
		require.Empty(a.t, a.w.log.find("did not execute"), "%s", a.w.log)
	}
	for _, id := range ids {
		told := a.told[id]
		h, err := a.w.data.Load(ctx, id, store.Cursor{NoEvents: true})
		if errors.Is(err, store.ErrNotFound) {
			require.False(a.t, told.started, "%s was started, and is not there", id)
			continue
		}
		require.NoError(a.t, err)
		require.True(a.t, told.started || told.maybe, "%s was not started, and is there", id)
		status, want := h.Run.Status, store.Completed
		if told.kind == "undone" {
			want = store.Failed
		}
		switch {
		case told.cancelled:
			require.Equal(a.t, store.Cancelled, status, "%s: its cancel was acknowledged", id)
		case told.meddled && status == store.Cancelled:
		default:
			require.Equal(a.t, want, status, "%s: %s %s", id, h.Run.Code, h.Run.Reason)
		}
	}
	page, err := a.w.data.List(ctx, store.Filter{Limit: 1000})
	require.NoError(a.t, err)
	for _, row := range page.Runs {
		require.True(a.t, row.Status.Terminal(), "%s is %s", row.ID, row.Status)
		found, err := operate.On(a.w.eng).Verify(ctx, row.ID)
		require.NoError(a.t, err)
		require.Empty(a.t, found.Findings, "%s", row.ID)
		done := map[string]bool{}
		for _, e := range a.w.events(row.ID) {
			if e.Type == store.StepCompleted {
				require.False(a.t, done[e.Key], "%s of %s is recorded twice", e.Key, row.ID)
				done[e.Key] = true
				if e.Attempt > 0 {
					n := a.bodies[row.ID+" "+e.Key]
					require.Positive(a.t, n, "%s of %s", e.Key, row.ID)
					require.LessOrEqual(a.t, n, 1+a.ends, "%s of %s", e.Key, row.ID)
				}
			}
		}
	}
	stuck, err := operate.On(a.w.eng).Stuck(ctx, 10)
	require.NoError(a.t, err)
	require.Empty(a.t, stuck)
}

// refusedForSure reports whether Start says that the run was not started.
func refusedForSure(err error) bool {
	return errors.Is(err, durable.ErrUnavailable) && !errors.Is(err, store.ErrUnknown) && !errors.Is(err, context.DeadlineExceeded)
}

func withZero(ids []string) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for _, id := range ids {
			if !yield(id, 0) {
				return
			}
		}
	}
}

func TestAnyActsBesideAnyAnswersOfTheStoreStrandNothingAndTellNoLie(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a := &adversity{
			commits: rapid.SliceOfN(anyCommit, 0, 30).Draw(rt, "commits"),
			calls:   rapid.SliceOfN(anyCall, 0, 30).Draw(rt, "calls"),
			bodies:  map[string]int{}, told: map[string]*toldOf{},
		}
		a.o = durable.Options{QuarantineAfter: 100, UnloadAfter: rapid.SampledFrom([]time.Duration{time.Nanosecond, time.Minute}).Draw(rt, "unload after")}
		acts := rapid.SliceOfN(anyAct, 1, 14).Draw(rt, "acts")
		which := rapid.SliceOfN(rapid.IntRange(0, 11), len(acts), len(acts)).Draw(rt, "which")
		if failure := inBubble(t, func(c require.TestingT, t *testing.T) {
			a.t, a.tt, a.w = c, t, newWorld(t)
			a.run(acts, which)
			synctest.Wait()
		}); failure != "" {
			rt.Fatal(failure)
		}
	})
}

// A wait that was begun before a request to pause, and recorded after it, says that the run has
// seen the request: a process that died then left a run that was neither paused nor due.
func TestAPauseThatIsAskedForWhileARunBeginsToWaitIsCarriedOutByWhomeverHasTheRun(t *testing.T) {
	for range 100 { // which of the two is first is for the scheduler to say
		a := &adversity{
			commits: []string{"slow", "", "", "lost after", "killed after"},
			bodies:  map[string]int{}, told: map[string]*toldOf{}, o: durable.Options{QuarantineAfter: 100},
		}
		if failure := inBubble(t, func(c require.TestingT, t *testing.T) {
			a.t, a.tt, a.w = c, t, newWorld(t)
			a.run([]string{"start waits", "pause", "unpause", "close"}, []int{2, 0, 0, 0})
			synctest.Wait()
		}); failure != "" {
			t.Fatal(failure)
		}
	}
}
