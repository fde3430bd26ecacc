package durable

import "github.com/holdfast-dev/holdfast/internal/payload"

// Codec turns values into bytes and back. The zero Options use JSON, which
// stays readable in the database. A codec must be safe for concurrent use.
type Codec interface {
	// Name is kept with every checkpoint and must never change.
	Name() string
	Encode(v any) ([]byte, error)
	// Decode sets what v, a pointer, points to.
	Decode(data []byte, v any) error
}

// JSON is the default codec: encoding/json.
func JSON() Codec { return payload.JSON{} }

// StrictJSON is JSON, except that it cannot read a value with a field that its
// type here lacks. With JSON, a field that was renamed silently reads as zero. It
// is for tests; package durabletest replays histories with it.
func StrictJSON() Codec { return payload.JSON{Strict: true} }

// DefaultCompressAbove is the size in bytes above which an encoded value is
// compressed, unless Options.CompressAbove says otherwise.
const DefaultCompressAbove = 32 << 10

// PayloadSizeError says that a value is too large to be kept. Nothing of it was
// written. Size is how many bytes the codec made of it; Limit is the engine's:
// Options.MaxPayload, or what the store takes. It matches store.ErrTooLarge.
type PayloadSizeError = payload.SizeError
