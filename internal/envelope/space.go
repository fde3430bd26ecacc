package envelope

// A Space is where the envelopes of one scope's results are made, one after the other: those
// of small values share an allocation. An envelope is never overwritten, so it may be kept; it
// then keeps at most maxSpace bytes. The zero Space is ready for use, by one goroutine at a
// time. A nil Space gives each envelope memory of its own.
type Space struct {
	free []byte
	size int // of the last allocation
}

const (
	maxSpace = 1 << 10
	// Small is the largest envelope, in bytes, that shares an allocation.
	Small = maxSpace / 4
)

// Take returns an empty slice with room for n bytes. Append to it, and give the result to
// Took.
func (s *Space) Take(n int) []byte {
	if s == nil || n > Small {
		return make([]byte, 0, n)
	}
	if cap(s.free) < n {
		// The first one has room for one envelope: a scope may have only one result.
		s.size = max(n, min(2*s.size, maxSpace))
		s.free = make([]byte, 0, s.size)
	}
	return s.free[:0]
}

// Took returns what was made of the slice of Take, as an envelope of its own.
func (s *Space) Took(b []byte) []byte {
	// Append may have moved it.
	if s != nil && cap(b) == cap(s.free) && cap(b) > 0 && &b[:1][0] == &s.free[:1][0] {
		s.free = s.free[len(b):cap(s.free)][:0]
	}
	return b[:len(b):len(b)]
}
