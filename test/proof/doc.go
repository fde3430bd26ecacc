// Package proof holds the tests that need real processes: killed with SIGKILL
// in the middle of their work, or stopped past their lease, on every store that
// outlives a process. It has no code of its own.
package proof
