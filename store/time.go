package store

import "time"

// Time is a moment in microseconds since the Unix epoch, UTC. Zero means "not
// set". Backends keep it as a 64-bit integer, so that no precision is lost.
type Time int64

// TimeOf converts t, truncated to microseconds. The zero time.Time gives the
// zero Time.
func TimeOf(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixMicro())
}

// Time converts back, in UTC. The zero Time gives the zero time.Time.
func (t Time) Time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(t)).UTC()
}

// Add returns t + d, with d truncated to microseconds.
func (t Time) Add(d time.Duration) Time { return t + Time(d/time.Microsecond) }

// Sub returns t - u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Microsecond }
