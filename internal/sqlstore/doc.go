// Package sqlstore holds what the SQL backends have in common: how the records
// of package store become columns and come back, how a filter becomes a
// condition with bound parameters, how numbered migrations run, and the
// decisions of the contract that do not depend on a dialect.
//
// Go is shared, SQL is not. Each backend keeps whole statements in its own
// embedded .sql files, named with a line "-- name: append", so that a statement
// can be read, and pasted into the database's shell, as it is. SQL text
// assembled here consists only of constants of this package: caller input
// always goes into a bound parameter.
//
// Files are named after the nouns of package store: run, event, message,
// branch, executor, claim, filter.
package sqlstore
