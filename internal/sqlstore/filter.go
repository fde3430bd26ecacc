package sqlstore

import "unicode/utf8"

// Dialect is what differs between databases when a listing is assembled. Text
// columns must compare by bytes (COLLATE "C" on PostgreSQL).
type Dialect struct {
	// Param is the n-th bound parameter, from 1: "?1" or "$1".
	Param func(n int) string
	// AnyOf is a condition that column equals an element of the list bound to
	// param; Array makes the bound value.
	AnyOf func(column, param string) string
	Array func([]string) any
	// Bar is a column as an expression that no index has.
	Bar func(column string) string
	// Unfinished is a condition of the runs that have not ended, in the words of the index
	// that they have.
	Unfinished string
	// Owned are conditions, of which one is true for each run with an owner. Each is that
	// of an index by owner.
	Owned []string
	// Kinds are the columns of an index that begins with the status and goes on to the workflow;
	// empty: there is none.
	Kinds string
	// Queued: there is an index of the runs on a queue, in the order of a listing.
	Queued bool
	// LimitFirst: a limit of 0 keeps a statement from reading anything, and a condition that
	// does not depend on a row does not.
	LimitFirst bool
	// Mail is a condition of the runs with unseen messages, such that an index has it.
	Mail string
	// Runs and Attributes are the tables, as they are written in SQL.
	Runs, Attributes string
	// Hashed is a text as the index of attributes has their values; nil: as it is.
	Hashed func(text string) string
	// LastSeq is an expression for the Seq of the last event of the current row
	// of Runs.
	LastSeq string
}

// PrefixEnd returns the smallest string that is greater, byte by byte, than
// every string with this prefix; false if there is none. It is valid UTF-8 if
// prefix is, because the bytes of UTF-8 sort like the code points.
func PrefixEnd(prefix string) (string, bool) {
	if !utf8.ValidString(prefix) {
		for i := len(prefix) - 1; i >= 0; i-- {
			if prefix[i] < 0xff {
				return prefix[:i] + string([]byte{prefix[i] + 1}), true
			}
		}
		return "", false
	}
	runes := []rune(prefix)
	for i := len(runes) - 1; i >= 0; i-- {
		switch r := runes[i]; {
		case r == utf8.MaxRune:
		case r == 0xd7ff: // the surrogates that follow are not UTF-8
			return string(append(runes[:i], 0xe000)), true
		default:
			return string(append(runes[:i], r+1)), true
		}
	}
	return "", false
}
