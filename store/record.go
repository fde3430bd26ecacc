package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"time"
)

// The binary encoding of records, for stores that keep keys and values rather
// than columns.
//
// A record is a version byte, its nonzero fields, and a CRC-32C of all that. A
// field is its number and kind (number<<1, plus 1 for bytes) as an unsigned
// varint, followed by a signed varint, or by a length and that many bytes. The
// numbers never change and are never reused. nil and empty come back as nil;
// everything else comes back bit for bit.
//
// UnmarshalBinary copies what it keeps, so it may be given a read buffer (S17).
// Damage is ErrCorrupt. A version or field that this program does not know is
// ErrSchema, because dropping it would lose what a newer program has written.

const recordVersion = 1

// AppendBinary appends the row to b, without Last. The error is always nil.
func (r *Run) AppendBinary(b []byte) ([]byte, error) { return appendRecord(b, r.fields()), nil }

// UnmarshalBinary replaces r with the row that AppendBinary wrote.
func (r *Run) UnmarshalBinary(b []byte) error {
	*r = Run{}
	return parseRecord("run", b, r.fields())
}

// AppendBinary appends the event to b, including its epoch. The error is always nil.
func (e *Event) AppendBinary(b []byte) ([]byte, error) { return appendRecord(b, e.fields()), nil }

// UnmarshalBinary replaces e with the event that AppendBinary wrote.
func (e *Event) UnmarshalBinary(b []byte) error {
	*e = Event{}
	return parseRecord("event", b, e.fields())
}

// AppendBinary appends the branch to b. The error is always nil.
func (n *Branch) AppendBinary(b []byte) ([]byte, error) { return appendRecord(b, n.fields()), nil }

// UnmarshalBinary replaces n with the branch that AppendBinary wrote.
func (n *Branch) UnmarshalBinary(b []byte) error {
	*n = Branch{}
	return parseRecord("branch", b, n.fields())
}

// AppendBinary appends the message to b, without IfLive. The error is always
// nil.
func (m *Message) AppendBinary(b []byte) ([]byte, error) { return appendRecord(b, m.fields()), nil }

// UnmarshalBinary replaces m with the message that AppendBinary wrote.
func (m *Message) UnmarshalBinary(b []byte) error {
	*m = Message{}
	return parseRecord("message", b, m.fields())
}

// AppendBinary appends the executor to b, without Leaving and Live. The error is
// always nil.
func (e *Executor) AppendBinary(b []byte) ([]byte, error) { return appendRecord(b, e.fields()), nil }

// UnmarshalBinary replaces e with the executor that AppendBinary wrote.
func (e *Executor) UnmarshalBinary(b []byte) error {
	*e = Executor{}
	return parseRecord("executor", b, e.fields())
}

// field is a numbered part of a record: a pointer to where it is kept.
type field struct {
	no int
	at any
}

func (r *Run) fields() []field {
	return []field{
		{1, &r.ID}, {2, &r.Workflow}, {3, &r.InitialVersion}, {4, &r.Parent}, {5, &r.ParentKey}, {6, &r.ForkedFrom},
		{7, &r.InputHash}, {8, &r.Queue}, {9, &r.Partition}, {10, &r.Dedup}, {11, &r.Trace}, {12, &r.CreatedAt},
		{13, &r.Version}, {14, &r.Status}, {15, &r.Code}, {16, &r.Reason}, {17, &r.Recoverable}, {18, &r.Owner}, {19, &r.Epoch},
		{20, &r.Branch}, {21, &r.Generation}, {22, &r.Resumes}, {23, &r.Strikes}, {24, &r.Priority}, {25, &r.Inbox}, {26, &r.Seen},
		{27, &r.CancelAsked}, {28, &r.Paused}, {29, &r.ArchivedSeq}, {30, &r.StartedAt}, {31, &r.UpdatedAt}, {32, &r.EndedAt},
		{33, &r.WakeAt}, {34, &r.DeadlineAt}, {35, &r.Attributes},
	}
}

func (e *Event) fields() []field {
	return []field{
		{1, &e.Seq}, {2, &e.Epoch}, {3, &e.Branch}, {4, &e.Type}, {5, &e.Key}, {6, &e.Attempt}, {7, &e.Ordinal}, {8, &e.At},
		{9, &e.Took}, {10, &e.Active}, {11, &e.Steps}, {12, &e.Data}, {13, &e.Payload}, {14, &e.Sum},
	}
}

func (n *Branch) fields() []field {
	return []field{
		{1, &n.N}, {2, &n.Parent}, {3, &n.Generation}, {4, &n.Cutoff}, {5, &n.CutScope}, {6, &n.Reason}, {7, &n.CreatedAt},
	}
}

func (m *Message) fields() []field {
	return []field{{1, &m.To}, {2, &m.Kind}, {3, &m.Name}, {4, &m.ID}, {5, &m.Seq}, {6, &m.At}, {7, &m.Data}, {8, &m.Payload}}
}

func (e *Executor) fields() []field {
	return []field{
		{1, &e.ID}, {2, &e.Name}, {3, &e.Host}, {4, &e.Boot}, {5, &e.PID}, {6, &e.Lease}, {7, &e.Serves}, {8, &e.StartedAt},
		{9, &e.BeatAt}, {10, (*queuesServed)(&e.Serves)},
	}
}

func appendRecord(b []byte, fields []field) []byte {
	start := len(b)
	b = append(b, recordVersion)
	for _, f := range fields {
		switch v := f.at.(type) {
		case *string:
			b = appendBytes(b, f.no, *v)
		case *Status:
			b = appendBytes(b, f.no, *v)
		case *Type:
			b = appendBytes(b, f.no, *v)
		case *Kind:
			b = appendBytes(b, f.no, *v)
		case *[]byte:
			b = appendBytes(b, f.no, *v)
		case *[16]byte:
			if *v != [16]byte{} {
				b = appendBytes(b, f.no, v[:])
			}
		case *map[string]string:
			b = appendBytes(b, f.no, appendTexts(nil, func(yield func(string) bool) {
				for _, name := range slices.Sorted(maps.Keys(*v)) {
					if !yield(name) || !yield((*v)[name]) {
						return
					}
				}
			}))
		case *[]Served:
			b = appendBytes(b, f.no, appendServed(nil, *v))
		case *queuesServed:
			b = appendBytes(b, f.no, v.append(nil))
		default:
			b = appendNumber(b, f.no, number(f.at))
		}
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// number reads a field that is stored as a number. Durations are stored in whole
// microseconds.
func number(at any) int64 {
	switch v := at.(type) {
	case *int:
		return int64(*v)
	case *int32:
		return int64(*v)
	case *int64:
		return *v
	case *uint32:
		return int64(*v)
	case *Time:
		return int64(*v)
	case *time.Duration:
		return int64(*v / time.Microsecond)
	case *bool:
		if *v {
			return 1
		}
		return 0
	}
	panic(fmt.Sprintf("store: no encoding for %T", at))
}

func setNumber(at any, n int64) (fits bool) {
	switch v := at.(type) {
	case *int:
		*v = int(n)
		return int64(*v) == n
	case *int32:
		*v = int32(n)
		return int64(*v) == n
	case *int64:
		*v = n
	case *uint32:
		*v = uint32(n)
		return int64(*v) == n
	case *Time:
		*v = Time(n)
	case *time.Duration:
		*v = time.Duration(n) * time.Microsecond
		return int64(*v/time.Microsecond) == n
	case *bool:
		*v = n == 1
		return n == 1
	default:
		return false // the field is kept as bytes
	}
	return true
}

func setBytes(at any, b []byte) (fits bool) {
	switch v := at.(type) {
	case *string:
		*v = string(b)
	case *Status:
		*v = Status(b)
	case *Type:
		*v = Type(b)
	case *Kind:
		*v = Kind(b)
	case *[]byte:
		*v = slices.Clone(b)
	case *[16]byte:
		return copy(v[:], b) == len(v) && len(b) == len(v)
	case *map[string]string:
		texts, ok := parseTexts(b)
		if !ok || len(texts)%2 != 0 {
			return false
		}
		*v = make(map[string]string, len(texts)/2)
		for i := 0; i < len(texts); i += 2 {
			(*v)[texts[i]] = texts[i+1]
		}
	case *[]Served:
		var ok bool
		*v, ok = parseServed(b)
		return ok
	case *queuesServed:
		return v.parse(b)
	default:
		return false // the field is kept as a number
	}
	return true
}

func appendNumber(b []byte, no int, n int64) []byte {
	if n == 0 {
		return b
	}
	return binary.AppendVarint(binary.AppendUvarint(b, uint64(no)<<1), n)
}

func appendBytes[T ~string | ~[]byte](b []byte, no int, v T) []byte {
	if len(v) == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(no)<<1|1)
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

func parseRecord(what string, b []byte, fields []field) error {
	damaged := func(how string) error { return fmt.Errorf("store: a record of a %s %s: %w", what, how, ErrCorrupt) }
	if len(b) < 5 {
		return damaged("is cut short")
	}
	b, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(b, castagnoli) != sum {
		return damaged("does not have its checksum")
	}
	if b[0] != recordVersion {
		return fmt.Errorf("store: a record of a %s has version %d, and this program knows version %d: use a newer program: %w", what, b[0], recordVersion, ErrSchema)
	}
	for b = b[1:]; len(b) > 0; {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return damaged("ends within a field")
		}
		b = b[n:]
		at, ok := fieldAt(fields, int(tag>>1))
		if !ok {
			return fmt.Errorf("store: a record of a %s has a field %d, which this program does not know: use a newer program: %w", what, tag>>1, ErrSchema)
		}
		if tag&1 == 0 {
			v, n := binary.Varint(b)
			if n <= 0 || !setNumber(at, v) {
				return damaged(fmt.Sprintf("has no number that fits field %d", tag>>1))
			}
			b = b[n:]
			continue
		}
		var v []byte
		if v, b, ok = cutBytes(b); !ok || !setBytes(at, v) {
			return damaged(fmt.Sprintf("has no bytes that fit field %d", tag>>1))
		}
	}
	return nil
}

func fieldAt(fields []field, no int) (any, bool) {
	// The fields are listed in order and without a gap.
	if no < 1 || no > len(fields) {
		return nil, false
	}
	return fields[no-1].at, true
}
