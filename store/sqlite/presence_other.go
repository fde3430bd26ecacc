//go:build cgo && !linux && !darwin

package sqlite

// bootID is not known here: locks are not believed, and leases alone decide.
func bootID() string { return "" }

func localDisk(string) bool { return false }
