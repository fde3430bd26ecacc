package termview

import (
	"fmt"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/holdfast-dev/holdfast/internal/visible"
)

// Clean returns s made safe for a line of a terminal; see visible.Line.
func Clean(s string) string { return visible.Line(s) }

// Width returns how many cells s takes. s must have no control characters.
func Width(s string) int { return uniseg.StringWidth(s) }

// Clip cuts s to a number of cells, the last of them an ellipsis; 0: no limit.
func Clip(s string, cells int) string {
	if cells <= 0 || Width(s) <= cells {
		return s
	}
	var b strings.Builder
	used := 0
	for g := uniseg.NewGraphemes(s); g.Next(); {
		if used += g.Width(); used > cells-1 {
			break
		}
		b.WriteString(g.Str())
	}
	return b.String() + "…"
}

// pad fills s with spaces up to a number of cells.
func pad(s string, cells int) string { return s + strings.Repeat(" ", max(0, cells-Width(s))) }

// Took writes how long something took: "0.2s", "11m2s".
func Took(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", max(d, 0).Seconds())
	}
	return d.Round(time.Second).String()
}

// pause writes how long something will take: "1s", "0.5s".
func pause(d time.Duration) string { return strings.Replace(Took(d), ".0s", "s", 1) }

// bar is a bar of ten cells.
func bar(done, total int) string {
	n := 0
	if total > 0 {
		n = min(10, 10*done/total)
	}
	return strings.Repeat("█", n) + strings.Repeat("░", 10-n)
}

// attempt writes "attempt 3 of 5"; without a known limit "attempt 3".
func attempt(n, of int) string {
	if of > 0 {
		return fmt.Sprintf("attempt %d of %d", n, of)
	}
	return fmt.Sprintf("attempt %d", n)
}
