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
	beside         []bool            // acts that are made in the background
	deaf           bool              // notices are lost
	handing        bool              // see disk.handing
	scheduled      bool
	acting         sync.WaitGroup // acts in the background

	mu     sync.Mutex
	asleep *disk          // of a process that cannot beat
	bodies map[string]int // by run and key

	told  map[string]*toldOf
	ids   []string
	waits []*waitOf
	back  int // how often runs were taken back, and their bodies may run again
}

// waitOf is a call of Wait.
type waitOf struct {
	id       string
	eng      *durable.Engine
	returned bool
	err      error
}

// toldOf is what the program was told of a run.
type toldOf struct {
	kind               string
	started, maybe     bool // acknowledged; not refused for sure
	cancelled, meddled bool // a cancel was acknowledged, or was tried
	signalled          bool // what it waits for was acknowledged
	paused, doubt      bool // a pause was tried, and no later act has ended it for sure
	back               bool // it was made to go back: what was told before need not hold
}

var (
	anyCommit = rapid.SampledFrom([]string{"", "", "", "", "lost after", "lost before", "refused", "slow", "held", "late", "part", "killed before", "killed after"})
	anyCall   = rapid.SampledFrom([]string{"", "", "", "", "refused", "lost after", "slow", "held before", "held after"})
	anyAct    = rapid.SampledFrom([]string{
		"start steps", "start waits", "start family", "start undone", "start many",
		"start queued", "start again", "start items", "start first", "start tried", "start once", "start deadline", "start later", "start told",
		"signal", "cancel", "pause", "unpause", "resume", "pass", "pass long", "close", "recover", "beside",
		"jump", "redo", "fork", "edit", "wait", "pause queue", "resume queue", "clean", "trigger", "ask", "start child", "start asks", "start patched", "deploy", "await",
	})
	runKinds = []string{"steps", "waits", "family", "undone", "items", "again"}
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
	a.w.deaf = a.deaf
	a.w.open(a.tt, a.o)
	d := a.w.disk
	d.handing(a.handing)
	d.tamper(func(batch []store.Change, forward func() []error) []error {
		switch a.answer(&a.commits) {
		case "lost after":
			forward()
			return all(batch, store.ErrUnknown)
		case "lost before":
			return all(batch, store.ErrUnknown)
		case "refused":
			return all(batch, errDisk)
		case "late":
			// The server goes on with what it had begun.
			late := begunLate(batch)
			go func() {
				time.Sleep(2 * time.Second)
				a.w.data.Commit(context.Background(), late)
			}()
			return all(batch, store.ErrUnknown)
		case "part":
			n := len(batch) / 2
			return append(d.Store.Commit(context.Background(), batch[:n]), all(batch[n:], store.ErrUnknown)...)
		case "slow":
			time.Sleep(1500 * time.Millisecond)
		case "held":
			time.Sleep(longerThanALease)
		case "killed before":
			a.kill(d)
			return all(batch, store.ErrClosed)
		case "killed after":
			forward()
			a.kill(d)
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

// kill ends a process, which may be one that lives beside others.
func (a *adversity) kill(d *disk) {
	a.tells(func() { a.ends += oneIf(!d.isDead()) })
	d.cut()
}

func (a *adversity) dead() bool { return a.w.disk.isDead() }

// next replaces a process that was killed.
func (a *adversity) next() {
	for a.dead() {
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

// define returns the workflows, as the second build of the program has them or as the first one has.
func (a *adversity) define(second bool) map[string]*durable.Workflow[int, int] {
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
	wfs["again"] = durable.Define("again", func(ctx context.Context, n int) (int, error) {
		if _, err := durable.Step(ctx, "s", a.body); err != nil {
			return 0, err
		}
		if err := durable.Sleep(ctx, time.Minute); err != nil {
			return 0, err
		}
		if n < 2 {
			return 0, durable.Continue(ctx, n+1)
		}
		return n, nil
	})
	wfs["items"] = durable.Define("items", func(ctx context.Context, _ int) (int, error) {
		out, err := durable.Map(ctx, "items", []int{1, 2, 3}, durable.MapOptions{Concurrency: 2}, func(ctx context.Context, _ int) (int, error) {
			if err := durable.Sleep(ctx, 30*time.Second); err != nil {
				return 0, err
			}
			return durable.Step(ctx, "s", a.body)
		})
		return len(out), err
	})
	wfs["first"] = durable.Define("first", func(ctx context.Context, _ int) (int, error) {
		one := durable.Go(ctx, "one", func(ctx context.Context) (int, error) { return durable.Await[int](ctx, "go") })
		two := durable.Go(ctx, "two", func(ctx context.Context) (int, error) { return 2, durable.Sleep(ctx, 2*time.Minute) })
		if _, _, err := durable.First(ctx, "any", one, two); err != nil {
			return 0, err
		}
		return durable.Step(ctx, "s", a.body)
	})
	wfs["tried"] = durable.Define("tried", func(ctx context.Context, _ int) (int, error) {
		return durable.Retry(ctx, "s", durable.Policy{Initial: time.Minute, MaxAttempts: -1}, func(ctx context.Context) (int, error) {
			if n, err := a.body(ctx); durable.Attempt(ctx).Number > 2 {
				return n, err
			}
			return 0, errDisk
		})
	})
	wfs["asks"] = durable.Define("asks", func(ctx context.Context, _ int) (int, error) {
		for n := range 2 {
			req, err := durable.AwaitRequest[int](ctx, "ask", durable.Timeout(3*time.Minute))
			if err != nil && !errors.Is(err, durable.ErrTimeout) {
				return 0, err
			}
			if err == nil {
				if err := req.Reply(ctx, n); err != nil {
					return 0, err
				}
			}
			if _, err := durable.Step(ctx, "s", a.body); err != nil {
				return 0, err
			}
		}
		return 1, nil
	})
	// A child that others know by its id, too.
	wfs["child"] = durable.Define("child", func(ctx context.Context, _ int) (int, error) {
		n, err := kid.Run(ctx, "the-kid-"+durable.RunID(ctx), 0)
		if err != nil {
			return 0, err
		}
		m, err := durable.Step(ctx, "s", a.body)
		return n + m, err
	})
	wfs["patched"] = durable.Define("patched", func(ctx context.Context, _ int) (int, error) {
		if err := durable.Sleep(ctx, time.Minute); err != nil {
			return 0, err
		}
		if second && durable.Patched(ctx, "more") {
			if _, err := durable.Step(ctx, "more", a.body); err != nil {
				return 0, err
			}
		}
		return durable.Step(ctx, "s", a.body)
	})
	wfs["once"] = durable.Define("once", func(ctx context.Context, _ int) (int, error) {
		if _, err := durable.Once(ctx, "o", a.body, durable.Reconcile(func(context.Context) (int, bool, error) { return 0, false, nil })); err != nil {
			return 0, err
		}
		return 1, durable.Sleep(ctx, time.Minute)
	})
	a.o.Workflows, a.o.Build = nil, fmt.Sprint("second ", second)
	for _, wf := range wfs {
		a.o.Workflows = append(a.o.Workflows, wf)
	}
	a.o.Queues = []durable.Queue{{Name: "line", Max: 1}}
	if a.scheduled {
		a.o.Schedules = []durable.Schedule{wfs["items"].Schedule("now and then", durable.Every(5*time.Minute), 0)}
	}
	return wfs
}

// begunLate is a copy of the changes that append: what a server may begin late.
func begunLate(batch []store.Change) (late []store.Change) {
	for _, ch := range batch {
		// What is deleted meanwhile is for the store to keep away.
		if len(ch.Events) == 0 || ch.Create != nil || len(ch.Start) > 0 {
			continue
		}
		ch.Events, ch.Send, ch.Start, ch.Hold, ch.Sent = slices.Clone(ch.Events), slices.Clone(ch.Send), slices.Clone(ch.Start), slices.Clone(ch.Hold), nil
		for i := range ch.Events {
			ch.Events[i].Data, ch.Events[i].Payload = slices.Clone(ch.Events[i].Data), slices.Clone(ch.Events[i].Payload)
		}
		late = append(late, ch)
	}
	return late
}

// tells changes what was told.
func (a *adversity) tells(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// api makes an act of the program. It may run beside others.
func (a *adversity) api(wfs map[string]*durable.Workflow[int, int], eng *durable.Engine, i, which int, act string) {
	ctx, cancel := context.WithTimeout(durable.NewContext(context.Background(), eng), time.Minute)
	defer cancel()
	op := operate.On(eng)
	var id string
	var told *toldOf
	a.tells(func() {
		if len(a.ids) > 0 {
			id = a.ids[which%len(a.ids)]
			told = a.told[id]
		}
	})
	kind, isStart := strings.CutPrefix(act, "start ")
	switch {
	case act == "start many":
		kind = runKinds[which%len(runKinds)]
		var many []string
		a.tells(func() {
			for n := range 3 {
				many = append(many, fmt.Sprintf("many-%d-%d", i, n))
				a.told[many[n]] = &toldOf{kind: kind, maybe: true}
			}
			a.ids = append(a.ids, many...)
		})
		b, err := wfs[kind].StartAll(ctx, withZero(many))
		a.tells(func() {
			for _, id := range many {
				a.told[id].started = a.told[id].started || err == nil && len(b.Refused) == 0
			}
		})
	case isStart:
		id := fmt.Sprint(kind, "-", which%3) // now and then one that is there
		var told *toldOf
		a.tells(func() {
			if told = a.told[id]; told == nil {
				told = &toldOf{kind: kind}
				a.told[id], a.ids = told, append(a.ids, id)
			}
		})
		var so []durable.StartOption
		wf := wfs[kind]
		switch kind {
		case "queued":
			wf, so = wfs["steps"], append(so, durable.OnQueue("line"))
		case "deadline":
			wf, so = wfs["steps"], append(so, durable.Deadline(2*time.Minute))
		case "later":
			wf, so = wfs["once"], append(so, durable.StartAt(time.Now().Add(2*time.Minute)))
		case "told":
			wf, so = wfs["waits"], append(so, durable.WithSignal("go", 1))
		}
		_, err := wf.Start(ctx, id, 0, so...)
		a.tells(func() {
			told.started = told.started || err == nil
			told.maybe = told.maybe || err != nil && !refusedForSure(err)
		})
	case act == "trigger":
		_, _ = op.TriggerSchedule(ctx, "now and then", "")
	case act == "pause queue":
		_ = op.PauseQueue(ctx, "line", "later")
	case act == "resume queue":
		_ = op.ResumeQueue(ctx, "line")
	case act == "clean":
		forget := func() {
			a.back++
			for _, told := range a.told {
				told.maybe = told.maybe || told.started
				told.started, told.cancelled, told.signalled = false, false, false
				told.back = true
			}
		}
		a.tells(forget)
		_, _ = op.Clean(ctx, operate.CleanOptions{All: true})
		a.tells(forget)
	case id == "":
	case act == "signal":
		err := durable.Signal(ctx, id, "go", 1)
		a.tells(func() { told.signalled = told.signalled || err == nil })
	case act == "cancel":
		a.tells(func() { told.meddled = true })
		err := eng.Cancel(ctx, id, "enough")
		a.tells(func() { told.cancelled = err == nil || told.cancelled })
	case act == "pause":
		a.tells(func() { told.paused = true })
		err := eng.Pause(ctx, id, "later")
		a.tells(func() { told.paused, told.doubt = true, told.doubt || err != nil })
	case act == "unpause":
		err := eng.Unpause(ctx, id)
		a.tells(func() { told.paused = told.paused && err != nil })
	case act == "resume":
		a.tells(func() { told.back = told.back || told.kind == "deadline" })
		_, _ = op.Resume(ctx, id, operate.ResumeOptions{})
	case act == "jump" || act == "redo":
		h, err := a.w.data.Load(ctx, id, store.Cursor{})
		if err != nil {
			return
		}
		var seqs []int64
		for e, err := range h.Events {
			if err != nil {
				return
			}
			seqs = append(seqs, e.Seq)
		}
		at := seqs[(which*7+i)%len(seqs)]
		forget := func() {
			a.back++
			told.cancelled, told.signalled, told.back, told.doubt = false, false, true, true
		}
		a.tells(forget)
		if act == "jump" {
			_, _ = op.Jump(ctx, id, at, operate.JumpOptions{Force: which%2 == 0})
		} else {
			_, _ = op.Resume(ctx, id, operate.ResumeOptions{FromCheckpoint: at, ResetFailures: which%2 == 0, Force: which%3 == 0})
		}
		a.tells(forget)
	case act == "ask":
		_, _ = durable.Request[int](ctx, id, "ask", 1)
	case act == "await":
		run, err := wfs["steps"].Handle(ctx, id)
		if err == nil {
			_, _ = run.Wait(ctx)
		}
	case act == "edit":
		forget := func() {
			a.back++
			told.cancelled, told.signalled, told.back, told.doubt = false, false, true, true
		}
		a.tells(forget)
		_, _ = op.Edit(ctx, id, []string{"s", "go", "kid", "two/s"}[which%4], 5, operate.EditOptions{})
		a.tells(forget)
	case act == "fork" && told.kind == "child": // the id of its child says whose it is
	case act == "fork":
		as := fmt.Sprint("fork-", i)
		var copied *toldOf
		a.tells(func() {
			copied = &toldOf{kind: told.kind, meddled: told.meddled, back: true, doubt: true}
			a.told[as], a.ids = copied, append(a.ids, as)
		})
		_, err := op.Fork(ctx, id, operate.ForkOptions{ID: as})
		a.tells(func() {
			copied.started, copied.maybe = err == nil, err != nil
			copied.meddled = copied.meddled || told.meddled
		})
	case act == "wait":
		w := &waitOf{id: id, eng: eng}
		a.tells(func() { a.waits = append(a.waits, w) })
		go func() {
			run, err := wfs["steps"].Handle(durable.NewContext(context.Background(), eng), id)
			if err == nil {
				_, err = run.Wait(context.Background())
			}
			a.tells(func() { w.returned, w.err = true, err })
		}()
	}
}

// run makes the acts, mends the store, and judges what has become of the runs.
func (a *adversity) run(acts []string, which []int) {
	wfs := a.define(false)
	a.boot()
	defer func() {
		for _, eng := range a.others {
			_ = eng.Close()
		}
	}()
	for i, act := range acts {
		a.next()
		switch act {
		case "pass":
			pass(time.Second)
		case "pass long":
			pass(4 * time.Minute)
		case "close":
			if !a.dead() {
				_ = a.w.eng.Close()
			}
			a.kill(a.w.disk)
		case "recover":
			a.recover()
		case "deploy":
			// What is opened from now on is the second build; the first one may live beside it.
			a.define(true)
		case "beside":
			// It loses its lease, another one takes its runs, and then it is back.
			a.tells(func() { a.ends++ })
			a.others = append(a.others, a.w.eng)
			a.sleeps(a.w.disk)
			a.w.expire()
			a.boot()
			pass(time.Minute)
			a.sleeps(nil)
		default:
			eng := a.w.eng
			if len(a.others) > 0 && which[i]%5 == 4 {
				eng = a.others[len(a.others)-1]
			}
			if len(a.beside) > i && a.beside[i] {
				a.acting.Go(func() { a.api(wfs, eng, i, which[i], act) })
				continue
			}
			a.api(wfs, eng, i, which[i], act)
		}
	}
	a.acting.Wait()
	a.tells(func() { a.well = true })
	synctest.Wait() // an answer that was drawn before may yet be a kill
	a.next()
	a.settle()
	a.judge()
}

// settle lets every run come to its end.
func (a *adversity) settle() {
	if a.o.Build == "second true" {
		// A run that has gone the new way is parked by the first build, which therefore goes.
		for _, eng := range a.others {
			_ = eng.Close()
		}
		a.others = nil
		_ = a.w.eng.Close()
		a.kill(a.w.disk)
		a.next()
	}
	ctx := a.w.ctx()
	op := operate.On(a.w.eng)
	if a.scheduled {
		require.NoError(a.t, op.DeleteSchedule(ctx, "now and then"))
	}
	var left []store.Run
	for round := range 90 {
		pass(time.Minute)
		page, err := a.w.data.List(ctx, store.Filter{Limit: 1000})
		require.NoError(a.t, err)
		left = slices.DeleteFunc(page.Runs, func(r store.Run) bool { return r.Status.Terminal() })
		if len(left) == 0 && round > 5 {
			break
		}
		soon, cancel := context.WithTimeout(ctx, time.Second)
		_ = op.ResumeQueue(soon, "line")
		for _, row := range left {
			told := a.told[row.ID]
			if told == nil {
				continue
			}
			if told.paused || told.doubt {
				_ = a.w.eng.Unpause(soon, row.ID)
			}
			if told.back && (row.Code == "jump" || row.Code == "edited") { // asked for, and not carried out: it is for a person
				_, _ = op.Resume(soon, row.ID, operate.ResumeOptions{})
			}
			if told.kind == "asks" {
				_, _ = durable.Request[int](soon, row.ID, "ask", 1)
			}
			if (told.kind == "waits" || told.kind == "told") && !told.signalled {
				_ = durable.Signal(soon, row.ID, "go", 1)
			}
		}
		cancel()
	}
	var all []string
	for _, row := range left {
		all = append(all, fmt.Sprintf("%s is %s %s %s, of %q, due %d\n%s\n", row.ID, row.Status, row.Code, row.Reason, row.Owner, row.WakeAt, strings.Join(a.story(row.ID), "\n")))
	}
	require.Empty(a.t, all, "these runs do not end (%q is alive)\n%s", a.w.eng.ID(), a.w.log)
}

// events are those of the current generation and lineage.
func (a *adversity) events(id string) (all []store.Event) {
	h, err := a.w.data.Load(context.Background(), id, store.Cursor{})
	require.NoError(a.t, err)
	for e, err := range h.Events {
		require.NoError(a.t, err)
		if n := len(all); n > 0 {
			require.GreaterOrEqual(a.t, e.At, all[n-1].At, "time goes backwards in %s", id)
		}
		all = append(all, e)
	}
	return all
}

func (a *adversity) story(id string) (lines []string) {
	for _, e := range a.events(id) {
		lines = append(lines, fmt.Sprint(e.Seq, " ", e.Epoch, " ", e.Branch, " ", e.At, " ", e.Type, " ", e.Key))
	}
	return lines
}

func (a *adversity) judge() {
	ctx := a.w.ctx()
	if !a.lostClaim {
		require.Empty(a.t, a.w.log.find("did not execute"), "%s", a.w.log)
	}
	for _, id := range a.ids {
		told := a.told[id]
		h, err := a.w.data.Load(ctx, id, store.Cursor{NoEvents: true})
		if errors.Is(err, store.ErrNotFound) {
			require.False(a.t, told.started, "%s was started, and is not there", id)
			continue
		}
		require.NoError(a.t, err)
		require.True(a.t, told.started || told.maybe, "%s was not started, and is there", id)
		status, want := h.Run.Status, store.Completed
		if told.kind == "undone" || told.kind == "deadline" {
			want = store.Failed
		}
		switch {
		case told.cancelled:
			require.Equal(a.t, store.Cancelled, status, "%s: its cancel was acknowledged", id)
		case told.meddled && status == store.Cancelled:
		case told.back && told.kind == "deadline" && status == store.Completed:
		default:
			require.Equal(a.t, want, status, "%s: %s %s\n%s\n%s", id, h.Run.Code, h.Run.Reason, strings.Join(a.story(id), "\n"), a.w.log)
		}
		for _, w := range a.waits {
			if w.id != id {
				continue
			}
			require.True(a.t, w.returned || w.eng != a.w.eng, "Wait for %s does not return", id)
			var c *durable.CancelledError
			switch {
			case !w.returned || told.back:
			case w.err == nil:
				require.Equal(a.t, store.Completed, status, "Wait for %s returned a result", id)
			case errors.As(w.err, &c):
				require.Equal(a.t, store.Cancelled, status, "Wait for %s: %s", id, w.err)
			}
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
		for _, e := range a.events(row.ID) {
			if e.Type == store.StepCompleted {
				require.False(a.t, done[e.Key], "%s of %s is recorded twice", e.Key, row.ID)
				done[e.Key] = true
				if e.Attempt > 0 && a.told[row.ID] != nil && !a.told[row.ID].back {
					n := a.bodies[row.ID+" "+e.Key]
					require.Positive(a.t, n, "%s of %s", e.Key, row.ID)
					if a.told[row.ID].kind == "again" {
						n -= 2 // of the generations before
					}
					require.LessOrEqual(a.t, n, int(e.Attempt)+a.ends+a.back, "%s of %s", e.Key, row.ID)
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
		commits := rapid.SliceOfN(anyCommit, 0, 30).Draw(rt, "commits")
		calls := rapid.SliceOfN(anyCall, 0, 30).Draw(rt, "calls")
		a := &adversity{commits: commits, calls: calls, bodies: map[string]int{}, told: map[string]*toldOf{}}
		a.o = durable.Options{QuarantineAfter: 100, UnloadAfter: rapid.SampledFrom([]time.Duration{time.Nanosecond, time.Minute}).Draw(rt, "unload after")}
		a.o.MaxRuns = rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(rt, "max runs")
		a.deaf = rapid.SampledFrom([]bool{false, false, true}).Draw(rt, "deaf")
		a.handing = rapid.Bool().Draw(rt, "handing")
		a.scheduled = rapid.SampledFrom([]bool{false, false, true}).Draw(rt, "scheduled")
		acts := rapid.SliceOfN(anyAct, 1, 14).Draw(rt, "acts")
		which := rapid.SliceOfN(rapid.IntRange(0, 11), len(acts), len(acts)).Draw(rt, "which")
		a.beside = rapid.SliceOfN(rapid.SampledFrom([]bool{false, false, true}), len(acts), len(acts)).Draw(rt, "beside")
		if failure := inBubble(t, func(c require.TestingT, t *testing.T) {
			a.t, a.tt, a.w = c, t, newWorld(t)
			a.run(acts, which)
			synctest.Wait()
		}); failure != "" {
			// Not each run of the same draws fails: the first one has to say what they are.
			rt.Fatalf("%s\ncommits: []string{%s},\ncalls: []string{%s},\nunload after %v, max runs %d, deaf %v, handing %v, scheduled %v\nacts: []string{%s}\nwhich: %#v\nbeside: %#v", failure, quoted(commits), quoted(calls), a.o.UnloadAfter, a.o.MaxRuns, a.deaf, a.handing, a.scheduled, quoted(acts), which, a.beside)
		}
	})
}

func quoted(list []string) string {
	var q []string
	for _, s := range list {
		q = append(q, fmt.Sprintf("%q", s))
	}
	return strings.Join(q, ", ")
}
