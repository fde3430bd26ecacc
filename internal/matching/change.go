package matching

import (
	"slices"
	"strings"
)

// What was done to the code; package durable says what each means.
const (
	ChangeInserted           = "inserted"
	ChangeRemoved            = "removed"
	ChangeRenamed            = "renamed"
	ChangeReordered          = "reordered"
	ChangeInsertedOrRenamed  = "inserted or renamed"
	ChangeRemovedOrReordered = "removed or reordered"
	ChangeKind               = "kind changed"
	ChangeItems              = "items changed"
	ChangeInput              = "input changed"
	ChangeChild              = "child changed"
	ChangeBranches           = "branches changed"
	ChangePatchRemoved       = "patch removed"
)

// changeOf names the edit at the first difference: call stands where recorded has
// another key, at ordinal (from 1). sameKind says whether the two calls are of one
// kind, and declared are the names the code now gives to Steps, nil if it names
// none. All keys are of one scope. For example:
//
//	recorded       call now   edit
//	a b c          x (at 2)   inserted or renamed; inserted if x is of another kind or the code still declares b
//	a b c          c (at 2)   removed or reordered; removed if the code declares no b
//	s s#2 s#3 b    b (at 3)   removed: one repetition less
//	s s#2 b        s#3 (at 3) inserted: one repetition more
func changeOf(recorded []string, ordinal int, call string, sameKind bool, declared []string) string {
	at := recorded[ordinal-1]
	still := slices.Contains(declared, baseOf(at))
	later := slices.Index(recorded[ordinal:], call)
	repeated := func(key string) bool { return key != baseKey(key) }
	switch {
	case later < 0 && repeated(call):
		return ChangeInserted
	case later >= 0 && repeated(at) && baseKey(at) != baseKey(call):
		return ChangeRemoved
	case later < 0 && (!sameKind || still):
		return ChangeInserted
	case later < 0 && declared != nil:
		return ChangeRenamed
	case later < 0 && alike(at, call):
		return ChangeRenamed
	case later < 0:
		return ChangeInsertedOrRenamed
	case still:
		return ChangeReordered
	case declared != nil:
		return ChangeRemoved
	}
	return ChangeRemovedOrReordered
}

// baseKey returns a key without its occurrence number.
func baseKey(key string) string {
	if i := strings.LastIndexByte(key, '#'); i > strings.LastIndexByte(key, '/') {
		return key[:i]
	}
	return key
}

// baseOf returns the name at the end of a key, as it is escaped there.
func baseOf(key string) string {
	key = baseKey(key)
	return key[strings.LastIndexByte(key, '/')+1:]
}

// alike reports whether two keys differ only in case, or in what separates their words.
func alike(a, b string) bool {
	plain := strings.NewReplacer("-", "", "_", "", " ", "", ".", "")
	return strings.EqualFold(plain.Replace(a), plain.Replace(b))
}
