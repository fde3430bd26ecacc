package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/holdfast-dev/holdfast/store"
)

// A stream is standard output or standard error: each decides by itself what it
// looks like.
type stream struct {
	w      io.Writer
	tty    bool
	colour bool
	width  int // of a terminal
}

func newStream(w io.Writer, noColour bool, getenv func(string) string) *stream {
	s := &stream{w: w, width: 80}
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	s.tty = true
	s.colour = !noColour && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
		s.width = n
	}
	return s
}

func (s *stream) printf(format string, args ...any) { fmt.Fprintf(s.w, format, args...) }

// The colours: what they mark is always said in a word or a sign too.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	dim    = "2"
	bold   = "1"
)

func (s *stream) paint(colour, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// at shows a moment: short and local on a terminal, RFC 3339 in UTC elsewhere.
func (s *stream) at(t store.Time) string {
	switch {
	case t == 0:
		return "-"
	case !s.tty:
		return rfc3339(t)
	}
	local := t.Time().Local()
	if y, m, d := time.Now().Date(); local.Year() == y && local.Month() == m && local.Day() == d {
		return local.Format("15:04:05")
	}
	return local.Format("2006-01-02 15:04")
}

func rfc3339(t store.Time) string {
	if t == 0 {
		return ""
	}
	return t.Time().Format(time.RFC3339)
}

// length shows a duration to a person.
func length(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

func bytesOf(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d B", n)
	case n < 10_000_000:
		return fmt.Sprintf("%d kB", n/1000)
	}
	return fmt.Sprintf("%d MB", n/1_000_000)
}

// A table is rows of cells. Cells are shown escaped; an empty one as "-", so that
// columns can be told apart in a pipe and on a terminal.
type table struct {
	head []string
	rows [][]string
	mark []string // one per row, in front of it on a terminal and behind it in a pipe; nil: no marks
	tint []string // colour of a row; nil: none
	// wide is the column that is cut when a terminal is too narrow; -1: none.
	wide int
}

func (s *stream) table(t table) {
	if !s.tty {
		for i, row := range t.rows {
			cells := make([]string, 0, len(row)+1)
			for _, cell := range row {
				cells = append(cells, orDash(strings.ReplaceAll(escape(cell), "\t", `\t`)))
			}
			if t.mark != nil {
				cells = append(cells, t.mark[i])
			}
			s.printf("%s\n", strings.Join(cells, "\t"))
		}
		return
	}
	width := make([]int, len(t.head))
	for i, h := range t.head {
		width[i] = utf8.RuneCountInString(h)
	}
	shown := make([][]string, len(t.rows))
	for i, row := range t.rows {
		shown[i] = make([]string, len(row))
		for j, cell := range row {
			shown[i][j] = orDash(escape(cell))
			width[j] = max(width[j], utf8.RuneCountInString(shown[i][j]))
		}
	}
	s.narrow(t, width)
	lead := func(i int) string {
		switch {
		case t.mark == nil:
			return ""
		case i >= 0 && t.mark[i] != "":
			return "▸ "
		}
		return "  "
	}
	s.printf("%s\n", s.paint(bold, lead(-1)+padded(t.head, width)))
	for i, row := range shown {
		line := lead(i) + padded(row, width)
		if t.tint != nil {
			line = s.paint(t.tint[i], line)
		}
		s.printf("%s\n", line)
	}
}

// narrow takes from the wide column what the terminal has not.
func (s *stream) narrow(t table, width []int) {
	total := 0
	for _, n := range width {
		total += n + 2
	}
	if t.mark != nil {
		total += 2
	}
	if over := total - 2 - s.width; t.wide >= 0 && t.wide < len(width) && over > 0 {
		width[t.wide] = max(12, width[t.wide]-over)
	}
}

func padded(cells []string, width []int) string {
	var b strings.Builder
	for i, cell := range cells {
		n := utf8.RuneCountInString(cell)
		if n > width[i] {
			cell = string([]rune(cell)[:width[i]-1]) + "…"
			n = width[i]
		}
		b.WriteString(cell)
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", width[i]-n+2))
		}
	}
	return b.String()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// json prints one object on a line of its own.
func (s *stream) json(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	line := b.Bytes()
	if s.tty { // the same value, in characters that a terminal only shows
		line = escapeJSON(line)
	}
	_, err := s.w.Write(line)
	return err
}

func attemptOf(n, most int) string {
	if most > 1 {
		return fmt.Sprintf("attempt %d of %d", n, most)
	}
	return fmt.Sprintf("attempt %d", n)
}
