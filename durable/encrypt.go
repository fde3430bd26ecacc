package durable

import "github.com/holdfast-dev/holdfast/internal/payload"

// Keys has the keys with which payloads are encrypted. Its methods are called from any
// goroutine, and an error or a panic in them does not stop the program. StaticKeys
// makes one from given keys.
type Keys interface {
	// Current returns the id of the key for what is recorded from now on: 1 to
	// 64 printable ASCII characters without a space. It is called for each
	// payload and must be quick. A different id than before is a rotation; "" means
	// that new payloads are not encrypted.
	//
	// While the current key is not available, the previous one stays in use. If there
	// is no previous one, because the engine was opened with "", nothing that is to be
	// encrypted is recorded: calls fail with an error that matches ErrNoKey, and runs
	// are parked, until the key is available.
	Current() string
	// Key returns the key with this id: KeySize random bytes. An id means the
	// same key for ever, and must stay known as long as a run is kept that has a
	// payload made with it. The engine keeps a returned key in memory and does not ask
	// for it again.
	Key(id string) ([]byte, error)
}

// KeySize is the size of a key in bytes: 32.
const KeySize = payload.KeySize

var (
	// ErrNoKey: a payload is encrypted with a key that Options.Encrypt does not have.
	// The run is parked and can be resumed once it does.
	ErrNoKey = payload.ErrNoKey
	// ErrWrongKey: a payload cannot be opened, because Options.Encrypt has another key
	// under the id than the one it was encrypted with. Nothing is damaged: the run is
	// parked and can be resumed with the right key.
	ErrWrongKey = payload.ErrWrongKey
	// ErrDecrypt: a payload was changed, or encrypted for another place than the
	// one it was found in. The key is the right one.
	ErrDecrypt = payload.ErrDecrypt
)

// StaticKeys returns Keys that hold these keys. The map and the keys are copied;
// the result prints only the ids.
func StaticKeys(current string, keys map[string][]byte) Keys {
	return payload.StaticKeys(current, keys)
}
