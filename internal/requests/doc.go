// Package requests answers what programs ask for by SQL: the rows that they insert into the
// requests table of the store. drainer.go looks for them, when the store says that there
// are some and at intervals, and deletes old answers; object.go reads what a row holds in
// JSON. What a request means to the engine is in functions that it is given.
package requests
