package payload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/store"
)

// The codec encodes a value into a plain envelope. On its way into the store the envelope
// is sealed: it may be compressed and encrypted. The goroutine that records it seals it,
// in the few functions through which every payload passes, so that no kind of event can be
// forgotten. A sealed payload belongs to its place. To copy it to another place, it is
// unsealed for the old place and sealed for the new one.

// A Place is where a payload is stored. Encryption binds the payload to its place, so that
// a payload moved to another event is detected and rejected.
type Place struct {
	Run     string
	Type    string // of the event, or kind of the message
	Key     string // of the event, or name of the message
	Message string // id of the message; empty: an event
	Branch  int32  // implies the generation, because each begins its own branch
	Attempt int32
}

// PlaceOf returns the place of an event of a run.
func PlaceOf(run string, ev *store.Event) Place {
	return Place{Run: run, Type: string(ev.Type), Key: ev.Key, Branch: ev.Branch, Attempt: ev.Attempt}
}

// PlaceOfMessage returns the place of a message to a run.
func PlaceOfMessage(run string, m *store.Message) Place {
	return Place{Run: run, Type: string(m.Kind), Key: m.Name, Message: m.ID}
}

// bound returns the associated data for encrypting a payload with this header at this
// place. Each part is preceded by its length, so that no two places are the same.
func (p *Place) bound(header string) []byte {
	b := make([]byte, 0, 64+len(header)+len(p.Run)+len(p.Type)+len(p.Key)+len(p.Message))
	for _, part := range [...]string{header, p.Run, p.Type, p.Key, p.Message} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(p.Branch))
	return binary.BigEndian.AppendUint32(b, uint32(p.Attempt))
}

// A Sealer turns values into payloads and back, with the codec, the types and the keys
// of an engine. It does not change after the engine is open, and is safe for concurrent
// use.
type Sealer struct {
	codec     Codec
	codecName string // of codec, read once
	plainJSON bool
	reader    reader
	// Types are the registered types; nil: there are none.
	Types *Types

	// above: an envelope of more bytes is examined; the usual small one, without
	// encryption, costs one comparison.
	above    int
	compress *compressor
	keys     *keyring // nil: nothing is encrypted or can be decrypted

	limits store.Limits
	// maxPayload is the largest encoding of a value, in bytes.
	maxPayload int
}

// Options hold what a Sealer needs from durable.Options, with their defaults, and the
// limits of the store.
type Options struct {
	Codec         Codec
	Types         []TypeDef
	CompressAbove int  // bytes; negative: nothing is compressed
	Encrypt       Keys // nil: nothing is encrypted
	MaxPayload    int
	Limits        store.Limits
	Logger        *slog.Logger
}

// New returns the Sealer of an engine. Its errors match store.ErrInvalid.
func New(o Options) (s *Sealer, err error) {
	s = &Sealer{codec: o.Codec, compress: newCompressor(o.CompressAbove, o.Limits.Payload), limits: o.Limits, above: math.MaxInt}
	if s.Types, err = newTypes(o.Types); err != nil {
		return nil, err
	}
	if s.compress.above >= 0 {
		s.above = s.compress.above
	}
	if o.Encrypt != nil {
		if s.keys, err = newKeyring(o.Encrypt, o.Logger); err != nil {
			return nil, err
		}
		s.above = 0
		if s.Types != nil {
			s.Types.secret = true
		}
	}
	if s.maxPayload, err = payloadLimit(o.MaxPayload, o.Limits); err != nil {
		return nil, err
	}
	if s.codecName, err = NameOf(o.Codec); err != nil {
		return nil, err
	}
	_, s.plainJSON = o.Codec.(JSON)
	s.reader = newReader(o.Codec, s.keys != nil)
	return s, nil
}

// Ready returns an error that matches ErrNoKey if no value may be recorded now, because
// values must be encrypted and there is no key. Call it before encoding a value, and
// before copying an encrypted one.
func (s *Sealer) Ready() error {
	if s.keys == nil {
		return nil
	}
	return s.keys.ready()
}

// Seal returns a plain envelope in the form to store at a place. It cannot fail: Ready has
// already established whether there is a key.
func (s *Sealer) Seal(p Place, env []byte) []byte {
	if !s.Seals(env) {
		return env
	}
	open, err := envelope.Open(env)
	if err != nil || open.KeyID != "" {
		return env // not one of ours, or already sealed
	}
	changed := false
	if open.Compression == "" {
		if small, ok := s.compress.compress(open.Payload); ok {
			open.Compression, open.Payload, changed = zstdName, small, true
		}
	}
	if s.keys != nil {
		changed = s.keys.encrypt(&open, p) || changed
	}
	if !changed {
		return env
	}
	return envelope.Seal(open.Header(), open.Payload)
}

// Open reads an envelope from its place: checked, decrypted, decompressed.
func (s *Sealer) Open(p Place, env []byte) (envelope.Envelope, error) {
	open, err := envelope.Open(env)
	if err != nil {
		return open, err
	}
	if open.KeyID != "" {
		if open.Payload, err = s.keys.decrypt(&open, p); err != nil {
			return open, err
		}
	}
	if open.Compression != "" {
		if open.Payload, err = s.compress.decompress(open.Compression, open.Payload); err != nil {
			return open, err
		}
	}
	return open, nil
}

// Unseal returns the plain envelope of the one at a place. The result belongs to no place
// and may be sealed for another one: this is how a payload is copied.
func (s *Sealer) Unseal(p Place, env []byte) ([]byte, error) {
	if len(env) == 0 || envelope.IsPlain(env) {
		return env, nil
	}
	open, err := s.Open(p, env)
	if err == nil && open.KeyID != "" {
		err = s.Ready()
	}
	if err != nil {
		return nil, err
	}
	open.Compression, open.KeyID, open.KeyCheck = "", "", ""
	return envelope.Seal(open.Header(), open.Payload), nil
}

// sealOverhead is how many bytes a sealed payload may add to its encoding: the header, and
// the authentication.
const sealOverhead = envelope.MaxHeader + 28

// Limit returns the largest encoding, in bytes, of a value of a run that is started now.
func (s *Sealer) Limit() int { return s.maxPayload }

// Seals reports whether Seal examines an envelope. It leaves the usual small one as it is,
// at the cost of one comparison.
func (s *Sealer) Seals(env []byte) bool { return len(env) > s.above }

// Check returns why this program cannot read the payload at a place. With typed it must
// also know the versions of the registered types in it.
func (s *Sealer) Check(p Place, env []byte, typed bool) error {
	open, err := s.Open(p, env)
	if err != nil {
		return err
	}
	if _, err := s.codecOf(open.Codec); err != nil || !typed {
		return err
	}
	return s.knowsVersion(&open)
}

// IsDamage reports whether an error of Open means that the payload is not what was
// written, rather than that this program lacks what it needs to read it.
func IsDamage(err error) bool {
	return errors.Is(err, envelope.ErrDamaged) || errors.Is(err, ErrDecrypt) || errors.Is(err, errBadCompression)
}

// LimitOf returns the limit for a run that was started with Options.MaxPayload born. A
// lower limit applies only to runs started with it: in an older run a step has done its
// work by the time its result is found to be too large, and would fail for good.
func (s *Sealer) LimitOf(born int) int {
	limit, err := payloadLimit(born, s.limits)
	if err != nil {
		return s.maxPayload // the run came from a store with a higher limit
	}
	return max(limit, s.maxPayload)
}

// payloadLimit returns how large an encoded value may be, so that its sealed form fits
// into the store.
func payloadLimit(asked int, l store.Limits) (int, error) {
	if asked > l.Payload {
		return 0, fmt.Errorf("durable: Options.MaxPayload is %d and the store takes %d bytes: %w", asked, l.Payload, store.ErrInvalid)
	}
	limit := l.Payload - sealOverhead
	if asked != 0 {
		limit = min(limit, asked)
	}
	return limit, nil
}
