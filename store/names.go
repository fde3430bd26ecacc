package store

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CleanText returns s in the form in which every store keeps text for people, the
// same in a column and in JSON: each byte that is not valid UTF-8, and each NUL,
// becomes a replacement character. Clean a reason, a prompt or any other free text
// with it before you write it into a Change, so that the row and the log keep saying
// the same. The checks of this package refuse bad ids, names and keys instead: if
// they were cleaned, two of them could become one.
func CleanText(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r == 0 {
			return utf8.RuneError
		}
		return r // for a byte that is not valid UTF-8, too, this is RuneError
	}, s)
}

// The limits of what a caller may choose as an identifier, in bytes.
const (
	MaxRunID = 1024
	MaxName  = 255
	MaxKey   = 4096
	MaxHold  = 1024
)

// NameError says why an id, a name or a key cannot be used.
type NameError struct {
	Kind   string // "run id", "workflow name", "step name", ...
	Value  string // as given, cut after 80 bytes
	Reason string
}

func (e *NameError) Error() string {
	return fmt.Sprintf("durable: %s %q: %s", e.Kind, e.Value, e.Reason)
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *NameError) Is(target error) bool { return target == ErrInvalid }

// CheckRunID returns a *NameError unless id can name a run: 1 to MaxRunID bytes
// of UTF-8 without control characters.
func CheckRunID(id string) error { return checkText("run id", id, MaxRunID) }

// CheckName returns a *NameError unless name can name a thing of the given
// kind: 1 to MaxName bytes of UTF-8 without control characters.
func CheckName(kind, name string) error { return checkText(kind, name, MaxName) }

// CheckHold returns a *NameError unless key can be an exclusive key
// (Change.Hold): 1 to MaxHold bytes of UTF-8 without control characters.
func CheckHold(key string) error { return checkText("exclusive key", key, MaxHold) }

func checkText(kind, s string, limit int) error {
	if s != "" && len(s) <= limit && printable(s) {
		return nil
	}
	reason := ""
	switch {
	case s == "":
		reason = "must not be empty"
	case len(s) > limit:
		reason = fmt.Sprintf("is %d bytes long; at most %d are allowed", len(s), limit)
	case !utf8.ValidString(s):
		reason = "is not valid UTF-8"
	default:
		for _, r := range s {
			if unicode.IsControl(r) {
				reason = fmt.Sprintf("contains the control character %U", r)
				break
			}
		}
	}
	if reason == "" {
		return nil
	}
	if len(s) > 80 {
		s = s[:80]
	}
	return &NameError{Kind: kind, Value: s, Reason: reason}
}

// printable reports whether s is ASCII without control characters, as ids and names
// usually are.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
