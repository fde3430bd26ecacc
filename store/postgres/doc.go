// Package postgres keeps runs in PostgreSQL, for programs on many machines. It
// needs no cgo.
//
// The tables are called durable_runs, durable_events and so on. Without
// Options.Schema they are in the first schema of the connection's search path,
// next to the program's own tables: people look for them there first, and the
// program's role may usually create tables there already. Options.Schema puts
// them into a schema of their own. The schema is looked up once, when the store
// is opened, and every statement names it, so that a search path changed later,
// by a role setting or a pooler, cannot lead to other tables.
//
// Plain checkpoints are one prepared statement on a connection that the store
// keeps for writing. Batches of them are one statement; a batch with other
// Changes is one transaction that locks the rows it needs first, sorted.
//
// A commit whose answer was lost is sent again: by run, seq, epoch and sum the
// store finds out whether it took effect. Only if that does not succeed in time
// is the error store.ErrUnknown.
//
// The server's clock judges leases and due times.
package postgres
