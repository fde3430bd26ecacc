package durable

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"time"
)

// Now returns the time of the last event of the scope that ctx belongs to. In a
// workflow function it is the same on replay as it was live, and costs nothing. Before the
// first call it is when the run was created, which may be long before it began if it was
// delayed or on a queue: make a step that returns time.Now() if that matters. In
// a step's body and outside a run it is the time of the process's clock.
func Now(ctx context.Context) time.Time {
	if s, ok := inScope(ctx); ok {
		return s.lastAt.Time()
	}
	return time.Now()
}

// Rand returns a source of random numbers. In a workflow function it is seeded
// from the run and the place of the call, so that a replay draws the same numbers;
// in a step's body and outside a run it is seeded at random. Do not use it for
// secrets.
func Rand(ctx context.Context) *rand.Rand {
	s, ok := inScope(ctx)
	if !ok {
		return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	n := &s.draws
	if s.seat.performing.Load() {
		n = &s.seat.drawn // no replay runs the body: what it draws must not count for what is drawn after it
	}
	*n++
	b := make([]byte, 0, 64)
	b = binary.BigEndian.AppendUint64(b, seedIn(s))
	b = binary.BigEndian.AppendUint32(b, uint32(int(s.replay.Made())-len(s.empty))) // calls on record
	b = binary.BigEndian.AppendUint32(b, *n)
	b = append(b, s.path...)
	if n == &s.seat.drawn {
		b = append(b, 0) // in no path
	}
	sum := sha256.Sum256(b)
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])))
}

// NewID returns a random identifier in the form of a UUID version 4 (RFC 9562).
// In a workflow function a replay gets the same one.
func NewID(ctx context.Context) string {
	r := Rand(ctx)
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], r.Uint64())
	binary.BigEndian.PutUint64(b[8:], r.Uint64())
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// seedIn returns the seed for numbers drawn in a scope now: the run's or, in a
// fork, the one under which the next recorded call was made.
func seedIn(s *scope) uint64 {
	if next := s.replay.Upcoming(); next != nil {
		for _, f := range s.run.origin.forkSeeds {
			if next.Seq <= f.Until {
				return f.Uint64()
			}
		}
	}
	return s.run.origin.seed
}
