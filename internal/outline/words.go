package outline

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/store"
)

// Text is a sentence in parts, so that a page can set names apart. It is not
// escaped: names and errors in it are user data.
type Text []Span

// A Span is a part of a sentence. Code marks a name from the run's history, Strong
// what should stand out. Said marks the words of an error or a person. At, if set, is
// the moment that the words express.
type Span struct {
	Text         string
	Code, Strong bool
	Said         bool
	At           store.Time
}

// String returns the sentence without its marks.
func (t Text) String() string {
	var b strings.Builder
	for _, s := range t {
		b.WriteString(s.Text)
	}
	return b.String()
}

// guarded is String without the words of errors and people.
func (t Text) guarded() string {
	var b strings.Builder
	for _, s := range t {
		if s.Said {
			s.Text = "“…”"
		}
		b.WriteString(s.Text)
	}
	return b.String()
}

// say makes a Text from strings and Spans.
func say(parts ...any) Text {
	var t Text
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			t = append(t, Span{Text: p})
		case Span:
			t = append(t, p)
		case Text:
			t = append(t, p...)
		}
	}
	return t
}

func code(s string) Span   { return Span{Text: s, Code: true} }
func strong(s string) Span { return Span{Text: s, Strong: true} }
func said(s string) Span   { return Span{Text: s, Said: true} }

// Duration returns d for people, with at most three digits: "42 ms", "1.10 s", "49.3
// s", "6 min 12 s", "25 min", "5 h 12 min", "3 d 4 h".
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return Duration(-d)
	case d == 0:
		return "0 ms"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return About(d)
}

// About returns d coarsely, for what goes on: "4 s", "18 min", "5 h 12 min".
func About(d time.Duration) string {
	two := func(a int64, unit string, b int64, small string) string {
		if b == 0 {
			return fmt.Sprintf("%d %s", a, unit)
		}
		return fmt.Sprintf("%d %s %d %s", a, unit, b, small)
	}
	s := int64(d.Abs() / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 10*60:
		return two(s/60, "min", s%60, "s")
	case s < 3600:
		return fmt.Sprintf("%d min", s/60)
	case s < 48*3600:
		return two(s/3600, "h", s%3600/60, "min")
	}
	return two(s/86400, "d", s%86400/3600, "h")
}

// Clock returns a moment as seen from now: "14:02:10" today, "tomorrow 14:09",
// "yesterday 14:09", otherwise "14 Mar 14:09", with the year if it is a different
// one.
func Clock(t, now store.Time, zone *time.Location) string {
	if zone == nil {
		zone = time.UTC
	}
	a, n := t.Time().In(zone), now.Time().In(zone)
	day := func(x time.Time) int64 {
		return time.Date(x.Year(), x.Month(), x.Day(), 0, 0, 0, 0, time.UTC).Unix() / 86400
	}
	switch day(a) - day(n) {
	case 0:
		return a.Format("15:04:05")
	case 1:
		return "tomorrow " + a.Format("15:04")
	case -1:
		return "yesterday " + a.Format("15:04")
	}
	if a.Year() == n.Year() {
		return a.Format("2 Jan 15:04")
	}
	return a.Format("2 Jan 2006 15:04")
}

func (o *Outline) clock(t store.Time) Span { return moment(t, o.Now, o.zone) }

func moment(t, now store.Time, zone *time.Location) Span {
	return Span{Text: Clock(t, now, zone), Strong: true, At: t}
}

func (o *Outline) ago(t store.Time) Span {
	d := o.Now.Sub(t)
	if d < time.Second {
		return Span{Text: "just now", At: t}
	}
	return Span{Text: About(d) + " ago", At: t}
}

// RunTook returns how long an ended run took: by its row, which knows it even if only
// the last events were read; for a later generation, by its events.
func (o *Outline) RunTook() time.Duration {
	if r := &o.Run; r.Generation == 0 && r.CreatedAt != 0 && r.EndedAt > r.CreatedAt {
		return r.EndedAt.Sub(r.CreatedAt)
	}
	return o.End.Sub(o.Begin)
}

// quote puts a person's words into quotation marks, cut to one line.
func quote(s string) Span { return said("“" + OneLine(s, 160) + "”") }

// OneLine returns the first line of s, cut to about limit characters.
func OneLine(s string, limit int) string {
	s = strings.TrimSpace(s)
	line, _, more := strings.Cut(s, "\n")
	line = strings.TrimSpace(line)
	if r := []rune(line); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	if more {
		return line + " …"
	}
	return line
}

// attempts returns "3 of 5 attempts", or "3 attempts" if the allowed number is unknown.
func attempts(n, max int) string {
	if max > 0 && max >= n {
		return fmt.Sprintf("%d of %s", n, count.Of(max, "attempt"))
	}
	return count.Of(n, "attempt")
}

// ofMax returns "3 of 5", or "3" if the allowed number is unknown.
func ofMax(n, max int) string {
	if max > 0 && max >= n {
		return fmt.Sprintf("%d of %d", n, max)
	}
	return strconv.Itoa(n)
}
