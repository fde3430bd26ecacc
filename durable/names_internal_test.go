package durable

// Names that tests from outside use of what the package does not export.
type DeadlineError = deadlineError
