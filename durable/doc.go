// Package durable makes Go functions survive crashes.
//
// # The model
//
// A workflow is a plain Go function, registered by [Define]. A run is one execution
// of it, under an id of the program's choice. The function marks what touches the
// world: the body of a [Step], [Do], [Retry] or [Once]. When a body ends, its outcome
// is committed to a [store.Store] before the call returns. That is a checkpoint; a
// failed attempt is one too, with the time of the next attempt.
//
// After a crash another execution replays the run: the function runs again from the
// top, and each call that has a recorded outcome returns it without running its body.
// The first call without an outcome runs, with the attempt that the history had
// reached. So between its durable calls the function must do the same each time: the
// clock, random numbers, files and the network belong in a body. [Now], [Rand] and
// [NewID] give values that are the same on replay.
//
// # A program
//
// The program opens a store and an engine, recovers, and starts runs. It is the same
// on the first boot and after a crash:
//
//	st, err := sqlite.Open("app.db")
//	...
//	checkout := durable.Define("checkout", Checkout)
//	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{checkout}})
//	...
//	defer eng.Close()
//	ctx = durable.NewContext(ctx, eng)
//	report, err := durable.Recover(ctx)
//	...
//	run, err := checkout.Start(ctx, "order-7", order)
//	receipt, err := run.Wait(ctx)
//
// # Guarantees
//
//   - An outcome that a call has returned is never lost and never changes.
//   - A body runs at least once. What it calls gets [IdempotencyKey], which is the
//     same in every attempt and after every crash.
//   - Several processes may share a store. Each claims the runs it executes, and a
//     fence on every write keeps a process that has lost a run from extending it.
//   - A run whose code, data or executor is missing is parked with a reason, which
//     operate.Operator.Stuck lists with what to do. It is not lost and does not fail.
//
// # Errors
//
// Every durable call in a workflow function can return these errors, beside its own:
//
//   - The run stops here: [ErrCancelled], [ErrDeadline], [ErrPaused], [ErrShutdown],
//     [ErrUnloaded], [ErrLost]; [*DefinitionChangedError], [*UndecodableError],
//     [*UnrecordedError] and [*DamagedError] for a run that is parked. Return them. All but
//     the first two leave the run as it is: it continues, here or elsewhere, and what the
//     function returns is not its result.
//   - The call is wrong: [ErrOutsideRun], [ErrNested], [ErrConcurrent], [ErrInvalid] for an
//     empty name or one of more than 255 bytes.
//
// Functions and methods that reach the store from outside of a run can return
// [ErrUnavailable] when it does not answer, and the cause of their context's end. Those that
// take the engine from a context return [ErrNoEngine] if it has none and there is no default.
// After Close, what starts or continues runs returns [ErrClosed]; Get, List, Watch, Signal and
// Cancel still work while the store is open.
//
// # Where things are
//
//   - Bodies: [Step], [Retry] with a [Policy], [Once], [SaveProgress], [Attempt].
//   - Waiting and messages: [Sleep], [Await], [Signal], [Publish], [Request].
//   - Structure: [Go], [Group], [First], [Map], [Compensate], [Continue], and a
//     [Workflow] started within a run, as its child.
//   - Changes of code and data: [Version], [Patched], [Type].
//   - Control: [Engine.Cancel], [Engine.Pause], [Recover].
//
// What a workflow, or the program around it, does by its context is a function: [Signal],
// [Request], [Recover]. What is done to a run by its id, by someone who has the engine, is
// a method: [Engine.Cancel], [Engine.Pause], [Engine.Get], [Engine.List]. [Signal] and
// [Recover] are also methods, since both sides need them. A [Run] that was started or
// found is asked itself: [Run.Wait], [Run.Result], [Run.Status].
//
// Package operate resumes, rewinds, edits, forks, verifies and repairs stored runs.
// Package durabletest kills a workflow at each of its writes and compares the results.
// For those who change this package, docs/architecture.md says what is in which file.
package durable
