package act

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"strings"

	"github.com/holdfast-dev/holdfast/dashboard/internal/read"
	"github.com/holdfast-dev/holdfast/store"
)

// bulkRead is how many rows are read at a time.
const bulkRead = 100

// A selection is the runs of one request. The beginning of each page of the store is a
// place to go on from.
type selection struct {
	rows  []store.Run
	pages []selectedPage
	next  string // after the last row; empty: there are no more
}

type selectedPage struct {
	first   int // row
	cursor  string
	reached []uint64 // marks of its runs that an earlier request has reached
}

// from returns where to go on after the first n rows. A page that was only begun is read
// again, and the cursor carries the marks of its runs that were reached: they are not acted
// on twice, whatever has become of them. Nothing goes on within the first page of the
// listing: another dry run begins it anew.
func (s *selection) from(n int, l *read.Listing) string {
	if n >= len(s.rows) {
		return l.CursorBehind(s.next)
	}
	var at selectedPage
	for _, p := range s.pages {
		if p.first <= n {
			at = p
		}
	}
	if at.cursor == "" {
		return ""
	}
	for i := range s.rows[at.first:n] {
		at.reached = append(at.reached, markOf(s.rows[at.first+i].ID))
	}
	return marked(at.reached) + l.CursorBehind(at.cursor)
}

// A mark stands for a run in a cursor, which has up to bulkRead of them.
func markOf(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // it does not fail
	return h.Sum64()
}

// marksAround encloses the marks at the beginning of a cursor.
const marksAround = "+"

func marked(marks []uint64) string {
	if len(marks) == 0 {
		return ""
	}
	b := make([]byte, 0, 8*len(marks))
	for _, m := range marks {
		b = binary.BigEndian.AppendUint64(b, m)
	}
	return marksAround + base64.RawURLEncoding.EncodeToString(b) + marksAround
}

// split returns the marks of a cursor, and the rest of it.
func split(cursor string) (marks []byte, rest string) {
	after, ok := strings.CutPrefix(cursor, marksAround)
	text, rest, found := strings.Cut(after, marksAround)
	if !ok || !found {
		return nil, cursor
	}
	marks, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(marks)%8 != 0 {
		return nil, cursor // the store refuses it
	}
	return marks, rest
}

// behind returns a cursor without marks.
func behind(cursor string) string {
	_, rest := split(cursor)
	return rest
}

// reachedBefore returns the marks of a cursor.
func reachedBefore(cursor string) map[uint64]bool {
	marks, _ := split(cursor)
	reached := make(map[uint64]bool, len(marks)/8)
	for ; len(marks) > 0; marks = marks[8:] {
		reached[binary.BigEndian.Uint64(marks)] = true
	}
	return reached
}
