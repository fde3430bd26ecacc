package sqlstore

import "github.com/holdfast-dev/holdfast/store"

// LoadInSets has load called for size runs at a time, and returns the outcomes that it
// writes, in order.
func LoadInSets(loads []store.RunCursor, size int, load func(loads []store.RunCursor, into []store.Loaded)) []store.Loaded {
	all := make([]store.Loaded, len(loads))
	for from := 0; from < len(loads); from += size {
		to := min(from+size, len(loads))
		load(loads[from:to], all[from:to])
	}
	return all
}
