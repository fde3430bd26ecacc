// Package memory keeps runs in the memory of the process. It is meant for tests,
// and as a specification of package store that can be read in one sitting.
//
// One mutex guards everything. A plain checkpoint checks one event and appends.
// Any other Change is computed on a draft that reads through to the data but
// writes only to itself; when every precondition holds, code that cannot fail
// applies the draft. A Change happens as a whole or not at all because nothing
// is touched before everything is known.
//
// Data lives as long as a handle on it is referenced, and is gone with the
// process: here "durable" means that it survives Close and is visible through a
// further Handle. There is no Presence, because no other process can see the data.
//
// All bytes are copied on the way in and on the way out: a caller that changes
// its own slice or map never affects the store, nor the other way round.
package memory
