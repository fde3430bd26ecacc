package payload

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/store"
)

// Keys provides the keys for encrypting payloads; see durable.Keys.
type Keys interface {
	Current() string
	Key(id string) ([]byte, error)
}

// KeySize is the size of a key in bytes.
const KeySize = 32

// The errors of decryption; see those of durable.
var (
	// ErrNoKey: the key that a payload needs is not available.
	ErrNoKey = errors.New("durable: encryption key not known")
	// ErrWrongKey: another key has the id of the key with which a payload was
	// encrypted.
	ErrWrongKey = errors.New("durable: another encryption key under this id")
	// ErrDecrypt: a payload was changed or moved. Its key is the right one.
	ErrDecrypt = errors.New("durable: not decryptable")
)

// StaticKeys returns Keys with a fixed set; see durable.StaticKeys.
func StaticKeys(current string, keys map[string][]byte) *staticKeys {
	s := &staticKeys{current: current, keys: map[string][]byte{}}
	for id, key := range keys {
		s.keys[id] = slices.Clone(key)
	}
	return s
}

// staticKeys is a fixed set of keys.
type staticKeys struct {
	current string
	keys    map[string][]byte
}

func (s *staticKeys) Current() string { return s.current }

func (s *staticKeys) Key(id string) ([]byte, error) {
	if key, ok := s.keys[id]; ok {
		return key, nil
	}
	return nil, fmt.Errorf("it is not among the keys %s", s)
}

// Format prints only the ids, whatever the verb: keys must not get into a log.
func (s *staticKeys) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "[%s]", strings.Join(slices.Sorted(maps.Keys(s.keys)), " "))
}

// LogValue does the same for slog.
func (s *staticKeys) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(s)) }

// keyring makes ciphers from Keys. Every run has its own keys, derived from those, so
// the limit of 2^32 messages that random nonces impose applies per run and not to all
// runs together.
type keyring struct {
	keys Keys
	log  *slog.Logger
	seed maphash.Seed

	// ciphers caches the most recently used ciphers; an entry is replaced, never
	// changed.
	ciphers [256]atomic.Pointer[runCipher]
	// inUse is the id that new payloads were last encrypted with.
	inUse atomic.Pointer[string]

	mu     sync.Mutex
	known  map[string]*knownKey
	failed map[string]time.Time // current ids whose key was not available, and when
}

// knownKey is a key in memory.
type knownKey struct {
	key []byte
	// check is stored beside the id in every payload. It distinguishes another key of
	// the same id from a payload that was changed, before anything is decrypted.
	check string
	// opened: it has opened a payload without a check, as earlier programs wrote them.
	opened atomic.Bool
}

// newKnownKey computes the check of a key. The check reveals nothing about the key
// that a payload does not.
func newKnownKey(key []byte) (*knownKey, error) {
	check, err := hkdf.Key(sha256.New, key, nil, "holdfast hf1 key check", 4)
	if err != nil {
		return nil, err
	}
	return &knownKey{key: slices.Clone(key), check: hex.EncodeToString(check)}, nil
}

// runCipher encrypts for one run with one key.
type runCipher struct {
	id, run string
	key     *knownKey
	aead    cipher.AEAD
}

// newKeyring checks that the current key is available.
func newKeyring(keys Keys, log *slog.Logger) (*keyring, error) {
	k := &keyring{keys: keys, log: log, seed: maphash.MakeSeed(), known: map[string]*knownKey{}, failed: map[string]time.Time{}}
	id, err := k.current()
	if err == nil && id != "" {
		if _, err = k.key(id); err == nil {
			k.inUse.Store(&id)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("durable: Options.Encrypt: the current key cannot be used: %w: %w", err, store.ErrInvalid)
	}
	return k, nil
}

// current is Keys.Current, guarded.
func (k *keyring) current() (id string, err error) {
	if s, ok := k.keys.(*staticKeys); ok {
		return s.current, nil
	}
	if fault := guard.Call(func() { id = k.keys.Current() }); fault != nil {
		return "", fmt.Errorf("Keys.Current: %w", fault)
	}
	return id, nil
}

// maxKeyID bounds the length of an id in a header.
const maxKeyID = 64

// key returns the key with this id, checked.
func (k *keyring) key(id string) (known *knownKey, err error) {
	k.mu.Lock()
	known = k.known[id]
	k.mu.Unlock()
	if known != nil {
		return known, nil
	}
	if id == "" || len(id) > maxKeyID || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fmt.Errorf("the key id %q is not 1 to %d printable ASCII characters without a space", id, maxKeyID)
	}
	var key []byte
	if fault := guard.Call(func() { key, err = k.keys.Key(id) }); fault != nil {
		return nil, fmt.Errorf("Keys.Key(%q): %w", id, fault)
	}
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", id, err)
	}
	if len(key) != KeySize {
		return nil, fmt.Errorf("key %q has %d bytes and needs %d", id, len(key), KeySize)
	}
	if known, err = newKnownKey(key); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known[id] = known
	return known, nil
}

// cipher returns the cipher of a run and a key.
func (k *keyring) cipher(id, run string) (*runCipher, error) {
	var h maphash.Hash
	h.SetSeed(k.seed)
	_, _ = h.WriteString(id)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(run)
	slot := &k.ciphers[h.Sum64()%uint64(len(k.ciphers))]
	if c := slot.Load(); c != nil && c.id == id && c.run == run {
		return c, nil
	}
	key, err := k.key(id)
	if err != nil {
		return nil, err
	}
	derived, err := hkdf.Key(sha256.New, key.key, nil, "holdfast hf1 payload\x00"+run, KeySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	c := &runCipher{id: id, run: run, key: key, aead: aead}
	slot.Store(c)
	return c, nil
}

// ready returns why nothing can be encrypted now, although it must be: no key was in
// use before, and the current one is not available. Writing in clear would then expose
// what was to be encrypted.
func (k *keyring) ready() error {
	if k.inUse.Load() != nil {
		return nil
	}
	id, err := k.current()
	if err == nil && id == "" {
		return nil
	}
	if err == nil {
		if _, err = k.key(id); err == nil {
			k.inUse.CompareAndSwap(nil, &id)
			return nil
		}
	}
	k.failing(id, err)
	return fmt.Errorf("it is to be encrypted, and the current key of Options.Encrypt cannot be had: %w: %w", err, ErrNoKey)
}

// forSealing returns the cipher for new payloads of a run; nil: they are not
// encrypted, which ready has allowed. While a new current key is not available it
// returns the cipher of the previous key: a failed rotation must not leave unrecorded
// what has happened.
func (k *keyring) forSealing(run string) *runCipher {
	before := k.inUse.Load()
	id, err := k.current()
	switch {
	case err != nil:
		k.failing(id, err)
	case id == "":
		return nil
	case before != nil && *before == id:
		// Its key is in memory.
	case !k.failedLately(id):
		if _, err := k.key(id); err != nil {
			k.failing(id, err)
			break
		}
		if k.inUse.CompareAndSwap(before, &id) {
			k.log.Info("durable: payloads are encrypted with another key from now on", "key", id)
		}
		before = &id
	}
	if before == nil {
		return nil
	}
	c, err := k.cipher(*before, run)
	if err != nil {
		// A key of the right size in memory always makes a cipher. Going on without
		// one would write in clear what must be encrypted.
		panic(fmt.Sprintf("durable: no cipher for key %q: %v", *before, err))
	}
	return c
}

// retryKey is how long an unavailable current key is not requested again, so that a
// rotation to it does not slow every step down.
const retryKey = time.Minute

func (k *keyring) failedLately(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, ok := k.failed[id]
	return ok && time.Since(at) < retryKey
}

// failing logs a current key that is not available, once in a while.
func (k *keyring) failing(id string, err error) {
	if k.failedLately(id) {
		return
	}
	k.mu.Lock()
	k.failed[id] = time.Now()
	k.mu.Unlock()
	if k.inUse.Load() == nil {
		k.log.Error("durable: the current encryption key cannot be had, and there is none before it: nothing is recorded that is to be encrypted", "key", id, "error", err)
		return
	}
	k.log.Error("durable: the current encryption key cannot be had; what was in use before stays in use", "key", id, "error", err)
}

// encrypt seals a payload for its place, and reports whether there is a key to do so.
func (k *keyring) encrypt(open *envelope.Envelope, p Place) bool {
	c := k.forSealing(p.Run)
	if c == nil {
		return false
	}
	open.KeyID, open.KeyCheck = c.id, c.key.check
	open.Payload = c.aead.Seal(nil, nil, open.Payload, p.bound(open.Header()))
	return true
}

// decrypt opens a payload that was encrypted for a place. k may be nil.
func (k *keyring) decrypt(open *envelope.Envelope, p Place) ([]byte, error) {
	id := open.KeyID
	if k == nil {
		return nil, fmt.Errorf("it is encrypted with key %q and this engine has no keys: set Options.Encrypt: %w", id, ErrNoKey)
	}
	c, err := k.cipher(id, p.Run)
	if err != nil {
		return nil, fmt.Errorf("it is encrypted with key %q, which Options.Encrypt does not give (%w). Keys stay needed as long as a run has payloads made with them: %w", id, err, ErrNoKey)
	}
	if open.KeyCheck != "" && open.KeyCheck != c.key.check {
		return nil, wrongKey(id)
	}
	plain, err := c.aead.Open(nil, nil, open.Payload, p.bound(open.Header()))
	switch {
	case err == nil && open.KeyCheck == "":
		c.key.opened.Store(true)
	case err == nil:
	case open.KeyCheck == "" && !c.key.opened.Load():
		return nil, wrongKey(id) // its checksum matches, so it is most likely not damaged
	default:
		return nil, fmt.Errorf("it cannot be decrypted with key %q, which is the right one: the payload was changed, or moved here from another place: %w", id, ErrDecrypt)
	}
	return plain, nil
}

func wrongKey(id string) error {
	return fmt.Errorf("it cannot be opened: Options.Encrypt gives another key under the id %q than the one it was encrypted with. Give it the right one and resume; nothing is lost: %w", id, ErrWrongKey)
}
