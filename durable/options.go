package durable

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/runlog"
	"github.com/holdfast-dev/holdfast/store"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Options configure an engine. The zero value works.
type Options struct {
	// Workflows whose code this engine has.
	Workflows []Definition

	// Schedules start runs at times, whichever engine is there then. The first Recover
	// stores those that are not stored yet, and replaces those that are stored with
	// another declaration, with a WARN. A stored schedule that no program declares any
	// longer goes on until operate.Operator.DeleteSchedule removes it.
	Schedules []Schedule

	// Name of this executor for people; empty: host name and process id.
	Name string
	// Build names the build of this program. Histories say which build executed a run
	// from which event on, so that a run whose code has changed can be given back to
	// the build that fits. It has no other effect: any build claims, resumes and
	// replays the runs of any other. If a name has more than 64 bytes, a hash
	// replaces its end. Two programs with the same name count as the same code,
	// unless it ends in "+dirty". Empty: the revision that the go command has stamped
	// into the program, with "+dirty" if its files were changed, or its module
	// version; none, if it has neither.
	Build string

	// OnBoot is what Recover does with interrupted runs, for workflows that do
	// not set it themselves; zero: ResumeOnBoot. It is also what this engine does
	// with the runs of an executor that dies while this one lives, whatever policy
	// that executor had.
	OnBoot BootPolicy
	// BootReason is the failure reason under FailOnBoot; empty:
	// DefaultBootReason.
	BootReason string

	// NoReconcileOnBoot keeps Recover from looking for runs whose row and events
	// contradict each other, or whose version is gone; Resume and RecoverRun look
	// in any case. Zero: it looks.
	NoReconcileOnBoot bool

	// RerunLastStep makes recovery run the last declared step (Steps) of a run once
	// more, under the same IdempotencyKey, if all of them are done and the end of the
	// run is missing (CodeA3). It is for steps whose outcome should be checked again
	// before the run counts as complete. Steps of Once do not run again. Zero:
	// nothing that is recorded runs again.
	RerunLastStep bool

	// Lease is how long the executor counts as alive after a heartbeat; it sends
	// three heartbeats in that time. Once less than a tenth of the lease is left, no
	// step body begins and the contexts of running bodies end (ErrLeaseExpired),
	// until the store takes a heartbeat again. Zero: 30 s; at least 250 ms.
	Lease time.Duration
	// Grace is how long Close waits for running step bodies before it ends their
	// contexts; zero: 10 s; negative: none.
	Grace time.Duration
	// UnloadAfter is how long a whole run must wait to be unloaded: its goroutines
	// end, and when something happens a replay begins them again. A run that sleeps
	// until a moment further away than this is unloaded at once; one that waits for a
	// message, after it has waited this long. Zero: 10 s; negative: never.
	// docs/waiting.md says what this means for deferred calls, locks and goroutines
	// of the workflow function's own; see KeepLoaded.
	UnloadAfter time.Duration
	// MaxRuns limits how many runs claimed from the store are executed at a time;
	// runs started in this process are not limited. Runs beyond it that Recover
	// finds, or that a dead executor leaves, continue as places become free, before
	// any pending run. Children are not held back, because their parent may hold the
	// place they would wait for; nor is one run at a time that is suspected of ending
	// its process. A waiting run gives up its place when it is unloaded (UnloadAfter,
	// KeepLoaded). Zero: 1,000.
	MaxRuns int
	// Queues are the queues that this program declares, with their limits, which the first
	// Recover stores; see Queue. An engine takes runs from queues that it does not declare,
	// too, unless ServeQueues says otherwise.
	Queues []Queue
	// ServeQueues are the queues from which this engine takes runs, also those of dead
	// processes; empty: every one. Runs on no queue are taken by every engine that has their
	// code. An engine starts runs on any queue, and what resumes a run puts it in line there.
	ServeQueues []string
	// QuarantineAfter is how many strikes in a row quarantine a run; zero: 3. A
	// strike is the end of an executor that is known to be dead and in which a body
	// of this run had begun and recorded nothing; the first such end is not on record
	// and does not count.
	QuarantineAfter int

	// Around wraps every attempt of every step body in this process, including those
	// of Once and of compensations; the first function is the outermost. It is for
	// what concerns all steps alike: logging, credentials, rate limits, faults in
	// tests. Only the outcome is recorded.
	//
	// Each function calls next once, with the context it was given or one derived
	// from it, and returns next's error or another one, which becomes the attempt's.
	// It may return an error without calling next, which is a failed attempt. It
	// cannot make a result: returning nil without calling next is a failed attempt
	// (ErrNoResult), and so is swallowing an error of next. A panic in it counts as
	// one of the body. The functions are called concurrently, by the steps of all
	// runs.
	Around []func(ctx context.Context, a AttemptInfo, next func(ctx context.Context) error) error

	// Codec for inputs, results and outputs; nil: JSON. A new codec reads what JSON
	// has written and what it has written itself, and nothing else.
	Codec Codec
	// Types whose values are recorded by name and version; see Type.
	Types []TypeDef
	// CompressAbove is the size in bytes of an encoded value above which it is
	// compressed; zero: DefaultCompressAbove; negative: none is. It does not affect
	// how recorded values are read.
	CompressAbove int
	// Encrypt has the keys with which values are encrypted, before they leave
	// the process; nil: values are not encrypted, and encrypted ones cannot be read.
	// docs/security.md says what is not encrypted.
	Encrypt Keys
	// MaxPayload is the largest size in bytes that an encoded value may have, before
	// it is compressed; zero: what the store takes, 16 MiB unless it says otherwise.
	// A larger value is refused with a *PayloadSizeError before anything is written.
	// MaxPayload must be at least MinMaxPayload and no more than the store takes. A
	// lowered limit applies to runs that are started under it; existing runs keep
	// theirs.
	MaxPayload int
	// Retention deletes runs some time after their end; the zero value keeps
	// everything.
	Retention Retention
	// Archive keeps copies of runs that have ended, and of those that wait; nil:
	// there is no archive. Close waits up to Grace for copies in progress.
	Archive Archive
	// ArchiveSync archives a run that begins to wait for a signal before the wait
	// goes on: an answer is taken only once the copy is written or has failed, which
	// is logged. Zero: a wait is archived in the background.
	ArchiveSync bool
	// Capture says what is recorded of the environment in which a run is started;
	// zero: the working directory and the name of the program.
	Capture Capture
	// Errors that keep their identity in the history.
	Errors []ErrorKind
	// TracerProvider for spans; nil: OpenTelemetry's global one, which does
	// nothing until the program sets one up.
	TracerProvider trace.TracerProvider
	// MeterProvider for metrics; nil: OpenTelemetry's global one, likewise.
	MeterProvider metric.MeterProvider
	// TraceMode says how the spans of a run's processes belong together; zero:
	// TraceParent, one trace for each run.
	TraceMode TraceMode
	// OmitTexts leaves messages of errors and panics, and prompts, out of spans and log
	// lines: an error is named by its type, and the history has its message. The zero
	// value, false, lets them in, cut after a few KiB and with control characters
	// escaped. Payloads are never in either.
	OmitTexts bool
	// Logger for the life of runs and for recovery; nil: slog.Default().
	Logger *slog.Logger
}

// The defaults of Options.
const (
	DefaultLease           = 30 * time.Second
	MinLease               = 250 * time.Millisecond
	DefaultGrace           = 10 * time.Second
	DefaultUnloadAfter     = 10 * time.Second
	DefaultMaxRuns         = 1000
	DefaultQuarantineAfter = 3
	MinMaxPayload          = 1 << 10
	// DefaultBootReason is recorded by FailOnBoot.
	DefaultBootReason = "Server restarted while workflow was running"
)

// withDefaults returns o with its defaults, or an error about a field that cannot be
// used.
func (o Options) withDefaults() (Options, error) {
	var err error
	if o.Archive, err = orNone(o.Archive); err != nil {
		return o, err
	}
	if o.Lease == 0 {
		o.Lease = DefaultLease
	}
	if o.Lease < MinLease {
		return o, fmt.Errorf("durable: Options.Lease is %s; at least %s is needed: %w", o.Lease, MinLease, ErrInvalid)
	}
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	if o.UnloadAfter == 0 {
		o.UnloadAfter = DefaultUnloadAfter
	}
	if o.MaxRuns < 0 || o.QuarantineAfter < 0 {
		return o, fmt.Errorf("durable: Options.MaxRuns and QuarantineAfter must not be negative: %w", ErrInvalid)
	}
	if o.MaxRuns == 0 {
		o.MaxRuns = DefaultMaxRuns
	}
	if o.QuarantineAfter == 0 {
		o.QuarantineAfter = DefaultQuarantineAfter
	}
	if err := o.checkQueues(); err != nil {
		return o, err
	}
	if o.BootReason = guard.Text(o.BootReason, guard.MaxText); o.BootReason == "" {
		o.BootReason = DefaultBootReason
	}
	if !o.OnBoot.valid() {
		return o, fmt.Errorf("durable: Options.OnBoot is no policy: %w", ErrInvalid)
	}
	if o.OnBoot == 0 {
		o.OnBoot = ResumeOnBoot
	}
	if err := o.Retention.rules().Check(); err != nil {
		return o, err
	}
	if o.Retention.Every == 0 {
		o.Retention.Every = DefaultRetentionEvery
	}
	if err := checkAround(o.Around); err != nil {
		return o, err
	}
	if o.Codec == nil {
		o.Codec = JSON()
	}
	if _, err := payload.NameOf(o.Codec); err != nil {
		return o, err
	}
	if o.CompressAbove == 0 {
		o.CompressAbove = DefaultCompressAbove
	}
	if o.MaxPayload != 0 && o.MaxPayload < MinMaxPayload {
		return o, fmt.Errorf("durable: Options.MaxPayload is %d; at least %d bytes are needed: %w", o.MaxPayload, MinMaxPayload, ErrInvalid)
	}
	if o.TraceMode < TraceParent || o.TraceMode > TraceLink {
		return o, fmt.Errorf("durable: Options.TraceMode is no mode: %w", ErrInvalid)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Logger = runlog.Guarded(o.Logger)
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	if o.Name = guard.Text(o.Name, 255); o.Name == "" {
		host, _ := os.Hostname()
		o.Name = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	return o, nil
}

// newSealer returns the Sealer that makes payloads of values under these options.
func (o *Options) newSealer(limits store.Limits) (*payload.Sealer, error) {
	so := payload.Options{Codec: o.Codec, CompressAbove: o.CompressAbove, Encrypt: o.Encrypt, MaxPayload: o.MaxPayload, Limits: limits, Logger: o.Logger}
	for i, t := range o.Types {
		if t.err != nil {
			return nil, fmt.Errorf("durable: Options.Types[%d]: %w", i, t.err)
		}
		so.Types = append(so.Types, t.def)
	}
	return payload.New(so)
}
