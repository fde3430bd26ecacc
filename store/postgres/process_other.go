//go:build !linux

package postgres

// Elsewhere than on Linux nothing tells one boot from the next for certain, so
// that a process is never concluded to be gone; the session lock still tells.
func bootID() string                          { return "" }
func pidSpace() string                        { return "" }
func startOf(int) (start string, exists bool) { return "", true }
