// Package store is the contract between the durable engine and the place where
// runs are kept. It holds the records (Run, Event, Branch, Message, Executor),
// the one interface a backend implements (Store), the errors it returns and the
// pure rules both sides share: which status may follow which, which events are
// in a branch's lineage, how an event is sealed.
//
// # The model in one screen
//
// A run is one execution of a workflow. Its log of events, numbered from 1
// without a gap, is the truth; its row is a cache of what the log says, kept so
// that runs can be listed and claimed by index. Events are only ever appended.
//
// The holder of a run's epoch may append. Claiming a run raises its epoch and
// appends one event that carries it, in one transaction. An append is accepted
// only directly after an event with the writer's own epoch. An owner that was
// replaced, however long it slept, therefore meets either an occupied sequence
// number or a foreign epoch, and learns that it is fenced. That needs no lock
// on the row: the log is its own fence.
//
// Every Change goes through Store.Commit: a batch of Changes that share one
// durable commit, while each succeeds or fails on its own. Claim, Beat and Delete
// write on their own.
//
// The clauses of the contract are numbered (S1, S2, ...) where they are stated,
// in the comments of this package; docs/internals/store-clauses.md lists them, and each
// case of package conformance names the ones it checks.
package store
