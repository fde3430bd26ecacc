package durable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"

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

// placeOfMail is the place of a message that r has received.
func (r *run) placeOfMail(m *store.Message) place {
	p := placeOfMessage(m)
	p.run = r.id
	return p
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

// wrapping is what payloads get beside their encoding. It does not change once
// an engine is open.
type wrapping struct {
	// above: an envelope of more bytes is looked at; the usual small one, with
	// no encryption, costs one comparison.
	above    int
	compress *compressor
	keys     *keyring // nil: nothing is encrypted or can be decrypted
}

func newWrapping(o *Options, limits store.Limits) (*wrapping, error) {
	w := &wrapping{above: math.MaxInt, compress: newCompressor(o.CompressAbove, limits.Payload)}
	if w.compress.above >= 0 {
		w.above = w.compress.above
	}
	if o.Encrypt != nil {
		var err error
		if w.keys, err = newKeyring(o.Encrypt, o.Logger); err != nil {
			return nil, err
		}
		w.above = 0
	}
	return w, nil
}

// sealable returns why a value must not be recorded now: it is to be encrypted, and
// there is no key that it could be encrypted with. It is asked before a value is
// encoded, and before one that is encrypted is copied.
func (e *Engine) sealable() error {
	if e.wrap.keys == nil {
		return nil
	}
	return e.wrap.keys.ready()
}

// refuses returns the error of a call whose value cannot be encoded. For want of a
// key the run is parked: it can go on once there is one.
func (r *run) refuses(e *EncodeError) error {
	if errors.Is(e.Err, ErrNoKey) {
		return r.unrecorded(e.Key, e.Err)
	}
	return e
}

// seal returns a plain envelope as it is to be kept at a place. It cannot fail:
// whether there is a key to encrypt with was settled before; see sealable.
func (e *Engine) seal(p place, env []byte) []byte {
	if len(env) <= e.wrap.above {
		return env
	}
	return e.wrap.seal(p, env)
}

func (w *wrapping) seal(p place, env []byte) []byte {
	open, err := envelope.Open(env)
	if err != nil || open.KeyID != "" {
		return env // none of ours, or sealed already
	}
	changed := false
	if open.Compression == "" {
		if small, ok := w.compress.compress(open.Payload); ok {
			open.Compression, open.Payload, changed = zstdName, small, true
		}
	}
	if w.keys != nil {
		if k := w.keys.forSealing(p.run); k != nil {
			open.KeyID, open.KeyCheck, changed = k.id, k.key.check, true
			open.Payload = k.aead.Seal(nil, nil, open.Payload, p.bound(open.Header()))
		}
	}
	if !changed {
		return env
	}
	return envelope.Seal(open.Header(), open.Payload)
}

// sealEvents seals the payloads of events that r is about to record on a branch,
// which they get when they are numbered.
func (r *run) sealEvents(events []store.Event, branch int32) {
	for i := range events {
		if ev := &events[i]; len(ev.Payload) > r.eng.wrap.above {
			p := placeOf(r.id, ev)
			p.branch = branch
			ev.Payload = r.eng.wrap.seal(p, ev.Payload)
		}
	}
}

// sealMessage seals the payload of a message that is about to be sent, and then the
// message.
func (e *Engine) sealMessage(m *store.Message) {
	m.Payload = e.seal(placeOfMessage(m), m.Payload)
	m.Data = withSum(m)
}

// open reads an envelope from its place: checked, decrypted, decompressed.
func (e *Engine) open(p place, env []byte) (envelope.Envelope, error) {
	open, err := envelope.Open(env)
	if err != nil {
		return open, err
	}
	if open.KeyID != "" {
		if open.Payload, err = e.wrap.keys.decrypt(&open, p); err != nil {
			return open, err
		}
	}
	if open.Compression != "" {
		if open.Payload, err = e.wrap.compress.decompress(open.Compression, open.Payload); err != nil {
			return open, err
		}
	}
	return open, nil
}

// undecodable parks r, because a recorded value cannot be read as the type that
// is wanted, and returns the error for the call that found it.
// wanted is nil where it is not known yet.
func (r *run) undecodable(key, recorded string, wanted reflect.Type, err error) error {
	und := &UndecodableError{RunID: r.id, Key: key, Recorded: recorded, Err: err}
	if wanted != nil {
		und.Wanted = wanted.String()
	}
	return r.die(&death{kind: deathParked, code: codeOfDecode(err), err: und})
}

// unseal returns the plain envelope of one that stands at a place. What it
// returns belongs to no place and may be sealed for another one: this is how
// a payload is copied.
func (e *Engine) unseal(p place, env []byte) ([]byte, error) {
	if len(env) == 0 || envelope.IsPlain(env) {
		return env, nil
	}
	open, err := e.open(p, env)
	if err == nil && open.KeyID != "" {
		err = e.sealable()
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
func (e *Engine) payloadLimitOf(born int) int {
	limit, err := payloadLimit(born, e.store.Limits())
	if err != nil {
		return e.maxPayload // of a store that takes more
	}
	return max(limit, e.maxPayload)
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
