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
	// Workflows this engine has the code of.
	Workflows []Definition

	// Name of this executor for people; empty: host name and process id.
	Name string
	// Build names the build of this program. Histories say which build has executed a
	// run from where on, so that a run whose code has changed can be given back to the
	// one that fits. It decides nothing else: any build claims, resumes and replays the
	// runs of any other. Of a name of more than 64 bytes a hash replaces the end. Two
	// programs of one name count as the same code, unless it ends in "+dirty". Empty:
	// the revision that the go command has stamped into the program, with "+dirty" if
	// its files were changed, or its module version; none, if it has neither.
	Build string

	// OnBoot is what Recover does with interrupted runs, for workflows that do
	// not say it themselves; zero: ResumeOnBoot. It is also what this engine does
	// with the runs of an executor that dies while this one lives, whatever that
	// one's own policy was.
	OnBoot BootPolicy
	// BootReason is the failure reason under FailOnBoot; empty:
	// DefaultBootReason.
	BootReason string

	// NoReconcileOnBoot keeps Recover from looking for runs whose row and events
	// contradict each other, or whose version is gone; Resume and RecoverRun look
	// in any case. Zero: it looks.
	NoReconcileOnBoot bool

	// RerunLastStep has recovery run the last declared step (Steps) of a run once
	// more, under the same IdempotencyKey, if all of them are done and the end of
	// the run is missing (CodeA3): for steps whose outcome should be looked at
	// again before the run is believed to be complete. Steps of Once are not run
	// again. Zero: nothing that is recorded is run again.
	RerunLastStep bool

	// Lease is how long the executor counts as alive after a beat; it beats
	// three times as often. A tenth of it before its end, no step body begins and
	// the contexts of those under way end (ErrLeaseExpired), until the store takes
	// a beat again. Zero: 30 s; at least 250 ms.
	Lease time.Duration
	// Grace is how long Close waits for step bodies under way before their
	// contexts end; zero: 10 s; negative: none.
	Grace time.Duration
	// UnloadAfter is from which length on a wait of a whole run ends its
	// goroutines, to begin them anew, by a replay, when something happens: a
	// sleep or a time limit that is further away at once, a wait whose end is
	// not known after it has lasted that long. Zero: 10 s; negative: never. What
	// that means for deferred calls, locks and goroutines of the workflow
	// function's own is in docs/semantics.md; see KeepLoaded.
	UnloadAfter time.Duration
	// MaxRuns bounds how many runs claimed from the store are executed at a
	// time; runs started here are not counted out. What Recover finds, or what a
	// dead executor leaves, beyond it is continued as places become free, before
	// anything that is pending. Not held back are children, since their parent may
	// hold the place they would wait for, and one run at a time that is under
	// suspicion of ending its process. A run that waits gives its place up when it
	// is unloaded (UnloadAfter, KeepLoaded). Zero: 1,000.
	MaxRuns int
	// QuarantineAfter is after how many strikes in a row a run is set aside;
	// zero: 3. A strike is the end of an executor which is known to be dead and in
	// which a body of this run had begun and recorded nothing; the first such end
	// is not on record and does not count.
	QuarantineAfter int

	// Around wraps every attempt of every step body in this process, those of
	// Once and of compensations too; the first is the outermost. It is for what
	// concerns all steps alike: logging, credentials, rate limits, faults in
	// tests. Nothing of it is recorded but the outcome.
	//
	// Each calls next, once, with the context it was given or one derived from
	// it, and returns next's error or another one: that is the attempt's. It may
	// return an error without calling next, which is a failed attempt. It cannot
	// make a result: nil without next is a failed attempt (ErrNoResult), and so
	// is an error of next that it swallows. A panic in it is one of the body.
	// They are called concurrently, by the steps of all runs.
	Around []func(ctx context.Context, a AttemptInfo, next func(ctx context.Context) error) error

	// Codec for inputs, results and outputs; nil: JSON. Another one than before
	// reads what JSON has written, and nothing else but its own.
	Codec Codec
	// Types whose values are recorded by name and version; see Type.
	Types []TypeDef
	// CompressAbove is the size in bytes of an encoded value above which it is
	// compressed; zero: DefaultCompressAbove; negative: none is. What was
	// recorded is read whatever this says.
	CompressAbove int
	// Encrypt has the keys with which values are encrypted, before they leave
	// the process; nil: they are not, and encrypted ones cannot be read.
	// docs/semantics.md says what is not encrypted.
	Encrypt Keys
	// MaxPayload is the size in bytes that an encoded value may have, before it
	// is compressed; zero: what the store takes, 16 MiB unless it says
	// otherwise. A larger one is refused with a *PayloadSizeError before
	// anything is written. At least MinMaxPayload, and no more than the store
	// takes. A lower limit than before holds for runs that are started under it:
	// those that exist keep theirs.
	MaxPayload int
	// Retention deletes runs some time after their end; the zero value keeps
	// everything. KeepAWeek() is a preset.
	Retention Retention
	// Archive keeps copies of runs that have ended, and of those that wait; nil:
	// there is none. Close waits for copies under way up to Grace.
	Archive Archive
	// ArchiveSync archives a wait for a signal before the wait goes on: an
	// answer is taken only when the copy is written, or has failed, which is
	// logged. Zero: a wait is archived in the background.
	ArchiveSync bool
	// Capture says what is recorded of the environment a run is started in; zero:
	// the working directory and the name of the program.
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
	// Verbatim lets messages of errors and panics, and prompts, into spans and
	// log lines. They may hold secrets, so false, the zero value, keeps them
	// out: an error is told by its type, and the history has its message.
	// Payloads are in neither, whatever this says.
	Verbatim bool
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

// newSealer returns what makes payloads of values under these options.
func (o *Options) newSealer(limits store.Limits) (*payload.Sealer, error) {
	so := payload.Options{Codec: o.Codec, CompressAbove: o.CompressAbove, Encrypt: o.Encrypt, MaxPayload: o.MaxPayload, Limits: limits, Logger: o.Logger}
	for _, t := range o.Types {
		so.Types = append(so.Types, t.def)
	}
	return payload.New(so)
}
