//go:build cgo && !linux && !darwin

package sqlite

// bootID is unknown here, so locks are not trusted and only leases decide.
func bootID() string { return "" }

func localDisk(string) bool { return false }
