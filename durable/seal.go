package durable

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/store"
)

// A payload is encoded by the codec into a plain envelope; on its way into the
// store it may be compressed and encrypted: sealed. That happens on the
// goroutine of whoever records it, in the few functions through which every
// payload goes (birth, run.write, committer.stash, Engine.send and operate), so
// that no kind of event can be forgotten. A sealed payload belongs to its place
// and is not copied to another one: it is opened there and sealed here.

// place is where a payload stands. Encryption binds it to that, so that one
// which somebody moved to another event is found and not believed.
type place struct {
	run     string
	typ     string // of the event, or kind of the message
	key     string // of the event, or name of the message
	message string // id of the message; empty: an event
	branch  int32  // says the generation, too: each begins a branch of its own
	attempt int32
}

func placeOf(run string, ev *store.Event) place {
	return place{run: run, typ: string(ev.Type), key: ev.Key, branch: ev.Branch, attempt: ev.Attempt}
}

func placeOfMessage(m *store.Message) place {
	return place{run: m.To, typ: string(m.Kind), key: m.Name, message: m.ID}
}

// bound returns what a payload with this header at this place is encrypted
// under. Each part has its length before it, so that no two places are alike.
func (p *place) bound(header string) []byte {
	b := make([]byte, 0, 64+len(header)+len(p.run)+len(p.typ)+len(p.key)+len(p.message))
	for _, part := range [...]string{header, p.run, p.typ, p.key, p.message} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(p.branch))
	return binary.BigEndian.AppendUint32(b, uint32(p.attempt))
}

// A sealer turns values into payloads and back, with the codec, the types and the keys
// of an engine. It does not change once the engine is open.
type sealer struct {
	codec     Codec
	codecName string // of codec, asked for once
	plainJSON bool
	reader    reader
	types     *typeDefs // nil: none are registered

	// above: an envelope of more bytes is looked at; the usual small one, with
	// no encryption, costs one comparison.
	above    int
	compress *compressor
	keys     *keyring // nil: nothing is encrypted or can be decrypted

	limits store.Limits
	// maxPayload is how many bytes the codec may make of a value.
	maxPayload int
}

// newSealer takes Options with their defaults.
func newSealer(o *Options, limits store.Limits) (s *sealer, err error) {
	s = &sealer{codec: o.Codec, compress: newCompressor(o.CompressAbove, limits.Payload), limits: limits, above: math.MaxInt}
	if s.types, err = newTypeDefs(o.Types); err != nil {
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
		if s.types != nil {
			s.types.secret = true
		}
	}
	if s.maxPayload, err = payloadLimit(o.MaxPayload, limits); err != nil {
		return nil, err
	}
	if s.codecName, err = codecNameOf(o.Codec); err != nil {
		return nil, err
	}
	_, s.plainJSON = o.Codec.(jsonCodec)
	s.reader = newReader(o.Codec, s.keys != nil)
	return s, nil
}

// sealable returns why a value must not be recorded now: it is to be encrypted, and
// there is no key that it could be encrypted with. It is asked before a value is
// encoded, and before one that is encrypted is copied.
func (s *sealer) sealable() error {
	if s.keys == nil {
		return nil
	}
	return s.keys.ready()
}

// seal returns a plain envelope as it is to be kept at a place. It cannot fail:
// whether there is a key to encrypt with was settled before; see sealable.
func (s *sealer) seal(p place, env []byte) []byte {
	if len(env) <= s.above {
		return env
	}
	open, err := envelope.Open(env)
	if err != nil || open.KeyID != "" {
		return env // none of ours, or sealed already
	}
	changed := false
	if open.Compression == "" {
		if small, ok := s.compress.compress(open.Payload); ok {
			open.Compression, open.Payload, changed = zstdName, small, true
		}
	}
	if s.keys != nil {
		if k := s.keys.forSealing(p.run); k != nil {
			open.KeyID, open.KeyCheck, changed = k.id, k.key.check, true
			open.Payload = k.aead.Seal(nil, nil, open.Payload, p.bound(open.Header()))
		}
	}
	if !changed {
		return env
	}
	return envelope.Seal(open.Header(), open.Payload)
}

// open reads an envelope from its place: checked, decrypted, decompressed.
func (s *sealer) open(p place, env []byte) (envelope.Envelope, error) {
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

// unseal returns the plain envelope of one that stands at a place. What it
// returns belongs to no place and may be sealed for another one: this is how
// a payload is copied.
func (s *sealer) unseal(p place, env []byte) ([]byte, error) {
	if len(env) == 0 || envelope.IsPlain(env) {
		return env, nil
	}
	open, err := s.open(p, env)
	if err == nil && open.KeyID != "" {
		err = s.sealable()
	}
	if err != nil {
		return nil, err
	}
	open.Compression, open.KeyID, open.KeyCheck = "", "", ""
	return envelope.Seal(open.Header(), open.Payload), nil
}

// sealOverhead is how many bytes a sealed payload may have more than its
// encoding: the header, and what authenticates it.
const sealOverhead = envelope.MaxHeader + 28

// payloadLimitOf returns the limit for a run that was started under Options.MaxPayload
// born. A lower limit is for runs that are started under it: a step of one that was not
// has done its work by the time its result is found too large, and would fail for good.
func (s *sealer) payloadLimitOf(born int) int {
	limit, err := payloadLimit(born, s.limits)
	if err != nil {
		return s.maxPayload // of a store that takes more
	}
	return max(limit, s.maxPayload)
}

// payloadLimit returns how large an encoded value may be, so that whatever is
// made of it fits into the store.
func payloadLimit(asked int, l store.Limits) (int, error) {
	if asked > l.Payload {
		return 0, fmt.Errorf("durable: Options.MaxPayload is %d and the store takes %d bytes: %w", asked, l.Payload, ErrInvalid)
	}
	limit := l.Payload - sealOverhead
	if asked != 0 {
		limit = min(limit, asked)
	}
	return limit, nil
}
