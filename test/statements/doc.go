// Package statements makes the statements of the PostgreSQL store fail, and the calls of the SQLite
// store, one after the other and with each class of error. It has no code of its own.
package statements
