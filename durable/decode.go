package durable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Payload is the user data of an event as a program can show it: decrypted and
// decompressed, not decoded.
type Payload struct {
	// Type and Version of the value, as recorded: a registered name (see Type),
	// or the name of its Go type and 1. Type is empty when it is not known.
	Type    string
	Version int
	// Codec that made Data; empty when the event has no payload.
	Codec string
	// Compression and KeyID say how it is kept; empty: not compressed, not
	// encrypted.
	Compression, KeyID string
	// Data is what the codec made of the value.
	Data []byte
}

// String returns the value for people: its JSON on one line where the codec made
// that, else its text where it is text, else how large it is. It is user data:
// escape it where it is shown.
func (p Payload) String() string {
	var line bytes.Buffer
	switch {
	case p.Codec == "":
		return ""
	case json.Compact(&line, p.Data) == nil:
		return line.String()
	case utf8.Valid(p.Data) && bytes.IndexFunc(p.Data, unicode.IsControl) < 0:
		return string(p.Data)
	}
	return fmt.Sprintf("(%d bytes of %s)", len(p.Data), p.Codec)
}
