// Package memory keeps runs in the memory of the process: for tests, and as the
// specification of package store that can be read in one sitting.
//
// Everything is under one mutex. A plain checkpoint looks at one event and
// appends. Any other Change is worked out on a draft that reads through to the
// data but writes only to itself; when every precondition holds, the draft is
// applied by code that cannot fail. So a Change happens as a whole or not at
// all because nothing is touched before all is known.
//
// Data lives as long as a handle on it is referenced, and is gone with the
// process: "durable" means here that it survives Close and a further Handle.
// There is no Presence, since nobody outside the process can see the data.
//
// All bytes are copied, on the way in and on the way out: what a caller does to
// a slice or map of its own never reaches the store, or the other way round.
package memory
