package calendar

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Count returns how many times there are after the first moment and not after the last, or
// limit if there are more.
func (c *Calendar) Count(after, until time.Time, limit int) int {
	if c.clock == nil {
		from, to := max(after.UnixMicro(), c.anchor-1), until.UnixMicro()
		if to < c.anchor || to <= from {
			return 0
		}
		n := (to-c.anchor)/c.every + 1
		if from >= c.anchor {
			n -= (from-c.anchor)/c.every + 1
		}
		return int(min(n, int64(limit)))
	}
	n := 0
	for t := c.Next(after); n < limit && !t.IsZero() && !t.After(until); t = c.Next(t) {
		n++
	}
	return n
}

// First returns the first n times after a moment and not after the last, in order.
func (c *Calendar) First(n int, after, until time.Time) []time.Time {
	var list []time.Time
	for t := c.Next(after); len(list) < n && !t.IsZero() && !t.After(until); t = c.Next(t) {
		list = append(list, t)
	}
	return list
}

// Last returns the last n of the times after a moment and not after the last, in order.
// It does not visit all the times before them.
func (c *Calendar) Last(n int, after, until time.Time) []time.Time {
	if n <= 0 {
		return nil
	}
	// A window that ends with the last moment, and grows until it has enough.
	for window := time.Second; ; window *= 4 {
		from := until.Add(-window)
		whole := window > 70*365*24*time.Hour || !from.After(after)
		if whole {
			from = after
		}
		var list []time.Time
		for t := c.Next(from); !t.IsZero() && !t.After(until); t = c.Next(t) {
			if len(list) == n {
				copy(list, list[1:])
				list = list[:n-1]
			}
			list = append(list, t)
		}
		if whole || len(list) == n {
			return list
		}
	}
}

// Jitter returns by how much a schedule of this name is late at one of its times: at least 0,
// less than most, and so little that the next time is not overtaken. It is the same in all processes.
func (c *Calendar) Jitter(name string, fire time.Time, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	if next := c.Next(fire); !next.IsZero() {
		most = min(most, next.Sub(fire))
	}
	span := uint64(most / time.Microsecond)
	if span == 0 {
		return 0
	}
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(name), uint64(fire.UnixMicro())))
	return time.Duration(binary.BigEndian.Uint64(sum[:])%span) * time.Microsecond
}
