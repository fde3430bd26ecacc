package everystore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A trial is one root run and all that it brings about, executed by one process
// after the other, each of which but the last is killed.
type trial struct {
	shape *shape
	b     backend
	d     *data
	id    string // of the root run

	// ran is what the outside world has seen, which no crash undoes: the
	// effects, each with the lives it happened in.
	mu  sync.Mutex
	ran map[string][]int
	// gaps are the lives whose lease could not be renewed in time, as happens to
	// a short one on a busy machine: what a body returns as an error in such a gap
	// is not recorded, and it runs again.
	gaps map[int]bool
	// past is what the store holds at the beginning of the present life: the
	// labels of events and messages, and the effects whose outcome is known.
	past, settled map[string]bool
	// held is what it holds at the end of the last one.
	held []*store.History
}

// result is what a trial came to.
type result struct {
	outcome string
	writes  [][]string // what each write of the first life recorded
	died    []bool     // whether each death came to pass
	events  map[string]bool
	effects map[string]bool
}

// A life is one process of a trial, and what its workflows are defined with.
type life struct {
	*trial
	*process
	n   int
	ctx context.Context // carries the engine; ends with the process
	eng *durable.Engine
}

// did marks that the body of a step whose context ctx is has an effect.
func (l *life) did(ctx context.Context) durable.AttemptInfo {
	a := durable.Attempt(ctx)
	l.effect(a.RunID, fmt.Sprintf("%s/%d", a.Key, a.Number))
	return a
}

// effect marks something that a run does: "charge/2", the second attempt of a
// step; "items[3]", an item; "agent/progress", what is saved in mid-step. It
// must not happen again once that is recorded.
func (l *life) effect(run, what string) {
	l.alive(func() {
		l.trial.mu.Lock()
		defer l.trial.mu.Unlock()
		e := strings.Replace(run, l.trial.id, "r", 1) + " " + what
		l.ran[e] = append(l.ran[e], l.n)
	})
}

// hasDone reports whether an effect has happened, in any life.
func (l *life) hasDone(run, what string) bool {
	l.trial.mu.Lock()
	defer l.trial.mu.Unlock()
	return len(l.ran[strings.Replace(run, l.trial.id, "r", 1)+" "+what]) > 0
}

// until waits until what label says is on record, from whatever life.
func (l *life) until(ctx context.Context, label string) error {
	if l.past[label] {
		return nil
	}
	return l.recorded(ctx, label)
}

// signal sends a signal to the root run, once, however often it is called.
func (l *life) signal(name string, v any, id string) error {
	return ended(durable.Signal(l.ctx, l.trial.id, name, v, durable.SignalID(id)))
}

// cancel cancels the root run.
func (l *life) cancel() error { return ended(l.eng.Cancel(l.ctx, l.trial.id, "enough")) }

// ended takes it for done when there is nobody left to receive it.
func ended(err error) error {
	if errors.Is(err, durable.ErrNotRunning) {
		return nil
	}
	return err
}

// moments are times in the text of errors.
var moments = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)

// try runs a shape on d and kills its processes as deaths says.
func (s *shape) try(t require.TestingT, b backend, d *data, deaths ...death) (res result) {
	d.runs++
	tr := &trial{shape: s, b: b, d: d, id: fmt.Sprintf("run-%06d", d.runs), ran: map[string][]int{}}
	for n := 0; ; n++ {
		var at *death
		if n < len(deaths) {
			at = &deaths[n]
		}
		writes, died, outcome := tr.live(t, n, at)
		if n == 0 {
			res.writes = writes
		}
		if at != nil {
			res.died = append(res.died, died)
		}
		tr.checkEffects(t, n)
		if !died {
			res.outcome = moments.ReplaceAllString(strings.ReplaceAll(outcome, tr.id, "r"), "then")
			break
		}
		d.gone(t, b)
	}
	tr.checkRuns(t)
	res.events, res.effects = map[string]bool{}, map[string]bool{}
	for l := range tr.past {
		// Claims and probation tell of the processes, and what has been sent to a
		// run that was about to end depends on the moment.
		if !claims(l) && !strings.HasPrefix(l, "mail ") && !strings.HasPrefix(l, probationLabel) {
			res.events[l] = true
		}
	}
	for e := range tr.ran {
		res.effects[e] = true
	}
	return res
}

// gapNotice notes that a life has lost its lease for a while.
type gapNotice struct {
	slog.Handler
	l *life
}

func (g gapNotice) Enabled(_ context.Context, level slog.Level) bool { return level == slog.LevelWarn }

func (g gapNotice) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "durable: the lease could not be renewed") {
		g.l.trial.mu.Lock()
		defer g.l.trial.mu.Unlock()
		if g.l.gaps == nil {
			g.l.gaps = map[int]bool{}
		}
		g.l.gaps[g.l.n] = true
	}
	return nil
}

// live is one life: a program that recovers, starts its run, and waits until
// that and all it has brought about have ended.
func (tr *trial) live(t require.TestingT, n int, at *death) (writes [][]string, died bool, outcome string) {
	st, release := tr.d.handle(t, tr.b, n)
	defer release()
	ctx, kill := context.WithTimeout(context.Background(), patience)
	defer kill()
	l := &life{trial: tr, process: newProcess(st, tr.id, at, kill), n: n}
	defs := tr.shape.define(l)
	wf := defs[0].(*durable.Workflow[int, string])
	o := durable.Options{
		Workflows: defs, Errors: tr.shape.errors, Logger: slog.New(gapNotice{slog.DiscardHandler, l}),
		Lease: longLease, Grace: -1, QuarantineAfter: 100,
	}
	if at != nil && !tr.b.tellsAtOnce && tr.d.lapse == nil {
		o.Lease = durable.MinLease
	}
	if tr.b.unloads {
		o.UnloadAfter = time.Nanosecond
	}
	if tr.shape.around != nil {
		o.Around = append(o.Around, tr.shape.around)
	}
	var err error
	l.eng, err = durable.Open(ctx, l.process, o)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.eng.Close()) }()
	if tr.b.keeps {
		if tr.d.beaten == nil {
			tr.d.beaten = map[string]store.Store{}
		}
		tr.d.beaten[l.eng.ID()] = st
	}
	l.ctx = durable.NewContext(ctx, l.eng)

	outcome, err = l.work(wf)
	// Others see a write before the process knows that it dies by it.
	require.NoError(t, l.eng.Close())
	if died = l.isDead(); !died {
		require.NoError(t, err, "life %d; on record: %v", n, l.recordedBy)
	}
	l.process.mu.Lock()
	defer l.process.mu.Unlock()
	return slices.Clone(l.recordedBy), died, outcome
}

// work returns an error when it did not come to its end.
func (l *life) work(wf *durable.Workflow[int, string]) (outcome string, err error) {
	report, err := durable.Recover(l.ctx)
	if err != nil {
		return "", err
	}
	for _, s := range report.Stuck {
		// With a short lease on a busy machine a claim may come too late; the
		// next beat tries again, and there is no code. A paused run is there for
		// the script to let go on.
		if s.Code != "" && s.Code != durable.CodePaused {
			return "", fmt.Errorf("recovery: %+v", report)
		}
	}
	if len(report.Quarantine)+len(report.Failed) > 0 {
		return "", fmt.Errorf("recovery: %+v", report)
	}
	if l.shape.recovered != nil {
		if err := l.shape.recovered(l, report); err != nil {
			return "", err
		}
	}
	run, err := wf.Start(l.ctx, l.trial.id, 7, l.shape.start...)
	if errors.Is(err, durable.ErrNotRunning) { // what the start would send comes too late
		run, err = wf.Handle(l.ctx, l.trial.id)
	}
	if err != nil {
		return "", err
	}
	ctx, stop := context.WithCancel(l.ctx)
	script := make(chan error, 1)
	go func() {
		if l.shape.script == nil {
			script <- nil
			return
		}
		err := l.shape.script(ctx, l)
		if ctx.Err() != nil {
			err = nil
		}
		script <- err
	}()
	out, err := run.Wait(l.ctx)
	outcome = fmt.Sprintf("%s, %v", out, err)
	if l.ctx.Err() == nil {
		err = l.quiet()
	}
	stop()
	return outcome, errors.Join(l.ctx.Err(), <-script, notAnOutcome(err))
}

// notAnOutcome returns err unless it is how a run has ended.
func notAnOutcome(err error) error {
	if errors.Is(err, durable.ErrRunFailed) || errors.Is(err, durable.ErrRunCancelled) {
		return nil
	}
	return err
}

// quiet waits until everything of the trial has ended.
func (l *life) quiet() error {
	for {
		runs, err := l.runs(l.ctx)
		if err != nil {
			return err
		}
		open := ""
		for _, r := range runs {
			if !r.Status.Terminal() {
				open = r.ID + " is " + string(r.Status)
			}
		}
		if open == "" {
			return nil
		}
		select {
		case <-l.ctx.Done():
			return fmt.Errorf("%s: %w", open, context.Cause(l.ctx))
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// runs returns the runs of the trial. It reads the newest of all, a page at a time, until a page
// ends with the run of another trial: a planner takes a third of the time that it takes for a
// search by the beginning of an id. The clocks of two engines differ by less than a page.
func (tr *trial) runs(ctx context.Context) (list []store.Run, err error) {
	for f := (store.Filter{Limit: 20}); ; {
		page, err := tr.d.outside.List(ctx, f)
		if err != nil {
			return nil, err
		}
		own := false
		for _, r := range page.Runs {
			if own = strings.HasPrefix(r.ID, tr.id); own {
				list = append(list, r)
			}
		}
		if f.After = page.Next; f.After == "" || !own {
			return list, nil
		}
	}
}

// look reads what the store holds, past every process.
func (tr *trial) look(t require.TestingT) {
	tr.past, tr.settled = map[string]bool{}, map[string]bool{}
	tr.held = tr.histories(t)
	for _, h := range tr.held {
		run := h.Run.ID
		for e, err := range h.Events {
			require.NoError(t, err)
			tr.past[label(run, tr.id, &e)] = true
			what := strings.Replace(run, tr.id, "r", 1) + " " + e.Key
			switch e.Type {
			case store.StepCompleted, store.StepFailed, store.AttemptFailed:
				tr.settled[fmt.Sprintf("%s/%d", what, e.Attempt)] = true
			case store.ItemCompleted, store.ItemFailed:
				tr.settled[what] = true
			case store.ProgressSaved:
				tr.settled[what+"/progress"] = true
			}
		}
		for i := range h.Inbox {
			tr.past[mailLabel(tr.id, &h.Inbox[i])] = true
		}
	}
}

// histories reads all runs of the trial.
func (tr *trial) histories(t require.TestingT) (hs []*store.History) {
	page, err := tr.d.outside.List(context.Background(), store.Filter{IDPrefix: tr.id, OldestFirst: true})
	require.NoError(t, err)
	require.Empty(t, page.Next, "a shape is small")
	for _, r := range page.Runs {
		h, err := tr.d.outside.Load(context.Background(), r.ID, store.Cursor{All: true})
		require.NoError(t, err)
		var events []store.Event // kept: they are read more than once
		for e, err := range h.Events {
			require.NoError(t, err)
			events = append(events, e)
		}
		h.Events = func(yield func(store.Event, error) bool) {
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
		}
		hs = append(hs, h)
	}
	return hs
}

// checkEffects looks, behind each life, at what it has done: nothing that was
// settled before, nothing twice, and it has left no more open than can be under
// way at once.
func (tr *trial) checkEffects(t require.TestingT, n int) {
	before := tr.settled
	tr.look(t)
	var open []string
	for e, lives := range tr.ran {
		k := 0
		for _, in := range lives {
			if in == n {
				k++
			}
		}
		if k == 0 {
			continue
		}
		if !tr.gaps[n] {
			require.Equal(t, 1, k, "%s was done twice in life %d", e, n)
		}
		require.False(t, before[e], "%s was done again in life %d; it was settled before", e, n)
		if slices.Contains(tr.shape.once, e) {
			require.Len(t, lives, 1, "%s must happen at most once", e)
		}
		if !tr.settled[e] {
			open = append(open, e)
		}
	}
	require.LessOrEqual(t, len(open), max(tr.shape.wide, 1), "under way at the end of life %d: %v", n, open)
}
