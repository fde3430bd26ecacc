//go:build !linux

package postgres

import "syscall"

// Only Linux bounds unacknowledged data per socket in a portable way; elsewhere
// the system's limit applies.
func limitUnacknowledged(string, string, syscall.RawConn) error { return nil }
