// Package stream sends what happens as server-sent events: to those who watch one run
// (run.go), and to those who watch the list (list.go). However many clients watch, the
// store is read once for all of them.
package stream
