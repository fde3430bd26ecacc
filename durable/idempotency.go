package durable

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"
)

// IdempotencyKey names the effect of the step whose context ctx is, for services
// that accept such a key: the same over all attempts, crashes and branches, another for
// every other step, run and generation. A step that was undone by its compensation, and
// the compensation itself, have another key when they are made again. It is empty outside
// a step.
func IdempotencyKey(ctx context.Context) string {
	a, ok := ctx.Value(scopeKey{}).(*attempt)
	if !ok {
		return ""
	}
	r := a.step.call.scope.run
	return IdempotencyKeyOf(r.id, int(r.row.Generation), anewKey(r.anew, a.step.call.key))
}

// anewKey returns the key of a call as its idempotency key has it. Of one that was
// undone and is made again it names the branch since which that is so, "charge~b2": under
// the key it had, the other side would answer that it was done already.
func anewKey(anew map[string]int32, key string) string {
	since := int32(0)
	for k, branch := range anew {
		if rest, ok := strings.CutPrefix(key, k); ok && (k == "" || rest == "" || rest[0] == '/' || rest[0] == '[') {
			since = max(since, branch)
		}
	}
	if since == 0 {
		return key
	}
	return fmt.Sprintf("%s~b%d", key, since)
}

// IdempotencyKeyOf returns what IdempotencyKey returns in the body of the step
// with this key, in this generation of the run (0: the first): who asks the other
// side whether something was done needs it. It neither looks whether there is such
// a step, nor into a store. A step that a fork has copied was made under the key
// of the run that it was copied from. Of one that was undone and is made again, on
// branch 2 say, key is the step's with "~b2" behind it.
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
