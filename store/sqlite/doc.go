// Package sqlite keeps runs in one SQLite file that any number of processes on
// one machine may use at the same time. It needs cgo, for the driver
// github.com/mattn/go-sqlite3.
//
//	st, err := sqlite.Open("app.db")
//
// A Change that was acknowledged is on the disk: the file is in WAL mode with
// synchronous=FULL unless Options say otherwise. All writes of a handle go over
// one connection, one after another; reads have a pool of their own and never
// wait for a writer.
//
// # Beside the file
//
// Next to app.db stand app.db-wal and app.db-shm, which are SQLite's and part of
// the data, and the directory app.db.executors. It holds a lock file for each
// executor, by which others see at once that its process is gone, and a file
// that is appended to when something happened that another process may wait
// for. The directory may be deleted while no process uses the database.
//
// An upgrade of the schema leaves a backup, app.db.v1-<time>.backup, and a
// restore what it replaced, app.db.v2-<time>.replaced. They are the operator's to
// remove.
//
// # Looking in
//
// The tables are plain, prefixed with "durable_", and meant to be read:
//
//	sqlite3 app.db "SELECT seq, time, type, key, payload FROM durable_history WHERE run = 'order-42'"
package sqlite
