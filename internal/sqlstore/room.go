package sqlstore

import "bytes"

// OwnBytes is the size from which a value of an event has memory of its own. Smaller ones share theirs with
// others that were read with it, which spares the collector an object each.
const OwnBytes = 256

// roomBytes is the size of a block, which a value that is kept keeps as a whole.
const roomBytes = 4096

// A Room is memory that small values share, a block after the other. The zero Room is ready for use.
type Room []byte

// Clone copies b; nil stays nil. A nil Room gives each copy memory of its own.
func (r *Room) Clone(b []byte) []byte {
	if r == nil || len(b) == 0 || len(b) >= OwnBytes {
		return bytes.Clone(b)
	}
	if len(*r)+len(b) > cap(*r) {
		*r = make([]byte, 0, roomBytes)
	}
	from := len(*r)
	*r = append(*r, b...)
	return (*r)[from:len(*r):len(*r)]
}
