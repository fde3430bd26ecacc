//go:build !linux

package postgres

// Only Linux identifies a boot reliably. Elsewhere a process is never concluded
// to be gone, but the session lock still works.
func bootID() string                          { return "" }
func pidSpace() string                        { return "" }
func startOf(int) (start string, exists bool) { return "", true }
