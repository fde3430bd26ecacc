//go:build cgo

package pack

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// words is how many words an event has in the value: the integers and the lengths.
const words = 14

var errForm = errors.New("packed events are not of the form that they were packed in")

// Events appends to into the events in b that follow the event numbered after without a gap: in
// order, and up to the first that is missing. Each has the words seq, epoch, branch, attempt,
// ordinal, at, took, active, steps and sum, and the parts type, key, data and payload. The events
// keep nothing of b.
func Events(b []byte, after int64, into []store.Event) ([]store.Event, error) {
	need, err := space(b, after)
	if err != nil {
		return nil, err
	}
	into = slices.Grow(into, need.events)
	var keys strings.Builder // whose memory stays where it is, because it is large enough
	keys.Grow(need.keys)
	small := make(sqlstore.Room, 0, need.shared) // large enough, too
	take := func(n int64) (part []byte) {
		part, b = b[:n], b[n:]
		return part
	}
	bytes := func(n int64) []byte {
		if n < 0 {
			return nil
		}
		return small.Clone(take(n))
	}
	var kind store.Type
	for len(b) > 0 {
		w := wordsOf(take(8 * words))
		if w[0] != after+1 {
			break
		}
		after++
		if t := take(w[10]); string(t) != string(kind) {
			kind = sqlstore.TypeOf(string(t))
		}
		from := keys.Len()
		keys.Write(take(w[11]))
		e := store.Event{
			Seq: w[0], Epoch: w[1], Branch: int32(w[2]), Type: kind, Key: keys.String()[from:], Attempt: int32(w[3]), Ordinal: int32(w[4]),
			At: store.Time(w[5]), Took: time.Duration(w[6]) * time.Microsecond, Active: time.Duration(w[7]) * time.Microsecond,
			Steps: int32(w[8]), Sum: uint32(w[9]),
		}
		e.Data = bytes(w[12])
		e.Payload = bytes(w[13])
		into = append(into, e)
	}
	return into, nil
}

// needs is what the events that Events appends need: how many there are, and the sizes of their
// keys, and of their small data and payloads.
type needs struct{ events, keys, shared int }

// space returns what Events needs, after it has checked that the value has the form it should.
func space(b []byte, after int64) (need needs, err error) {
	for len(b) > 0 {
		if len(b) < 8*words {
			return need, errForm
		}
		w := wordsOf(b)
		b = b[8*words:]
		var n int64
		for _, part := range w[10:] {
			if part > int64(len(b)) {
				return need, errForm
			}
			n += max(part, 0)
		}
		if w[10] < 0 || w[11] < 0 || n > int64(len(b)) {
			return need, errForm
		}
		if after++; w[0] != after {
			break
		}
		need.events++
		need.keys += int(w[11])
		for _, part := range w[12:] {
			if part > 0 && part < sqlstore.OwnBytes {
				need.shared += int(part)
			}
		}
		b = b[n:]
	}
	return need, nil
}

// wordsOf reads the words of an event, which are in the order of bytes of the machine.
func wordsOf(b []byte) (w [words]int64) {
	for i := range w {
		w[i] = int64(binary.NativeEndian.Uint64(b[8*i:]))
	}
	return w
}
