package history

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// The key of a durable call is its address in the history: the path of the scopes that
// it is in, its name, and an occurrence number if the name repeats.
//
//	charge                 the first call named "charge" of the run
//	charge#2               the second one
//	items[17]/resize       in item 17 of the Map "items"
//
// The characters / # @ ~ [ ] % of a name are percent-encoded, so that a key
// can be taken apart again.

const reserved = "/#@~[]%"

// EscapeName returns name as it is written in a key.
func EscapeName(name string) string {
	if !strings.ContainsAny(name, reserved) {
		return name
	}
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if strings.IndexByte(reserved, c) < 0 {
			b.WriteByte(c)
			continue
		}
		const hex = "0123456789ABCDEF"
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}

// JoinKey returns the key of the n-th call (from 1) with an escaped name in the
// scope with this path.
func JoinKey(path, escaped string, n int32) string {
	if path == "" && n == 1 {
		return escaped
	}
	var space [128]byte
	return string(appendKey(space[:0], path, escaped, n))
}

func appendKey(b []byte, path, escaped string, n int32) []byte {
	if path != "" {
		b = append(append(b, path...), '/')
	}
	b = append(b, escaped...)
	if n > 1 {
		b = strconv.AppendInt(append(b, '#'), int64(n), 10)
	}
	return b
}

// Keys makes the keys of one scope's calls, as JoinKey does. Those of consecutive calls
// share an allocation. The zero value is ready for use; it must not be copied.
type Keys struct {
	chunk strings.Builder
	// last is the last key with an occurrence number; escaped and n made it. In a loop the
	// next one differs by one.
	last    []byte
	escaped string
	n       int32
}

// maxKeyChunk limits how many bytes of keys share an allocation, so that a key that is
// kept keeps little beside it.
const maxKeyChunk = 512

// Join is JoinKey.
func (k *Keys) Join(path, escaped string, n int32) string {
	if path == "" && n == 1 {
		return escaped
	}
	var space [128]byte
	b := space[:0]
	switch {
	case n == 1:
		b = appendKey(b, path, escaped, n)
	case n == k.n+1 && escaped == k.escaped && countUp(k.last):
		b, k.n = k.last, n
	default:
		k.last = appendKey(k.last[:0], path, escaped, n)
		b, k.escaped, k.n = k.last, escaped, n
	}
	size := len(b)
	if k.chunk.Cap()-k.chunk.Len() < size {
		// The first chunk has one key: a scope may have only one call.
		grown := min(2*k.chunk.Cap(), maxKeyChunk)
		k.chunk.Reset()
		k.chunk.Grow(max(grown, size))
	}
	begin := k.chunk.Len()
	k.chunk.Write(b)
	return k.chunk.String()[begin:]
}

// countUp adds one to the number at the end of b, which is no 0, unless that takes another digit.
func countUp(b []byte) bool {
	i := len(b) - 1
	for b[i] == '9' {
		i--
	}
	if b[i] == '#' {
		return false
	}
	b[i]++
	for i++; i < len(b); i++ {
		b[i] = '0'
	}
	return true
}

// ScopeOfKey returns the path of the scope of a key.
func ScopeOfKey(key string) string {
	if i := strings.LastIndexByte(key, '/'); i >= 0 {
		return key[:i]
	}
	return ""
}

// ItemKey returns the key of item n (from 0) of the Map with this key.
func ItemKey(key string, n int) string { return key + "[" + strconv.Itoa(n) + "]" }

// ItemRoom is by how many bytes the longest key of an item exceeds that of its Map.
const ItemRoom = len("[2147483647]")

// SplitItem takes the key of an item apart.
func SplitItem(key string) (name string, n int, ok bool) {
	i := strings.LastIndexByte(key, '[')
	if i < 0 || !strings.HasSuffix(key, "]") {
		return "", 0, false
	}
	n, err := strconv.Atoi(key[i+1 : len(key)-1])
	return key[:i], n, err == nil && n >= 0
}

// UndoScope is the path of the scope in which compensations run.
const UndoScope = "~undo"

// WaitKey is the signal name that answers one wait and no other. A key may be longer than a name:
// then it stands there by its hash.
func WaitKey(key string, branch int32) string {
	name := fmt.Sprintf("%s@%d", key, branch)
	if len(name) <= store.MaxName {
		return name
	}
	return fmt.Sprintf("%x@%d", sha256.Sum256([]byte(key)), branch)
}
