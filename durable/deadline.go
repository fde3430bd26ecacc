package durable

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/storeclock"
	"github.com/holdfast-dev/holdfast/store"
)

// Deadline limits how long a run may take, counted from its start by the
// store's clock, over all restarts. When it passes, the contexts of running step
// bodies end with a cause that matches ErrDeadline, what such a body still completes is
// recorded, no further body begins except those of compensations, and durable calls
// that are not recorded yet return an error that matches it. The run then ends failed, with
// CodeDeadline, and is not offered for Resume. If no process executes the run at
// that moment, the executor that claims it next ends it. A run whose function has
// returned before the deadline is not affected.
//
// d must be above zero and at most MaxSleep, and the run must be able to begin before: a Delay,
// StartAt or Debounce that may hold it back for as long is refused.
func Deadline(d time.Duration) StartOption {
	return func(o *startOptions) {
		if d <= 0 || d > MaxSleep {
			o.refuse(fmt.Errorf("Deadline: %s is not above 0 and at most %s: %w", d, MaxSleep, ErrInvalid))
			return
		}
		o.deadline = d
	}
}

// deadlineError is what durable calls return once the deadline of their run has
// passed, the cause with which the contexts of its step bodies end, and the error
// the run fails with.
type deadlineError struct {
	RunID string    `json:"run_id"`
	At    time.Time `json:"at"` // the deadline
}

func (e *deadlineError) Error() string {
	return fmt.Sprintf("run %s has passed its deadline, %s", e.RunID, e.At.UTC().Format(time.RFC3339Nano))
}

// Is matches ErrDeadline.
func (e *deadlineError) Is(target error) bool { return target == ErrDeadline }

// watchDeadline stops the run when its deadline passes, until the function it
// returns is called. It decides at once when the deadline has passed already, so
// that a run recovered too late begins no body. For a run that is being undone,
// that was decided when the undoing began.
func (st *stopping) watchDeadline() (end func()) {
	r := st.run
	late, decided := r.past.WasLate(r.origin.deadline)
	switch {
	case r.origin.deadline == 0:
		return func() {}
	case decided && late:
		st.ifLate(r.origin.deadline)
		return func() {}
	case decided:
		return func() {}
	}
	st.ifLate(r.eng.now())
	if st.cause() != nil {
		return func() {}
	}
	w := &deadlineWatch{st: st, clock: &r.eng.heart.Clock, at: r.origin.deadline}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unheard = context.AfterFunc(w.clock.Leap(), w.leapt)
	w.timer = time.AfterFunc(w.at.Sub(r.eng.now()), w.look)
	return w.end
}

// A deadlineWatch stops a run when its deadline passes.
type deadlineWatch struct {
	st    *stopping
	clock *storeclock.Clock
	at    store.Time

	mu      sync.Mutex
	timer   *time.Timer
	unheard func() bool // leapt is called no more
	over    bool
}

// look stops the run if its deadline has passed, by the store's own clock: a replay, which may be
// elsewhere, must not find that it is still ahead.
func (w *deadlineWatch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	left := w.at.Sub(w.clock.Surely(time.Now()))
	if left <= 0 {
		w.st.ifLate(w.at)
		return
	}
	if w.clock.Doubtful(time.Now()) {
		w.st.run.eng.heart.BeatSoon()
		left = max(left/2, time.Millisecond)
	}
	w.timer.Reset(left)
}

// leapt is called when the deadline is nearer than the timer knows.
func (w *deadlineWatch) leapt() {
	w.mu.Lock()
	if !w.over {
		w.unheard = context.AfterFunc(w.clock.Leap(), w.leapt)
	}
	w.mu.Unlock()
	w.look()
}

func (w *deadlineWatch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
	w.unheard()
}

// ifLate stops the run if its deadline has passed at the given moment, unless it
// was decided before that the deadline came too late to do so.
func (st *stopping) ifLate(at store.Time) {
	r := st.run
	late, decided := r.past.WasLate(r.origin.deadline)
	if r.origin.deadline != 0 && at >= r.origin.deadline && (late || !decided) {
		st.because(&deadlineError{RunID: r.id, At: r.origin.deadline.Time()})
	}
}

// PastDeadline says why a failed run can no longer be resumed; empty if its
// deadline does not prevent that.
func (d operators) PastDeadline(row *store.Run) string {
	if row.Status != store.Failed || row.DeadlineAt == 0 || row.DeadlineAt > d.eng.now() {
		return ""
	}
	return "its deadline, " + row.DeadlineAt.Time().UTC().Format(time.RFC3339Nano) + ", has passed"
}
