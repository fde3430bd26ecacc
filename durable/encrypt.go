package durable

import "github.com/holdfast-dev/holdfast/internal/payload"

// Keys are the keys that payloads are encrypted with. Its methods are called
// from any goroutine, and an error or a panic of theirs stops no program.
// StaticKeys makes one of keys that are at hand.
type Keys interface {
	// Current returns the id of the key for what is recorded from now on: 1 to
	// 64 printable ASCII characters without a space. It is called for each
	// payload and must be quick. Another id than before is a rotation; "" means
	// that new payloads are not encrypted.
	//
	// While the current key cannot be had, the one before stays in use. Where there
	// is none before, because the engine was opened with "", nothing is recorded that
	// is to be encrypted: calls fail with an error that matches ErrNoKey, and runs are
	// parked, until the key can be had.
	Current() string
	// Key returns the key with this id: KeySize random bytes. An id means the
	// same key for ever, and stays known as long as a run is kept that has a
	// payload made with it. A key that was returned is kept in memory and not
	// asked for again.
	Key(id string) ([]byte, error)
}

// KeySize is the size of a key in bytes: 32.
const KeySize = payload.KeySize

var (
	// ErrNoKey: a payload is encrypted with a key that Options.Encrypt does not
	// give. The run is parked and can be resumed once it does.
	ErrNoKey = payload.ErrNoKey
	// ErrWrongKey: a payload cannot be opened, because Options.Encrypt gives
	// another key under the id than the one it was encrypted with. Nothing is
	// damaged: the run is parked and can be resumed with the right key.
	ErrWrongKey = payload.ErrWrongKey
	// ErrDecrypt: a payload was changed, or encrypted for another place than the
	// one it was found in. The key is the right one.
	ErrDecrypt = payload.ErrDecrypt
)

// StaticKeys returns Keys that hold these keys. The map and the keys are copied;
// the result prints as the ids alone.
func StaticKeys(current string, keys map[string][]byte) Keys {
	return payload.StaticKeys(current, keys)
}
