package envelope

// A Space is where the envelopes of one scope's results are made, one after the other: those
// of small values share an allocation. An envelope is overwritten only after Return, so it may be
// kept; it then keeps at most maxSpace bytes. The zero Space is ready for use, by one goroutine at
// a time. A nil Space gives each envelope memory of its own.
type Space struct {
	chunk []byte // the last allocation
	used  int    // bytes of it
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
	if len(s.chunk)-s.used < n {
		// The first one has room for one envelope: a scope may have only one result.
		s.chunk, s.used = make([]byte, max(n, min(2*len(s.chunk), maxSpace))), 0
	}
	return s.chunk[s.used:s.used]
}

// Took returns what was made of the slice of Take, as an envelope of its own.
func (s *Space) Took(b []byte) []byte {
	// Append may have moved it.
	if s != nil && len(b) > 0 && s.used < len(s.chunk) && &b[0] == &s.chunk[s.used] {
		s.used += len(b)
	}
	return b[:len(b):len(b)]
}

// Return gives back the envelope that was made last, which nobody keeps: the next one is made in
// its place. It does nothing for any other.
func (s *Space) Return(b []byte) {
	if n := s.used - len(b); len(b) > 0 && n >= 0 && &b[0] == &s.chunk[n] {
		s.used = n
	}
}
