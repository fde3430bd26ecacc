package show

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// RFC3339 shows a moment to programs; empty: there is none.
func RFC3339(t store.Time) string {
	if t == 0 {
		return ""
	}
	return t.Time().Format(time.RFC3339)
}

// Length shows a duration to a person.
func Length(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// Bytes shows a size to a person.
func Bytes(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d B", n)
	case n < 10_000_000:
		return fmt.Sprintf("%d kB", n/1000)
	}
	return fmt.Sprintf("%d MB", n/1_000_000)
}

// OrDash returns s, or a dash for nothing.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// AttemptOf shows an attempt: "attempt 2 of 5".
func AttemptOf(n, most int) string {
	if most > 1 {
		return fmt.Sprintf("attempt %d of %d", n, most)
	}
	return fmt.Sprintf("attempt %d", n)
}

// Number shows a number; 0 stands for none, and is empty.
func Number(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// AttemptSuffix shows an attempt after what it is one of: " attempt 2".
func AttemptSuffix(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" attempt %d", n)
}

// Because shows a reason after what it is the reason of: ": paid by hand".
func Because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// OrElse returns s, or other where s is empty.
func OrElse(s, other string) string { return cmp.Or(s, other) }

// List returns a list that JSON shows as [] and not as null when it is empty.
func List(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// OrNothing returns a list, or one that says "nothing".
func OrNothing(list []string) []string {
	if len(list) == 0 {
		return []string{"nothing"}
	}
	return list
}

// FirstLine returns the first line of a text of several, which says what it is about; the others,
// such as the two sides of changed code, have no place in a row.
func FirstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return first
}

// Flags returns a text of the library with the names that its options have at a terminal.
func Flags(text string) string { return force.ReplaceAllString(text, "${2}--force${1}") }

var force = regexp.MustCompile(`\b(?:(?:Edit|Repair)Options\.)?Force( replaces| records| takes| starts| does)\b|\b(use |with )Force\b`)
