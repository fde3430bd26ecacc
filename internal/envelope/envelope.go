// Package envelope is the format in which a checkpoint's payload is kept: one
// line of ASCII that says how to read it, then the payload itself.
//
//	hf1 json main.Receipt@1 - - dbea4e35
//	{"tracking":"H-7"}
//
// The fields of the line are: format version, codec, type name and version of
// the value, compression, key id, and the CRC-32C of the line before it and of
// the payload as stored after it. "-" means none. A person can read it in the
// database without a tool.
package envelope

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// Version is the newest format this program writes and reads.
const Version = 1

// MaxHeader bounds the line, so that damaged data cannot make a reader search
// for its end for long.
const MaxHeader = 1024

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Errors about bytes that are not a sound envelope wrap ErrDamaged.
var ErrDamaged = errors.New("damaged checkpoint")

// FutureError reports a format newer than this program knows.
type FutureError struct{ Have, Know int }

func (e *FutureError) Error() string {
	return fmt.Sprintf("checkpoint format %d is newer than format %d, the newest this program knows: use a newer program", e.Have, e.Know)
}

// Envelope is a payload and what is needed to read it.
type Envelope struct {
	Codec       string
	Type        string // "main.Receipt"; "" when unknown
	TypeVersion int
	// Within lists the registered types that the value contains: "order@2+item@1".
	// It includes Type itself if that is a registered name that could also be a Go
	// type's.
	Within      string
	Compression string // "": none
	KeyID       string // "": not encrypted
	KeyCheck    string // distinguishes the key from another one with the same id; "": not recorded
	Payload     []byte
}

// Part is a registered type that a value contains.
type Part struct {
	Name    string
	Version int
}

// Parts returns the types that Within names.
func (e *Envelope) Parts() []Part {
	if e.Within == "" {
		return nil
	}
	var parts []Part
	for part := range strings.SplitSeq(e.Within, "+") {
		name, version, _ := strings.Cut(part, "@")
		n, _ := strconv.Atoi(version) // Open has checked it
		parts = append(parts, Part{Name: name, Version: n})
	}
	return parts
}

// WithinOf returns the Within of a value that contains these types.
func WithinOf(parts []Part) string {
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteByte('+')
		}
		b.WriteString(p.Name)
		b.WriteByte('@')
		b.WriteString(strconv.Itoa(p.Version))
	}
	return b.String()
}

// Prefix returns the beginning of the line for values of one type, up to the
// checksum; it can be made once per type and used many times.
func Prefix(codec, typ string, typeVersion int) string {
	return (&Envelope{Codec: codec, Type: typ, TypeVersion: typeVersion}).Header()
}

// Header returns the beginning of e's line, up to the checksum: everything that it
// says about the payload. Seal(e.Header(), e.Payload) is e as stored.
func (e *Envelope) Header() string {
	typ, key := field(e.Type)+"@"+strconv.Itoa(e.TypeVersion), field(e.KeyID)
	if e.Within != "" {
		typ += "+" + e.Within
	}
	if e.KeyCheck != "" {
		key += "@" + e.KeyCheck
	}
	return "hf" + strconv.Itoa(Version) + " " + field(e.Codec) + " " + typ + " " + field(e.Compression) + " " + key + " "
}

// IsPlain reports whether the header of b says that its payload is neither
// compressed nor encrypted. It does not check whether b is sound; Open does.
func IsPlain(b []byte) bool {
	const mark = " - - "
	n := bytes.IndexByte(b[:min(len(b), MaxHeader)], '\n') - 8
	return n >= len(mark) && string(b[n-len(mark):n]) == mark
}

// Seal returns prefix, checksum, newline and payload in one slice.
func Seal(prefix string, payload []byte) []byte {
	b := make([]byte, 0, len(prefix)+9+len(payload))
	b = append(b, prefix...)
	b = appendSum(b, checksum(b, payload))
	b = append(b, '\n')
	return append(b, payload...)
}

// SealRoom is how many bytes an envelope has beside its prefix and its payload; IntRoom
// is how many it has beside its prefix if the payload is a whole number.
const (
	SealRoom = 9
	IntRoom  = SealRoom + 20
)

// A Start is the prefix of many envelopes, with its checksum, which is made once.
type Start struct {
	prefix string
	sum    uint32
}

// StartOf returns the Start with a prefix.
func StartOf(prefix string) Start {
	return Start{prefix, crc32.Checksum([]byte(prefix), castagnoli)}
}

// Prefix returns the prefix.
func (s *Start) Prefix() string { return s.prefix }

// Len returns the length of the prefix.
func (s *Start) Len() int { return len(s.prefix) }

// AppendInt appends to b, which is empty, the envelope of a whole number's decimal digits.
func (s *Start) AppendInt(b []byte, n int64) []byte {
	return s.Finish(strconv.AppendInt(s.Begin(b), n, 10))
}

// Begin appends to b, which is empty, the header of an envelope, with room for the
// checksum. What is appended to it then is the payload, until Finish.
func (s *Start) Begin(b []byte) []byte {
	b = append(b, s.prefix...)
	return append(b, "00000000\n"...)
}

// Finish puts the checksum into an envelope that Begin has begun.
func (s *Start) Finish(b []byte) []byte {
	n := len(s.prefix)
	appendSum(b[:n], crc32.Update(s.sum, castagnoli, b[n+SealRoom:]))
	return b
}

func checksum(prefix, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(prefix, castagnoli), castagnoli, payload)
}

func appendSum(b []byte, sum uint32) []byte {
	const digits = "0123456789abcdef"
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, digits[sum>>shift&15])
	}
	return b
}

// Open returns the payload of an envelope that begins with the prefix; ok is false when
// it does not, or is damaged; the function Open then finds out which.
func (s *Start) Open(b []byte) (payload []byte, ok bool) {
	n := len(s.prefix)
	if len(b) <= n+8 || string(b[:n]) != s.prefix || b[n+8] != '\n' {
		return nil, false
	}
	payload = b[n+9:]
	var sum [8]byte
	return payload, string(appendSum(sum[:0], crc32.Update(s.sum, castagnoli, payload))) == string(b[n:n+8])
}

// Open reads an envelope. The payload aliases b. Errors wrap ErrDamaged or are
// a *FutureError.
func Open(b []byte) (Envelope, error) {
	n := bytes.IndexByte(b[:min(len(b), MaxHeader)], '\n')
	if n < 0 {
		return Envelope{}, fmt.Errorf("%w: no header line", ErrDamaged)
	}
	line, payload := b[:n], b[n+1:]
	version, rest, _ := strings.Cut(string(line), " ")
	number, isFormat := strings.CutPrefix(version, "hf")
	format, err := strconv.Atoi(number)
	if !isFormat || err != nil || format < 1 {
		return Envelope{}, fmt.Errorf("%w: the header does not begin with a format version", ErrDamaged)
	}
	if format > Version {
		return Envelope{}, &FutureError{Have: format, Know: Version}
	}
	return openV1(line, rest, payload)
}

func openV1(line []byte, rest string, payload []byte) (Envelope, error) {
	var f [5]string
	for i := range f {
		var more bool
		f[i], rest, more = strings.Cut(rest, " ")
		if f[i] == "" || more != (i < len(f)-1) {
			return Envelope{}, fmt.Errorf("%w: the header does not have its six fields", ErrDamaged)
		}
	}
	// In a name "@" is escaped, so the first one ends it.
	typ, rest, _ := strings.Cut(f[1], "@")
	number, within, _ := strings.Cut(rest, "+")
	tv, err := strconv.Atoi(number)
	if err != nil {
		return Envelope{}, fmt.Errorf("%w: the type has no version", ErrDamaged)
	}
	if within != "" && !soundParts(within) {
		return Envelope{}, fmt.Errorf("%w: the types it contains are not readable", ErrDamaged)
	}
	key, check, _ := strings.Cut(f[3], "@")
	if len(f[4]) != 8 || string(appendSum(nil, checksum(line[:len(line)-8], payload))) != f[4] {
		return Envelope{}, fmt.Errorf("%w: checksum mismatch", ErrDamaged)
	}
	return Envelope{
		Codec: unfield(f[0]), Type: unfield(typ), TypeVersion: tv, Within: within,
		Compression: unfield(f[2]), KeyID: unfield(key), KeyCheck: check, Payload: payload,
	}, nil
}

// soundParts reports whether each part of a Within has a name and a version.
func soundParts(within string) bool {
	for part := range strings.SplitSeq(within, "+") {
		name, version, _ := strings.Cut(part, "@")
		if n, err := strconv.Atoi(version); name == "" || err != nil || n < 1 {
			return false
		}
	}
	return true
}

// escapes keeps a field free of the characters that structure the line.
var (
	escapes   = strings.NewReplacer("%", "%25", " ", "%20", "\n", "%0A", "@", "%40")
	unescapes = strings.NewReplacer("%20", " ", "%0A", "\n", "%40", "@", "%25", "%")
)

const maxField = 200

func field(s string) string {
	if s == "" {
		return "-"
	}
	if len(s) > maxField {
		s = s[:maxField]
	}
	if s == "-" {
		return "%2D"
	}
	return escapes.Replace(s)
}

func unfield(s string) string {
	switch s {
	case "-":
		return ""
	case "%2D":
		return "-"
	}
	return unescapes.Replace(s)
}
