package store

import (
	"encoding/binary"
	"hash/crc32"
	"sync"
	"time"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var sealings = sync.Pool{New: func() any { return new(Sealing) }}

// Seal returns the checksum of e in the log of run, given the sum of the event
// before it in the log (0 for the first). It is a CRC-32C (RFC 3720, appendix
// B.4) over every field of e except Epoch and Sum. The chain detects events
// that were damaged, lost, swapped, or moved to another run; it is no defence
// against an attacker who can write to the store.
//
// Durations enter the sum in whole microseconds, as they are stored.
func Seal(run string, before uint32, e *Event) uint32 {
	s := sealings.Get().(*Sealing)
	sum := s.Seal(run, before, e)
	sealings.Put(s)
	return sum
}

// A Sealing is memory for Seal. Whoever appends many events keeps one. The zero Sealing is
// ready for use, by one goroutine at a time; nil has no memory of its own.
type Sealing struct{ buf []byte }

// Seal is the function Seal.
func (s *Sealing) Seal(run string, before uint32, e *Event) uint32 {
	if s == nil {
		return Seal(run, before, e)
	}
	const numbers = 52
	if s.buf == nil {
		s.buf = make([]byte, 0, 512)
	}
	b := s.buf[:numbers]
	binary.LittleEndian.PutUint32(b, before)
	binary.LittleEndian.PutUint64(b[4:], uint64(e.Seq))
	binary.LittleEndian.PutUint32(b[12:], uint32(e.Branch))
	binary.LittleEndian.PutUint32(b[16:], uint32(e.Attempt))
	binary.LittleEndian.PutUint32(b[20:], uint32(e.Ordinal))
	binary.LittleEndian.PutUint64(b[24:], uint64(e.At))
	binary.LittleEndian.PutUint64(b[32:], uint64(e.Took/time.Microsecond))
	binary.LittleEndian.PutUint64(b[40:], uint64(e.Active/time.Microsecond))
	binary.LittleEndian.PutUint32(b[48:], uint32(e.Steps))
	// Each part is preceded by its length, so that no two different events can
	// give the same bytes.
	for _, s := range [...]string{run, string(e.Type), e.Key} {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(e.Data)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(e.Payload)))
	var sum uint32
	if len(b)+len(e.Data)+len(e.Payload) <= cap(b) {
		// To copy a little is quicker than to begin again.
		sum = crc32.Update(0, castagnoli, append(append(b, e.Data...), e.Payload...))
	} else {
		sum = crc32.Update(0, castagnoli, b)
		sum = crc32.Update(sum, castagnoli, e.Data)
		sum = crc32.Update(sum, castagnoli, e.Payload)
	}
	s.buf = b[:0]
	return sum
}
