package sqlstore

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"

	"github.com/holdfast-dev/holdfast/store"
)

// position is where a page ended. Both parts never change while a run exists,
// and run numbers are never used twice, so pages are stable (S16).
type position struct{ createdAt, no int64 }

const (
	cursorVersion = 1
	cursorSize    = 1 + 8 + 8 + 8 // version, hash of the filter, createdAt, no
)

func formatCursor(f store.Filter, p position) string {
	b := make([]byte, 0, cursorSize)
	b = append(b, cursorVersion)
	b = binary.BigEndian.AppendUint64(b, filterHash(f))
	b = binary.BigEndian.AppendUint64(b, uint64(p.createdAt))
	b = binary.BigEndian.AppendUint64(b, uint64(p.no))
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseCursor(f store.Filter) (position, error) {
	b, err := base64.RawURLEncoding.DecodeString(f.After)
	if err != nil || len(b) != cursorSize || b[0] != cursorVersion {
		return position{}, fmt.Errorf("store: Filter.After %.80q is not a cursor of a listing: %w", f.After, store.ErrInvalid)
	}
	if binary.BigEndian.Uint64(b[1:]) != filterHash(f) {
		return position{}, fmt.Errorf("store: Filter.After belongs to another filter or order; begin the listing again: %w", store.ErrInvalid)
	}
	return position{
		createdAt: int64(binary.BigEndian.Uint64(b[9:])),
		no:        int64(binary.BigEndian.Uint64(b[17:])),
	}, nil
}

// filterHash identifies what a listing selects and in which order; the size of
// the page may change on the way.
func filterHash(f store.Filter) uint64 {
	f.Limit, f.After, f.WithLast = 0, "", false
	h := fnv.New64a()
	// A Filter holds strings, numbers and booleans alone: it always encodes,
	// and maps in the order of their keys.
	if err := json.NewEncoder(h).Encode(f); err != nil {
		panic("sqlstore: encode filter: " + err.Error())
	}
	return h.Sum64()
}
