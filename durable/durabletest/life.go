package durabletest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// A lived is a run that has reached its end.
type lived struct {
	data   *memory.Store
	record *record
	writes []time.Duration // when they were made, from the birth of the run
	output any
	ended  error
	world  string
	wrong  error // the error of Invariant
}

// holds returns the breach of the Invariant, if the run has left one.
func (l *lived) holds(how string) error {
	if l.wrong == nil {
		return nil
	}
	return &breach{fmt.Sprintf("durabletest: the workflow does not survive: %s\nIt ended: %s. durabletest.Invariant says: %s\n%s", how, l.record.outcome(), l.wrong, undone)}
}

// A stop is what happens to a run from outside after a write of its first process:
// it is cancelled, or so much time passes that it is late, or its process ends and none
// comes for as long as an outage.
type stop struct {
	at   int
	late bool
	down bool
}

// outage is longer than most waits that a workflow bounds: of what it has still to wait for
// when it goes on, all may be over.
const outage = 8 * 24 * time.Hour

// isOutage reports whether it is that no process comes for long.
func (f *stop) isOutage() bool { return f != nil && f.down }

// deaths returns the ends of processes that belong to it.
func (f *stop) deaths() []death {
	if f.isOutage() {
		return []death{{at: f.at, after: true}}
	}
	return nil
}

// lives executes the run in one process after the other, each of which ends as
// deaths says, until one brings the run to its end.
func (s *survival) lives(ctx context.Context, b *birth, deaths []death, from *stop) (*lived, error) {
	if s.reset != nil {
		s.reset()
	}
	s.heard() // late messages of an earlier process
	began := time.Now()
	l := &lived{data: memory.OpenAt(b.clock())}
	if err := b.write(ctx, l.data); err != nil {
		return nil, fmt.Errorf("durabletest: writing the run: %w", err)
	}
	for life := 0; ; life++ {
		m := newProcess(l.data.Handle())
		m.wrote = func() { l.writes = append(l.writes, time.Since(began)) }
		if life < len(deaths) {
			m.DieAt(deaths[life].at, deaths[life].after)
		}
		err := s.life(ctx, m, l, from)
		if !m.IsDead() || err != nil && ctx.Err() != nil {
			if err == nil {
				err = s.finish(ctx, l, from != nil && !from.isOutage())
			}
			if err != nil {
				_ = l.data.Close()
				return nil, err
			}
			return l, nil
		}
		m.bury(ctx)
		if s.realTime {
			time.Sleep(time.Millisecond)
		}
		if from.isOutage() {
			time.Sleep(outage)
		}
	}
}

// finish reads the outcome of a run.
func (s *survival) finish(ctx context.Context, l *lived, stopped bool) (err error) {
	if l.record, err = s.read(ctx, l.data); err != nil {
		return err
	}
	s.meets(l.record)
	if s.world != nil {
		l.world = fmt.Sprintf("%+v", s.world())
	}
	if s.invariant != nil {
		l.wrong = s.invariant(l.ended)
	}
	if wrong := s.heard(); wrong != nil && !s.wanted(wrong) {
		return refused(wrong)
	}
	// A stopped run may have had calls refused, and ends with the resulting error.
	if !stopped && isMisuse(l.ended) && !s.wanted(l.ended) {
		return refused(l.ended)
	}
	return nil
}

// wanted reports whether the test expects this error.
func (s *survival) wanted(err error) bool {
	for _, target := range s.failsWith {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// life is one process; err says that the helper could not do its work.
func (s *survival) life(ctx context.Context, m *process, l *lived, from *stop) (err error) {
	if s.boot != nil {
		s.boot()
	}
	eng, err := durable.Open(ctx, m, s.options(s.defs))
	if err != nil {
		return err
	}
	defer func() { _ = eng.Close() }()
	if from != nil && !from.down {
		m.thenAt, m.then = from.at, func() { from.happen(ctx, eng) }
	}
	ctx, end := context.WithTimeout(durable.NewContext(ctx, eng), s.within())
	defer end()
	go func() { // a waiter dies with the process
		select {
		case <-m.Died():
			end()
		case <-ctx.Done():
		}
	}()
	if _, err := eng.Recover(ctx); err != nil && !m.IsDead() {
		return err
	}
	if s.beside != nil {
		done := make(chan struct{})
		go func() { defer close(done); s.beside(ctx, RunID) }()
		defer func() { end(); <-done }()
	}
	if l.ended = s.untilEnd(ctx, m); l.ended == nil {
		l.output, l.ended = s.wait(ctx)
	}
	if errors.Is(l.ended, context.DeadlineExceeded) && ctx.Err() != nil && !m.IsDead() {
		return fmt.Errorf("durabletest: the run has not ended within %s: %s.%s Answer what it waits for with durabletest.Start(durable.WithSignal(…)) or durabletest.Beside. A wait that is to end by itself needs durable.Timeout: the deadline of a context ends none. A child run is executed if durabletest.Engine(durable.Options{Workflows: …}) has its workflow", s.within(), s.standing(eng), whereBlocked())
	}
	return nil
}

// happen does it.
func (f *stop) happen(ctx context.Context, eng *durable.Engine) {
	if f.late {
		time.Sleep(2 * time.Millisecond)
		return
	}
	_ = eng.Cancel(ctx, RunID, "durabletest") // a run that has ended cannot be cancelled
}

// untilEnd waits until the run has ended or was parked, or the process has ended. It
// polls less and less often: the engine's own waits poll every few seconds, which is
// too often in a virtual year.
func (s *survival) untilEnd(ctx context.Context, m *process) error {
	most := 12 * time.Hour
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

// standing says what the run is doing.
func (s *survival) standing(eng *durable.Engine) string {
	st, err := operate.On(eng).Standing(context.Background(), RunID)
	if err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("it is %s", st.Status)
	for i, c := range st.Open {
		text += []string{", at ", " and "}[min(i, 1)] + c.Kind + " " + c.Key
		if c.Failed != "" {
			text += fmt.Sprintf(" (attempt %d; the last one failed: %s)", c.Attempt, c.Failed)
		}
	}
	return text
}
