// Package requests tests starts, signals and cancels that programs ask for by SQL: with
// plain database/sql and statements written by hand, on real SQLite files and a real
// PostgreSQL, with several engines and killed processes. It has no code but tests.
package requests
