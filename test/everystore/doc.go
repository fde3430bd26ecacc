// Package everystore holds the tests of each way to wait, to branch out and to be
// undone on every store: in memory with a virtual clock, on SQLite files and on a
// PostgreSQL server, with a crash before and after every durable write. It has no code
// of its own.
package everystore
