package durabletest

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/guard"
)

// Option changes how Survives and Replays work.
type Option func(*config)

type config struct {
	engine      durable.Options
	start       []durable.StartOption
	reset, boot func()
	beside      func(ctx context.Context, runID string)
	world       func() any
	invariant   func(ended error) error
	want        any // nil: any output
	fails       bool
	failsWith   []error
	realTime    bool
	sameProcess bool
	varies      map[string]bool // names of steps; "": everything
	removed     bool            // recorded fields that the code lacks are allowed
	sample      int
	limit       time.Duration
	attempts    *attempts // that are made to fail; nil: none are

	mu     sync.Mutex
	misuse error // the first that an engine has logged
	// misuseAt is where the call was made, "file.go:12".
	misuseAt string
}

// Engine makes engines with these options execute the workflows: Types, Codec,
// Encrypt, Errors, and in Workflows the children that the tested one starts. The
// helper sets Lease, Grace, OnBoot, QuarantineAfter, Retention, Archive and
// UnloadAfter itself; without a Logger nothing is logged.
func Engine(o durable.Options) Option { return func(c *config) { c.engine = o } }

// Start starts every run with these options: attributes, a deadline, a signal that
// is present from the beginning.
func Start(o ...durable.StartOption) Option {
	return func(c *config) { c.start = append(c.start, o...) }
}

// Want is the output with which the run must complete. Without it any output is
// accepted that stays the same.
func Want[O any](out O) Option { return func(c *config) { c.want = out } }

// Fails says that the run must fail, with an error that matches each of the targets
// (errors.Is). Without it the run must complete. An error that only a code change
// can fix, such as durable.ErrConcurrent, fails the test unless it is a target.
func Fails(targets ...error) Option {
	return func(c *config) { c.fails, c.failsWith = true, append(c.failsWith, targets...) }
}

// World returns what the run has done to the world of the test: what a fake bank
// has booked, which letters a fake post office has. It is called at the end of
// every run. A run whose process was ended and that was continued must leave the
// same world as the undisturbed one: an effect that happens twice, because a
// durable.IdempotencyKey is missing or because it is outside a step, shows here.
//
// What f returns is compared as fmt prints it with %+v: return values, not
// pointers. It needs Reset, which restores the world before each run.
func World(f func() any) Option { return func(c *config) { c.world = f } }

// Invariant is called at the end of every run, whatever that end: also when the run
// was cancelled or its deadline has passed, in which case World is not compared. It
// returns what is wrong with the world of the test, such as a charge without a
// booking that was not refunded; an error fails the test. ended is nil when the run
// has completed, and otherwise matches durable.ErrRunFailed or ErrRunCancelled.
//
// It reveals a missing compensation: a run that is stopped after the effect undoes
// nothing. A compensation that is registered only after the effect is revealed by a
// fake that has the effect and still returns an error, together with Fails.
func Invariant(f func(ended error) error) Option { return func(c *config) { c.invariant = f } }

// Reset is called before every run that begins from nothing. It resets what
// outlives a process and what the steps act on: the fake bank, the fake stock.
func Reset(f func()) Option { return func(c *config) { c.reset = f } }

// Reboot is called at the beginning of every process. It resets what a process loses
// at its end, package variables and fields that the workflow uses, to their values in
// a new process; without it they keep their values, which they would not in reality.
func Reboot(f func()) Option { return func(c *config) { c.boot = f } }

// Beside is called on its own goroutine in every process once the run is started,
// and does what others do to the run: it answers questions and sends signals. ctx
// carries the engine, and ends with the process. Because the process may end at any
// moment, f must be safe to repeat: give the signals ids (durable.SignalID).
func Beside(f func(ctx context.Context, runID string)) Option {
	return func(c *config) { c.beside = f }
}

// RealTime keeps the test out of a synctest bubble. It is for workflows with
// goroutines, connections or channels from outside the test, for which virtual time
// would stand still or fail. Sleeps and backoffs then take their real time;
// dependence on the time of day, waits outside durable calls and leaked goroutines
// are not found, and no deadline passes.
func RealTime() Option { return func(c *config) { c.realTime = true } }

// SameProcess skips the replay in a separate process, which executes the test
// binary again with only this test. Package variables that are not restored are
// then found only if their old values reveal them.
func SameProcess() Option { return func(c *config) { c.sameProcess = true } }

// Varies says that these steps may return something different when they run again,
// depending on when their process ended. Steps that return something different each
// time, such as a random number or the time, are recognised without it. Without a
// name it applies to every call and to the outcome. What was recorded must be
// replayed the same in any case. A name that no call of any of the runs has fails
// the test: it is misspelt, or no longer needed.
func Varies(steps ...string) Option {
	return func(c *config) {
		if c.varies == nil {
			c.varies = map[string]bool{}
		}
		if len(steps) == 0 {
			c.varies[""] = true
		}
		for _, name := range steps {
			c.varies[name] = true
		}
	}
}

// FieldsRemoved makes Replays accept recorded fields that the code's types lack.
// Without it they fail the test, because a renamed field reads as zero.
func FieldsRemoved() Option { return func(c *config) { c.removed = true } }

// Sample limits the writes at which the process is ended to n, spread evenly over
// the run, and those at which the run is cancelled or its deadline passes to half
// as many. Zero means 40; a negative value means all of them: a run of n writes is
// then executed about 4n times.
func Sample(n int) Option { return func(c *config) { c.sample = n } }

// Within bounds how long a run may take; zero: 400 days of virtual time, or one
// minute with RealTime.
func Within(d time.Duration) Option { return func(c *config) { c.limit = d } }

func configOf(o []Option) (*config, error) {
	c := &config{}
	if err := guard.Options(c, o); err != nil {
		return nil, fmt.Errorf("durabletest: %w", err)
	}
	return c, nil
}

// within returns how long a run may take.
func (c *config) within() time.Duration {
	switch {
	case c.limit > 0:
		return c.limit
	case c.realTime:
		return time.Minute
	}
	return 400 * 24 * time.Hour
}

// sampled returns a sample of the writes 1 to n, of no more than most, including
// the first and the last.
func sampled(n, most int) []int {
	if most < 0 || n <= most {
		most = n
	}
	at := make([]int, 0, most)
	for i := range most {
		w := 1
		if most > 1 {
			w += i * (n - 1) / (most - 1)
		}
		at = append(at, w)
	}
	return at
}

// sampleOf returns how many writes to try, as a part of the sample: one in parts.
// -1: all.
func (c *config) sampleOf(parts int) int {
	switch {
	case c.sample < 0:
		return -1
	case c.sample == 0:
		return 40 / parts
	}
	return max(c.sample/parts, 1)
}

// longLease is the lease of engines in virtual time, where a year must not take millions of
// heartbeats.
const longLease = 60 * 24 * time.Hour

// options returns the options of an engine for these workflows.
func (c *config) options(defs []durable.Definition) durable.Options {
	o := c.engine
	o.Workflows = append(slices.Clone(defs), c.engine.Workflows...)
	// A killed executor is removed explicitly (see process), so its lease may be long.
	o.Lease, o.Grace, o.QuarantineAfter = longLease, -1, 1000
	if c.attempts != nil {
		o.Around = append(slices.Clone(o.Around), c.attempts.around)
	}
	o.OnBoot, o.Retention, o.Archive, o.UnloadAfter = durable.ResumeOnBoot, durable.Retention{}, nil, -1
	h := &listener{config: c, Handler: slog.DiscardHandler}
	if o.Logger != nil {
		h.Handler = o.Logger.Handler()
	}
	o.Logger = slog.New(h)
	return o
}

// A listener observes calls that were refused as misuse: a workflow that ignores
// the error of such a call may still complete.
type listener struct {
	slog.Handler
	*config
}

func (l *listener) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || l.Handler.Enabled(ctx, level)
}

func (l *listener) Handle(ctx context.Context, r slog.Record) error {
	source := ""
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok && isMisuse(err) {
			l.mu.Lock()
			if l.misuse == nil {
				l.misuse = err
			}
			l.mu.Unlock()
		}
		if a.Key == "source" && a.Value.String() != "" {
			source = filepath.Base(a.Value.String())
		}
		return true
	})
	if source != "" {
		l.mu.Lock()
		if l.misuse != nil && l.misuseAt == "" {
			l.misuseAt = source
		}
		l.mu.Unlock()
	}
	if !l.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

func (l *listener) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &listener{config: l.config, Handler: l.Handler.WithAttrs(attrs)}
}

func (l *listener) WithGroup(name string) slog.Handler {
	return &listener{config: l.config, Handler: l.Handler.WithGroup(name)}
}

// heard returns the first misuse that was logged, and forgets it.
func (c *config) heard() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err, at := c.misuse, c.misuseAt
	c.misuse, c.misuseAt = nil, ""
	if err != nil && at != "" {
		return fmt.Errorf("%w\nThe call is at %s", err, at)
	}
	return err
}
