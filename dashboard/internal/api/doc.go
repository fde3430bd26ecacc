// Package api answers the questions of programs, in JSON: runs, events, payloads, counts
// and health. Package act changes runs, package stream reports live changes.
package api
