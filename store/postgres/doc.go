// Package postgres keeps runs in PostgreSQL, for programs on many machines. It
// needs no cgo.
//
// The tables are called durable_runs, durable_events and so on. Without
// Options.Schema they are in the schema that comes first in the connection's
// search path, next to the program's own tables, which is where somebody who
// looks for them looks first, and where the user of the program may create
// tables already; a schema of their own is one option away. The schema is
// looked up once, when the store is opened, and every statement names it, so
// that a search path changed later, by a role setting or a pooler, cannot lead
// to other tables.
//
// Plain checkpoints are one prepared statement on a connection that the store
// keeps for writing. Batches of them are one statement; a batch with other
// Changes is one transaction that locks the rows it needs first, sorted.
//
// A commit whose answer was lost is sent again: by run, seq, epoch and sum the
// store finds out what became of it. Only when that does not succeed in time
// is the error store.ErrUnknown.
//
// Leases and due times are judged by the server's clock.
package postgres
