package durable

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
)

// IdempotencyKey names the effect of the step whose context ctx is, for services
// that accept such a key: the same over all attempts and crashes, another for
// every other step, run and generation. It is empty outside a step.
func IdempotencyKey(ctx context.Context) string {
	a, ok := ctx.Value(scopeKey{}).(*attempt)
	if !ok {
		return ""
	}
	r := a.step.call.scope.run
	return IdempotencyKeyOf(r.id, int(r.row.Generation), a.step.call.key)
}

// IdempotencyKeyOf returns what IdempotencyKey returns in the body of the step
// with this key, in this generation of the run (0: the first): who asks the other
// side whether something was done needs it. It neither looks whether there is such
// a step, nor into a store. A step that a fork has copied was made under the key
// of the run that it was copied from.
func IdempotencyKeyOf(runID string, generation int, key string) string {
	h := sha256.New()
	var n [8]byte
	for _, part := range []string{runID, key} {
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	binary.BigEndian.PutUint64(n[:], uint64(generation))
	h.Write(n[:])
	return "hf-" + base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:20])
}
