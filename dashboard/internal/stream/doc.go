// Package stream sends what happens as server-sent events: to clients that watch one
// run (run.go), and to clients that watch the list (list.go). However many clients
// watch, the store is read once for all of them.
package stream
