package dashboard

import (
	"strconv"
	"strings"
	"time"
)

// A cursor of ours is the store's. The store takes it for the very filter that it
// came from, so where that counts back from now ("since=24h"), ours says from
// which moment the first page did, and the pages behind it count from there, too:
//
//	~1795187382346512~AQAAAZk…
//
// Without that, a page asked for a second later would be another listing's, and
// the store refuse it.
const cursorMark = "~"

// cursorBehind is the cursor of the page behind one of l, whose last run has the
// cursor next in the store; empty: there is none.
func (l *listing) cursorBehind(next string) string {
	if next == "" || l.countedFrom.IsZero() {
		return next
	}
	return cursorMark + strconv.FormatInt(l.countedFrom.UnixMicro(), 10) + cursorMark + next
}

// splitCursor returns the store's part of a cursor, and what its listing counts
// back from: now, unless the cursor says another moment. It is a pure function of
// its arguments.
func splitCursor(cursor string, now time.Time) (string, time.Time) {
	marked, ok := strings.CutPrefix(cursor, cursorMark)
	if !ok {
		return cursor, now
	}
	at, of, _ := strings.Cut(marked, cursorMark)
	us, err := strconv.ParseInt(at, 10, 64)
	if err != nil || of == "" {
		return cursor, now // the store refuses it
	}
	return of, time.UnixMicro(us)
}
