// Package schedules fires the schedules of a store. It knows the store and the times; the
// engine starts the runs.
//
// A schedule is a record of the store (record.go): what is declared, up to which time all
// its fires are decided, and what became of the last ones. Its times are computed from
// what was decided last (internal/calendar), never from when somebody looked, so it does
// not matter who looks, or when.
//
// What happens when a schedule is due takes two writes, with the starts between them:
//
//	                decide                 start runs            settle, decide what is next
//	due ──────► decided: 02:00 ──────► NAME@…T02:00:00Z ──────► settled up to 02:00, due 03:00
//	    │ a kill: nothing happened │ a kill: whoever looks   │ a kill: the same, and the runs
//	    │                          │ starts what is decided  │ exist already
//
// The compare-and-set of the first write makes one engine's decision count: whether a fire
// is late, and whether the run before has ended, is asked once. The starts are idempotent,
// because the id of a run follows from the fire time. decide.go is the decision, a pure
// function; loop.go carries it out; declare.go and act.go are the other writers, a
// program that opens an engine and an operator.
package schedules
