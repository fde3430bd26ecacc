package store

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CleanText returns s as every store keeps a text for people, the same in a column
// and in JSON: bytes that are no UTF-8, and NUL, become the replacement character,
// each by itself. Whoever writes a reason, a prompt, or another text of free form
// into a Change cleans it with this first, so that what the row says and what the log
// says stay the same. Ids, names and keys are not cleaned but refused, by the checks
// of this package: cleaned, two of them could become one.
func CleanText(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r == 0 {
			return utf8.RuneError
		}
		return r // of a byte that is no UTF-8 that is RuneError, too
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
