// Package doors holds the test that resumes a run in every state through every door:
// the library, the routes of the HTTP API, the form of a page and the terminal. All
// lead to one function of package durable, and the test keeps it that way;
// docs/internals/doors.md is its table. Another one operates queues and schedules through every door on
// every store, and compares what each tells.
package doors
