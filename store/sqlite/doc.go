// Package sqlite keeps runs in one SQLite file that any number of processes on
// one machine may use at the same time. It needs cgo, for the driver
// github.com/mattn/go-sqlite3.
//
//	st, err := sqlite.Open("app.db")
//
// A Change that was acknowledged is on the disk: the file is in WAL mode with
// synchronous=FULL unless Options say otherwise. All writes of a handle go through one connection,
// one after another; reads have their own pool and never wait for a writer.
//
// # Beside the file
//
// Next to app.db are app.db-wal and app.db-shm, which belong to SQLite and are part of the data,
// and the directory app.db.executors. The directory holds a lock file for each executor, by which
// others see at once that its process is gone, and a file to which a process appends when something
// happened that another process may be waiting for. The directory may be deleted while no process
// uses the database.
//
// An upgrade of the schema leaves a backup, app.db.v1-<time>.backup; a restore leaves what it
// replaced, app.db.v2-<time>.replaced. The operator may remove them.
//
// # Looking in
//
// The tables are plain, prefixed with "durable_", and meant to be read:
//
//	sqlite3 app.db "SELECT seq, time, type, key, payload FROM durable_history WHERE run = 'order-42'"
package sqlite
