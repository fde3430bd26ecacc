// Package api answers the questions of programs, in JSON: runs, events, payloads, counts
// and health. What changes something is in package act, what goes on in package stream.
package api
