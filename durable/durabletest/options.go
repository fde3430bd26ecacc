package durabletest

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// Option changes how Survives and Replays work.
type Option func(*config)

type config struct {
	engine      durable.Options
	start       []durable.StartOption
	reset, boot func()
	beside      func(ctx context.Context, runID string)
	realTime    bool
	sameProcess bool
	varies      bool
	limit       time.Duration
}

// Engine has the workflows executed by engines with these options: Types, Codec,
// Encrypt, Errors, and in Workflows the children that the tested one starts. Lease,
// Grace, OnBoot, QuarantineAfter, Retention, Archive and UnloadAfter are the
// helper's own; without a Logger nothing is logged.
func Engine(o durable.Options) Option { return func(c *config) { c.engine = o } }

// Start has every run started with these options: attributes, a deadline, a signal
// that is there from the beginning.
func Start(o ...durable.StartOption) Option {
	return func(c *config) { c.start = append(c.start, o...) }
}

// Reset is called before every run that begins from nothing. It puts back what
// outlives a process and that the steps act on: the fake bank, the fake stock.
func Reset(f func()) Option { return func(c *config) { c.reset = f } }

// Reboot is called at the beginning of every process. It puts what a process
// loses at its end, package variables and fields that the workflow uses, back to
// what a new process has; without it they keep their values, as they would
// not.
func Reboot(f func()) Option { return func(c *config) { c.boot = f } }

// Beside is called on a goroutine of its own in every process once the run is
// started, and does what others do to it: answers what it asks, sends
// signals. ctx carries the engine, and ends with the process. As the process may end
// at any moment, f must be such that it can be done again: give the signals
// their ids (durable.SignalID).
func Beside(f func(ctx context.Context, runID string)) Option {
	return func(c *config) { c.beside = f }
}

// RealTime keeps the test out of a synctest bubble. It is for workflows with
// goroutines, connections or channels from outside of the test, for which virtual
// time would stand still or fail. Sleeps and backoffs then last as long as they
// say, and dependence on the time of day is not found.
func RealTime() Option { return func(c *config) { c.realTime = true } }

// SameProcess leaves out the replay in a process of its own, in which the test
// binary is executed again with this test alone. Package variables that are not
// restored are then found only as far as their old values show.
func SameProcess() Option { return func(c *config) { c.sameProcess = true } }

// Varies says that steps which run again may return something else, such as a new
// number, or that who wins a race is left to chance. Runs that were ended and
// continued need then not come to the same calls and outcome as the one in peace;
// a replay of what is recorded still must.
func Varies() Option { return func(c *config) { c.varies = true } }

// Within bounds how long a run may take; zero: 400 days of virtual time, or one
// minute of RealTime.
func Within(d time.Duration) Option { return func(c *config) { c.limit = d } }

func configOf(o []Option) *config {
	c := &config{}
	for _, f := range o {
		f(c)
	}
	return c
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

// options returns those of an engine for these workflows.
func (c *config) options(defs []durable.Definition) durable.Options {
	o := c.engine
	o.Workflows = append(slices.Clone(defs), c.engine.Workflows...)
	// A killed executor is removed by hand (see process), so that its lease may be
	// long: in a virtual year nobody beats a million times.
	o.Lease, o.Grace, o.QuarantineAfter = 6*time.Hour, -1, 1000
	o.OnBoot, o.Retention, o.Archive, o.UnloadAfter = durable.ResumeOnBoot, durable.Retention{}, nil, -1
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
