package durabletest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/misuse"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// RunID is the id of the run in every trial of Survives.
const RunID = "survives"

// replays is how often a finished history is replayed in this process: randomness,
// such as the order of a map, then shows sooner.
const replays = 12

// Survives executes the workflow with this input, and fails the test unless the
// result is the same however often its process ends:
//
//  1. undisturbed, from the beginning to the end. It must complete, unless Fails
//     says otherwise;
//  2. replayed from what that has recorded, some time later, without running the
//     body of any step, and without waiting. The end must be the same to the byte;
//  3. undisturbed once more. Steps that return something different on their own are
//     recognised by that;
//  4. for each write, or a Sample of them, with a process that ends just before it,
//     and one that ends just after it, and a new engine that continues the run; then
//     with processes that end again and again. The run must make the same calls, by
//     order and name, have the same outcome, and leave the same World;
//  5. for each write, or a Sample, cancelled there, with a deadline that passes there,
//     and with a process that ends there and a new engine eight days later, when waits
//     are over. It must reach some end, and the Invariant must hold;
//  6. the replay in a separate process, if t is a *testing.T: the test binary, with
//     only this test. There the test is executed up to this call, and earlier calls
//     of Survives do nothing.
//
// Each of these runs is replayed as well. All have the same seed and time of
// creation: durable.Rand, NewID and Now return the same values in each.
//
// A failure names the call that differs, and the usual causes. Steps do run
// again, as they do after a crash: Reset restores what they act on.
//
// With a *testing.T time is virtual unless RealTime says otherwise; Survives may
// also be called in a bubble (testing/synctest), and then uses that one.
func Survives[I, O any](t testing.TB, wf *durable.Workflow[I, O], in I, o ...Option) {
	t.Helper()
	if err := examine(t, wf, in, o); err != nil {
		t.Fatal(err)
	}
}

// examine is Survives, but returns the failure.
func examine[I, O any](t testing.TB, wf *durable.Workflow[I, O], in I, o []Option) (err error) {
	c, err := configOf(o)
	if err != nil {
		return err
	}
	s := &survival{config: c, defs: []durable.Definition{wf}}
	s.start = func(ctx context.Context, o ...durable.StartOption) error {
		_, err := wf.Enqueue(ctx, RunID, in, append(append([]durable.StartOption(nil), c.start...), o...)...)
		return err
	}
	s.wait = func(ctx context.Context) (any, error) {
		run, err := wf.Handle(ctx, RunID)
		if err != nil {
			return nil, err
		}
		return run.Wait(ctx)
	}
	if c.want != nil && reflect.TypeOf(c.want) != reflect.TypeFor[O]() {
		return fmt.Errorf("durabletest: Want has a value of type %T, and the workflow returns one of type %s", c.want, reflect.TypeFor[O]())
	}
	f := freshCall(t)
	if f.skip() {
		return nil
	}
	left := c.inBubble(t, func(t testing.TB) {
		if f.isChild() {
			f.answer(t, s)
			return
		}
		err = s.survive(t.Context(), f, t.Logf)
	})
	if err == nil && left != nil {
		return left
	}
	return err
}

// A survival is one call of Survives.
type survival struct {
	*config
	defs  []durable.Definition
	start func(ctx context.Context, o ...durable.StartOption) error
	wait  func(ctx context.Context) (output any, err error)
	birth *birth // birth of the runs that are compared

	natural map[string]bool // keys of calls whose results differ on their own
	met     map[string]bool // names and keys of the calls of all runs
}

func (s *survival) survive(ctx context.Context, f *fresh, logf func(string, ...any)) error {
	var err error
	if s.birth, err = s.beget(ctx); err != nil {
		return err
	}
	want, err := s.lives(ctx, s.birth, nil, nil)
	if err != nil {
		return err
	}
	defer func() { _ = want.data.Close() }()
	if err := s.expected(want); err != nil {
		return err
	}
	if err := want.holds("it was executed undisturbed"); err != nil {
		return err
	}
	if err := s.replay(ctx, want.data); err != nil {
		return err
	}
	if err := s.again(ctx, want, logf); err != nil {
		return err
	}
	if err := s.disturb(ctx, want); err != nil {
		return err
	}
	if err := s.kills(ctx, want); err != nil {
		return err
	}
	if err := s.stops(ctx, want); err != nil {
		return err
	}
	if err := s.variesInVain(); err != nil {
		return err
	}
	if s.sameProcess || f == nil {
		return nil
	}
	return s.replayElsewhere(ctx, want.data, f)
}

// kills ends processes at their writes.
func (s *survival) kills(ctx context.Context, want *lived) error {
	for _, at := range sampled(len(want.writes), s.sampleOf(1)) {
		for _, after := range []bool{false, true} {
			if err := s.trial(ctx, want, fmt.Sprintf("its process ended just %s write %d of %d", beforeOrAfter(after), at, len(want.writes)), []death{{at, after}}); err != nil {
				return err
			}
		}
	}
	// Each life makes one more write of progress, and every third recovery is itself
	// ended.
	var again []death
	for i := range 9 {
		again = append(again, death{at: 2 + i%3, after: i%2 == 0})
	}
	return s.trial(ctx, want, fmt.Sprintf("its process ended %d times in a row", len(again)), again)
}

// stops cancels runs, lets deadlines pass, and leaves runs alone for long.
func (s *survival) stops(ctx context.Context, want *lived) error {
	for _, at := range sampled(len(want.writes), s.sampleOf(2)) {
		how := fmt.Sprintf("it was cancelled just after write %d of %d", at, len(want.writes))
		if err := s.stopped(ctx, s.birth, how, &stop{at: at}); err != nil {
			return err
		}
		// A run with its own deadline keeps that one.
		if s.realTime || want.record.row.DeadlineAt != 0 {
			continue
		}
		late, err := s.beget(ctx, durable.Deadline(want.writes[at-1]+time.Millisecond))
		if err != nil {
			return err
		}
		how = fmt.Sprintf("its deadline passed during write %d of %d", at, len(want.writes))
		if err := s.stopped(ctx, late, how, &stop{at: at, late: true}); err != nil {
			return err
		}
		how = fmt.Sprintf("its process ended just after write %d of %d, and the next one began eight days later", at, len(want.writes))
		if err := s.stopped(ctx, s.birth, how, &stop{at: at, down: true}); err != nil {
			return err
		}
	}
	return nil
}

func beforeOrAfter(after bool) string {
	if after {
		return "after"
	}
	return "before"
}

// beget starts the run without executing it.
func (s *survival) beget(ctx context.Context, o ...durable.StartOption) (*birth, error) {
	data := memory.Open()
	defer func() { _ = data.Close() }()
	catch := &catcher{Store: data}
	eng, err := durable.Open(ctx, catch, s.options(nil))
	if err != nil {
		return nil, err
	}
	defer func() { _ = eng.Close() }()
	if err := s.start(durable.NewContext(ctx, eng), o...); err != nil {
		return nil, err
	}
	c := catch.caught.Load()
	if c == nil {
		return nil, errors.New("durabletest: the run was started and not written")
	}
	return &birth{change: *c, at: c.Create.CreatedAt.Time()}, nil
}

// expected compares the end of the undisturbed run with what the test wants.
func (s *survival) expected(l *lived) error {
	if l.record.row.Status == store.Interrupted {
		return fmt.Errorf("durabletest: the undisturbed run did not end: %w", l.ended)
	}
	if s.fails {
		if l.ended == nil {
			return fmt.Errorf("durabletest: the undisturbed run is to fail, and %s", l.record.outcome())
		}
		for _, target := range s.failsWith {
			if !errors.Is(l.ended, target) {
				return fmt.Errorf("durabletest: the undisturbed run is to fail with %q, and failed with: %w", target, l.ended)
			}
		}
		return nil
	}
	if l.ended != nil {
		return fmt.Errorf("durabletest: the undisturbed run is to complete, and did not. If it is to fail, say so with durabletest.Fails: %w%s", l.ended, panickedAt(l.ended))
	}
	if s.want != nil && !reflect.DeepEqual(s.want, l.output) {
		return fmt.Errorf("durabletest: the undisturbed run is to complete with %+v, and %s", s.want, l.record.outcome())
	}
	return nil
}

// again executes the run undisturbed once more, and notes what differs on its own.
func (s *survival) again(ctx context.Context, want *lived, logf func(string, ...any)) error {
	const how = "it was executed once more from the beginning, undisturbed, with the same seed"
	got, err := s.lives(ctx, s.birth, nil, nil)
	if err != nil {
		return fmt.Errorf("durabletest: %s: %w", how, err)
	}
	defer func() { _ = got.data.Close() }()
	s.natural = map[string]bool{}
	had := index(got.record.calls)
	for i := range want.record.calls {
		c := &want.record.calls[i]
		if g := had[c.id()]; g != nil && (g.kind != c.kind || string(g.payload) != string(c.payload)) {
			s.natural[c.key] = true
			if c.kind == store.StepCompleted {
				logf("durabletest: %q returned %s at first and %s then: it is not compared. If it acts on a fake, put that back with durabletest.Reset", c.key, short(string(c.payload)), short(string(g.payload)))
			}
		}
	}
	return s.judge(ctx, want, got, how)
}

// mayVary reports whether a call may have a different result.
func (s *survival) mayVary(key string) bool {
	return s.natural[key] || s.varies[""] || s.varies[key] || slices.ContainsFunc(slices.Collect(maps.Keys(s.varies)), func(name string) bool {
		return history.EscapeName(name) == nameOf(key)
	})
}

// meets notes which calls a run has made.
func (s *survival) meets(r *record) {
	if s.met == nil {
		s.met = map[string]bool{}
	}
	for i := range r.calls {
		s.met[r.calls[i].key], s.met[nameOf(r.calls[i].key)] = true, true
	}
}

// variesInVain returns an error about a name of Varies that no run has met: nothing would
// tell that it excuses nothing.
func (s *survival) variesInVain() error {
	for _, name := range slices.Sorted(maps.Keys(s.varies)) {
		if name != "" && !s.met[name] && !s.met[history.EscapeName(name)] {
			return fmt.Errorf("durabletest: Varies names %q, and no call in any of the runs has that name or key. There were: %s", name, strings.Join(slices.Sorted(maps.Keys(s.met)), ", "))
		}
	}
	return nil
}

// trial executes a run whose processes end as deaths says, and compares it with the
// undisturbed one.
func (s *survival) trial(ctx context.Context, want *lived, how string, deaths []death) error {
	got, err := s.lives(ctx, s.birth, deaths, nil)
	if err != nil {
		return within(how, err)
	}
	defer func() { _ = got.data.Close() }()
	return s.judge(ctx, want, got, how)
}

// within says what was done when the helper failed.
func within(how string, err error) error {
	var b *breach
	if errors.As(err, &b) {
		return err
	}
	return fmt.Errorf("durabletest: %s: %w", how, err)
}

// judge compares a run with the undisturbed one. A difference is wrong unless the
// runs got different inputs: the result of a step that varies, the winner of a race,
// another time. In any case what is recorded must be replayed the same.
func (s *survival) judge(ctx context.Context, want, got *lived, how string) error {
	if got.record.row.Status == store.Interrupted {
		return broken(how, got.record.row.Reason)
	}
	if err := got.holds(how); err != nil {
		return err
	}
	given := compareResults(want.record, got.record, s.mayVary)
	calls := otherCall(want.record, got.record)
	switch {
	case s.varies[""]:
	case given.result != "":
		what := given.result + `. The step ran again, and was given something else than the recorded calls: a variable that another body sets, or a fake that was not put back (durabletest.Reset). A step that may return something else is named with durabletest.Varies`
		if calls != "" {
			what = calls + "\n" + what
		} else if !sameOutcome(want.record, got.record) {
			what = outcomes(want, got) + "\n" + what
		}
		return broken(how, what)
	case given.excused || given.times:
	case calls != "":
		return broken(how, calls)
	case !sameOutcome(want.record, got.record):
		return broken(how, outcomes(want, got))
	}
	if !s.varies[""] && !given.excused && !want.record.raced() && got.world != want.world {
		return fmt.Errorf("durabletest: the workflow does not survive: %s\nIt came to the same, and has left another world:\n  undisturbed: %s\n  continued:   %s\n%s", how, short(want.world), short(got.world), effects)
	}
	return s.replayOnce(ctx, got, how)
}

func outcomes(want, got *lived) string {
	return fmt.Sprintf("the calls are the same and the outcome is another one:\n  undisturbed: %s\n  continued:   %s", want.record.outcome(), got.record.outcome())
}

// replayOnce replays the history of a trial.
func (s *survival) replayOnce(ctx context.Context, l *lived, how string) error {
	if s.boot != nil {
		s.boot()
	}
	difference, err := s.play(ctx, l.data, RunID, s.defs)
	if err != nil {
		return fmt.Errorf("durabletest: %s; replaying it: %w", how, err)
	}
	if difference != "" {
		return broken(how+", and its history was replayed", difference)
	}
	return nil
}

// stopped executes a run that is cancelled or runs late, and checks that it reaches
// an end that can be replayed.
func (s *survival) stopped(ctx context.Context, b *birth, how string, at *stop) error {
	got, err := s.reachesAnEnd(ctx, b, how, at)
	if err != nil {
		return err
	}
	defer func() { _ = got.data.Close() }()
	return s.replayOnce(ctx, got, how)
}

// reachesAnEnd executes a run that must reach an end at which all that is declared holds. The
// caller closes its data.
func (s *survival) reachesAnEnd(ctx context.Context, b *birth, how string, at *stop) (*lived, error) {
	got, err := s.lives(ctx, b, at.deaths(), at)
	if at.isOutage() && as[*breach](err) {
		err = fmt.Errorf("%w\nThat was when %s", err, how)
	}
	if err != nil {
		return nil, within(how, err)
	}
	if got.record.row.Status == store.Interrupted {
		err = broken(how, got.record.row.Reason)
	} else {
		err = got.holds(how)
	}
	if err != nil {
		_ = got.data.Close()
		return nil, err
	}
	return got, nil
}

// pauses holds the times between two replays of the same history. Over all replays each half of
// a minute, an hour, a day, a week and a year has some, and each third of a day, whenever the
// first is: a decision by the clock is mostly one of few ways. An odd number of nanoseconds
// reaches what counts those. The short ones are for what is remembered for a while.
var pauses = []time.Duration{longPause, 1013 * time.Microsecond, longPause, 7*time.Minute + 7*time.Microsecond}

const longPause = 31*24*time.Hour + 5*time.Hour + 17*time.Minute + 13*time.Second + 137_211_101

// replay replays the history of the undisturbed run, at other times of day.
func (s *survival) replay(ctx context.Context, data *memory.Store) error {
	for i := range replays {
		if !s.realTime {
			time.Sleep(pauses[i%len(pauses)])
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

// read returns the record of the run in the store.
func (s *survival) read(ctx context.Context, data *memory.Store) (*record, error) {
	eng, err := durable.Open(ctx, data.Handle(), s.options(nil))
	if err != nil {
		return nil, err
	}
	defer func() { _ = eng.Close() }()
	return recordOf(ctx, eng, data, RunID)
}

// isMisuse reports whether an error says that the workflow is wrong even without any
// kill: only a code change can fix that.
func isMisuse(err error) bool {
	for _, wrong := range []error{
		durable.ErrConcurrent, durable.ErrNested, durable.ErrOutsideRun, durable.ErrNoEngine, durable.ErrInWorkflow, durable.ErrInvalid,
		durable.ErrNotRegistered, durable.ErrNoResult, durable.ErrGoexit,
	} {
		if errors.Is(err, wrong) {
			return true
		}
	}
	return as[*durable.EncodeError](err) || as[*durable.PayloadSizeError](err) || as[*misuse.SameWaitError](err) || as[*misuse.ForgottenError](err) || as[*misuse.ContextDeadlineError](err) ||
		as[*misuse.ConcurrentCallError](err) || as[*durable.UnregisteredTypeError](err) || as[*store.NameError](err)
}

func as[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// causes lists the usual causes of a difference.
var causes = `The workflow function did something else when it was executed again from what is recorded. Usual causes:
  - time.Now, math/rand, os.Getenv, a file: use durable.Now, durable.Rand, durable.NewID, or read it in a step
  - ranging over a map while calls are made or the output is built: sort the keys first
  - a package variable, field or closure that a step's body sets: a body that is not run again does not set it; return it from the step
  - a goroutine of one's own, or select: use durable.Go, durable.Map, durable.First
An example of each: ` + host.Page("guides/testing.md")

// effects lists the usual causes of a difference in the world.
var effects = `Something was done more often or less often than in the undisturbed run. Usual causes:
  - a body that runs again after a crash does its effect again: pass durable.IdempotencyKey on, and have the fake look at it as the real service does
  - an effect outside of a step, in the workflow function or in a deferred call: a replay does it again; put it into a step
  - steps of one name in a range over a map: a replay gives them other items; sort the keys first
  - what durabletest.World shows is not put back by durabletest.Reset
An example of each: ` + host.Page("guides/testing.md")

// undone lists the usual causes of a world that breaks the Invariant.
var undone = `The world must not be left like that, however the run ends. Usual causes:
  - durable.Compensate is registered after the step that it undoes: register it before
  - the compensation undoes only what the code knows to be done: an attempt with an unknown outcome needs undoing too
  - what Invariant looks at is not put back by durabletest.Reset
An example: ` + host.Page("guides/testing.md")

// A breach says how a workflow does not survive.
type breach struct{ text string }

func (b *breach) Error() string { return b.text }

// refused returns the breach for a refused call that only a code change can fix. It
// is a breach wherever the process is ended.
func refused(err error) error {
	return &breach{fmt.Sprintf("durabletest: the workflow does not survive: it makes a call that is refused\n%s", err)}
}

func broken(how, what string) error {
	return &breach{fmt.Sprintf("durabletest: the workflow does not survive: %s\n%s\n%s", how, withoutAdvice(what), causes)}
}

// withoutAdvice leaves out of a definition_changed text how a change of the code is made legal:
// here the code has not changed. Both sides stay, and what differs where the names are equal.
func withoutAdvice(what string) string {
	if !strings.HasPrefix(what, "Definition changed: ") {
		return what
	}
	lines := strings.Split(what, "\n")
	for i, l := range lines {
		if l, _, legal := strings.Cut(l, " Make it legal"); legal {
			l, edited, _ := strings.Cut(l, " was recorded: ") // the rest guesses what was edited
			if edited != "" {
				l += " was recorded."
			}
			return strings.Join(append(lines[:i:i], l), "\n")
		}
		if strings.HasPrefix(l, "Or run this with ") {
			return strings.Join(lines[:i], "\n")
		}
	}
	return what
}
