package commit

import "github.com/holdfast-dev/holdfast/store"

// flight is the change of a run that is being committed. Until its outcome is
// known it is sent again unchanged, with nothing merged in.
type flight struct {
	change  [1]store.Change // a batch of one
	events  []store.Event   // memory for those of several writes, reused
	sealing store.Sealing   // memory for their sums
	plain   bool            // change has nothing but events, RunID and Expect.Epoch
	writes  []*Write
	before  Head
	again   bool // the change is complete: send it, do not build it
	sent    sent
}

// flights has the memory of flights that have landed: a run that commits nothing at the
// moment has none.
type flights []*flight

// maxFlights is how many flights are kept for others; one has half a kilobyte.
const maxFlights = 256

// next returns a flight.
func (fs *flights) next() *flight {
	n := len(*fs)
	if n == 0 {
		return new(flight)
	}
	f := (*fs)[n-1]
	*fs = (*fs)[:n-1]
	return f
}

// landed takes back a flight whose change is durable by the store's first answer. After any
// other one the store may still be reading the change, and the flight is left to the collector.
func (fs *flights) landed(f *flight) {
	if len(*fs) == maxFlights {
		return
	}
	if f.plain {
		f.change[0].Events = nil
	} else {
		f.change[0] = store.Change{}
		clear(f.events)
		if cap(f.events) > maxFlightEvents {
			f.events = nil
		}
	}
	*fs = append(*fs, f)
}

// maxFlightEvents is for how many events a flight keeps memory.
const maxFlightEvents = 32

// settle answers the callers that wait for the flight.
func (f *flight) settle(err error) {
	for i, w := range f.writes {
		w.unsure = w.unsure || f.sent.unknown
		w.settle(err)
		f.writes[i] = nil
	}
	f.writes = f.writes[:0]
}

// mayFail reports whether all callers that wait for the flight accept a store
// failure as an answer.
func (f *flight) mayFail() bool {
	for _, w := range f.writes {
		if !w.FailFast {
			return false
		}
	}
	return true
}
