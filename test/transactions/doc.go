// Package transactions tests steps, starts and signals in database transactions, on
// the stores that have them: with real SQLite files, a real PostgreSQL, killed processes and
// cut connections. It has no code but tests.
package transactions
