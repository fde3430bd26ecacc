package commit

import "github.com/holdfast-dev/holdfast/store"

// flight is the change of a run that is being committed. Until its outcome is
// known it is sent again unchanged, with nothing merged in.
type flight struct {
	change [1]store.Change // a batch of one
	events []store.Event   // memory for those of several writes, reused
	plain  bool            // change has nothing but events, and Expect.Epoch
	writes []*Write
	before Head
	again  bool // the change is complete: send it, do not build it
	sent   sent
}

// settle answers the callers that wait for the flight.
func (f *flight) settle(err error) {
	for i, w := range f.writes {
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
