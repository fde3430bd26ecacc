package store

import "context"

// Loader is a store that loads many runs in one call, for less than what that many calls of
// Load cost.
type Loader interface {
	// LoadAll loads each of the named runs with its cursor, and returns one outcome for each, in
	// order. A run may be named more than once, and the list may be empty.
	//
	// S43 Each outcome is what Load would return for that run alone: the history as of one
	// moment, which is not before LoadAll was called (S27), or ErrNotFound if there is no such
	// run. The moments of different runs may differ, and what one run is, or cannot be read,
	// affects no other. An error that concerns them all, such as that of a context that has
	// ended, is the outcome of each.
	LoadAll(ctx context.Context, loads []RunCursor) []Loaded
}

// RunCursor says which run to load, and what of it.
type RunCursor struct {
	RunID string
	Cursor
}

// Loaded is the outcome for one run of LoadAll: its history or an error.
type Loaded struct {
	History *History // nil if Err is not
	Err     error
}

// LoadAll loads many runs: in one call if s is a Loader, otherwise one by one. It returns one
// outcome for each, in order.
func LoadAll(ctx context.Context, s Store, loads []RunCursor) []Loaded {
	if l := CapabilitiesOf(s).Loader; l != nil {
		return l.LoadAll(ctx, loads)
	}
	all := make([]Loaded, len(loads))
	for i := range loads {
		all[i].History, all[i].Err = s.Load(ctx, loads[i].RunID, loads[i].Cursor)
	}
	return all
}

// LoadedNothing returns the outcomes of n loads that all failed with err. For use by stores.
func LoadedNothing(n int, err error) []Loaded {
	all := make([]Loaded, n)
	for i := range all {
		all[i].Err = err
	}
	return all
}
