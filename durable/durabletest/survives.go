package durabletest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// RunID is the id of the run in every trial of Survives.
const RunID = "survives"

// replays is how often a finished history is replayed in this process: what is
// left to chance, such as the order of a map, shows the sooner.
const replays = 12

// Survives executes the workflow with this input, and fails the test unless it
// comes to the same however often its process ends:
//
//  1. undisturbed, from the beginning to the end;
//  2. for each write of that, with a process that ends just before it, and one that
//     ends just after it, and a new engine that continues the run; then once with a
//     process that ends again and again. The run must make the same calls, by order
//     and name, and have the same outcome;
//  3. replayed from what the undisturbed run has recorded, some time later, without
//     running the body of any step. It must end the same to the byte;
//  4. the same in a process of its own, if t is a *testing.T: the test binary, asked
//     for this test alone. There the test is executed as far as this call, and
//     calls of Survives before it do nothing.
//
// The run may fail, as long as it fails alike. A failure names the call that
// differs, and the usual causes. Steps do run again, as they do after a crash: Reset
// puts back what they act on, and Varies is for those that then return something
// else.
//
// It takes about as many executions as twice the writes of one. With a *testing.T
// time is virtual unless RealTime says otherwise; Survives may also be called in a
// bubble (testing/synctest), and then uses that one.
func Survives[I, O any](t testing.TB, wf *durable.Workflow[I, O], in I, o ...Option) {
	t.Helper()
	if err := examine(t, wf, in, o); err != nil {
		t.Fatal(err)
	}
}

// examine is Survives that returns what it would fail with.
func examine[I, O any](t testing.TB, wf *durable.Workflow[I, O], in I, o []Option) (err error) {
	c := configOf(o)
	s := &survival{config: c, defs: []durable.Definition{wf}}
	s.start = func(ctx context.Context, exists bool) (func(context.Context) error, error) {
		// A run that is there may have ended: then nobody takes signals any more.
		run, err := wf.Handle(ctx, RunID)
		if !exists {
			run, err = wf.Start(ctx, RunID, in, c.start...)
		}
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) error { _, err := run.Wait(ctx); return err }, nil
	}
	f := freshCall(t)
	if f.skip() {
		return nil
	}
	c.inBubble(t, func(t testing.TB) {
		if f.isChild() {
			f.answer(t, s)
			return
		}
		err = s.survive(t.Context(), f)
	})
	return err
}

// A survival is one call of Survives.
type survival struct {
	*config
	defs  []durable.Definition
	start func(ctx context.Context, exists bool) (wait func(context.Context) error, err error)
}

func (s *survival) survive(ctx context.Context, f *fresh) error {
	data, writes, err := s.lives(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = data.Close() }()
	want, err := s.read(ctx, data)
	if err != nil {
		return err
	}
	for at := 1; at <= writes; at++ {
		for _, after := range []bool{false, true} {
			if err := s.trial(ctx, want, fmt.Sprintf("its process ended just %s write %d of %d", beforeOrAfter(after), at, writes), []death{{at, after}}); err != nil {
				return err
			}
		}
	}
	// One write more of progress in each life, and every third recovery is itself
	// ended.
	var again []death
	for i := range 9 {
		again = append(again, death{at: 2 + i%3, after: i%2 == 0})
	}
	if err := s.trial(ctx, want, fmt.Sprintf("its process ended %d times in a row", len(again)), again); err != nil {
		return err
	}
	if err := s.replay(ctx, data); err != nil {
		return err
	}
	if s.sameProcess || f == nil {
		return nil
	}
	return s.replayElsewhere(ctx, data, f)
}

func beforeOrAfter(after bool) string {
	if after {
		return "after"
	}
	return "before"
}

// trial executes a run whose processes end as they are told, and compares it with
// the undisturbed one.
func (s *survival) trial(ctx context.Context, want *record, how string, deaths []death) error {
	data, _, err := s.lives(ctx, deaths)
	if err != nil {
		return fmt.Errorf("durabletest: %s: %w", how, err)
	}
	defer func() { _ = data.Close() }()
	got, err := s.read(ctx, data)
	if err != nil {
		return fmt.Errorf("durabletest: %s: %w", how, err)
	}
	switch {
	case got.row.Status == store.Interrupted:
		return broken(how, got.row.Reason)
	case s.varies:
		return nil
	}
	what := otherCall(want, got)
	if what == "" && !sameOutcome(want, got) {
		what = fmt.Sprintf("the calls are the same and the outcome is another one:\n  undisturbed: %s\n  continued:   %s", want.outcome(), got.outcome())
	}
	if what == "" {
		return nil
	}
	if step := otherResult(want, got); step != "" {
		what += "\n" + step + ". If that step ran again and may return something else, say so with durabletest.Varies(); if it acts on a fake, put that back with durabletest.Reset"
	}
	return broken(how, what)
}

// replay replays the history of the undisturbed run, at another time of day.
func (s *survival) replay(ctx context.Context, data *memory.Store) error {
	for i := range replays {
		if !s.realTime && i == 0 {
			time.Sleep(25*time.Hour + 61*time.Minute + 1700*time.Millisecond)
		}
		if s.boot != nil {
			s.boot()
		}
		difference, err := s.play(ctx, data, RunID, s.defs)
		if err != nil {
			return fmt.Errorf("durabletest: replaying the undisturbed run: %w", err)
		}
		if difference != "" {
			return broken("its finished history was replayed", difference)
		}
	}
	return nil
}

// read returns what the store has of the run.
func (s *survival) read(ctx context.Context, data *memory.Store) (*record, error) {
	eng, err := durable.Open(ctx, data.Handle(), s.options(nil))
	if err != nil {
		return nil, err
	}
	defer func() { _ = eng.Close() }()
	return recordOf(ctx, eng, data, RunID)
}

// lives executes the run in one process after the other, each of which ends as
// it is told, until one brings it to its end. It returns the store, and how many
// writes they made.
func (s *survival) lives(ctx context.Context, deaths []death) (data *memory.Store, writes int, err error) {
	if s.reset != nil {
		s.reset()
	}
	data = memory.Open()
	for life := 0; ; life++ {
		m := newProcess(data.Handle())
		if life < len(deaths) {
			m.DieAt(deaths[life].at, deaths[life].after)
		}
		ended, err := s.life(ctx, m)
		writes += m.Writes()
		if !m.IsDead() || err != nil && ctx.Err() != nil {
			if err == nil {
				err = s.misuse(ended, life)
			}
			if err != nil {
				_ = data.Close()
				return nil, 0, err
			}
			return data, writes, nil
		}
		m.bury(ctx)
		// Some time passes between two processes, and not a round one.
		if s.realTime {
			time.Sleep(time.Millisecond)
		} else {
			time.Sleep(1700*time.Millisecond + 13*time.Microsecond)
		}
	}
}

// life is one process. ended is what the run came to, if it did; err is that the
// helper could not do its work.
func (s *survival) life(ctx context.Context, m *process) (ended, err error) {
	if s.boot != nil {
		s.boot()
	}
	eng, err := durable.Open(ctx, m, s.options(s.defs))
	if err != nil {
		return nil, err
	}
	defer func() { _ = eng.Close() }()
	ctx, stop := context.WithTimeout(durable.NewContext(ctx, eng), s.within())
	defer stop()
	go func() { // who waits dies with the process
		select {
		case <-m.Died():
			stop()
		case <-ctx.Done():
		}
	}()
	if _, err := eng.Recover(ctx); err != nil {
		return nil, err
	}
	_, err = eng.Get(ctx, RunID)
	if err != nil && !errors.Is(err, durable.ErrNotFound) {
		return nil, err
	}
	wait, err := s.start(ctx, err == nil)
	if err != nil {
		return nil, err
	}
	if s.beside != nil {
		done := make(chan struct{})
		go func() { defer close(done); s.beside(ctx, RunID) }()
		defer func() { stop(); <-done }()
	}
	if err := s.untilEnd(ctx, m); err != nil {
		ended = err
	} else {
		ended = wait(ctx)
	}
	if errors.Is(ended, context.DeadlineExceeded) && ctx.Err() != nil {
		return nil, fmt.Errorf("durabletest: the run has not ended within %s: %s. Answer what it waits for with durabletest.Start(durable.WithSignal(…)) or durabletest.Beside", s.within(), s.standing(eng))
	}
	return ended, nil
}

// untilEnd waits until the run has ended or was parked, or the process has. It
// looks less and less often: the waits of the engine look every few seconds, which
// in a virtual year is too often.
func (s *survival) untilEnd(ctx context.Context, m *process) error {
	most := time.Hour
	if s.realTime {
		most = 20 * time.Millisecond
	}
	for pause := time.Millisecond; ; pause = min(most, pause+pause/4) {
		h, err := m.Load(ctx, RunID, store.Cursor{NoEvents: true})
		switch {
		case err != nil:
			return err
		case h.Run.Status.Terminal(), h.Run.Status == store.Interrupted && h.Run.Code != "":
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// standing says what the run is at.
func (s *survival) standing(eng *durable.Engine) string {
	st, err := eng.Standing(context.Background(), RunID)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(st)
}

// misuse returns what is wrong with the way in which a run ended, if it is
// something that no kill is needed for.
func (s *survival) misuse(ended error, life int) error {
	var changed *durable.InterruptedError
	switch {
	case errors.Is(ended, durable.ErrConcurrent), errors.Is(ended, durable.ErrNested), errors.Is(ended, durable.ErrOutsideRun):
		return broken("it was executed", ended.Error())
	case life == 0 && errors.As(ended, &changed):
		return fmt.Errorf("durabletest: the undisturbed run did not end: %w", ended)
	}
	return nil
}

// causes is what almost every difference comes from.
const causes = `The workflow function did something else when it was executed again from what is recorded. Usual causes:
  - time.Now, math/rand, os.Getenv, a file: use durable.Now, durable.Rand, durable.NewID, or read it in a step
  - ranging over a map while calls are made or the output is built: sort the keys first
  - a package variable, field or closure that a step's body sets: a body that is not run again does not set it; return it from the step
  - a goroutine of one's own, or select: use durable.Go, durable.Map, durable.First
docs/guides/testing.md has an example of each.`

func broken(how, what string) error {
	return fmt.Errorf("durabletest: the workflow does not survive: %s\n%s\n%s", how, what, causes)
}
