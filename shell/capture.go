package shell

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// capture keeps the beginning and the end of what is written to it, and passes
// everything on.
type capture struct {
	limit int     // bytes, half of them for the beginning
	to    *stream // nil: it is not passed on

	head  []byte
	tail  []byte // a ring once it is full
	at    int    // where the next byte of the ring goes
	total int64
}

func (c *capture) Write(p []byte) (int, error) {
	c.total += int64(len(p))
	rest := p
	if room := c.limit/2 - len(c.head); room > 0 {
		n := min(room, len(rest))
		c.head = append(c.head, rest[:n]...)
		rest = rest[n:]
	}
	space := c.limit - c.limit/2
	if len(rest) > space {
		rest = rest[len(rest)-space:]
	}
	for len(rest) > 0 {
		if len(c.tail) < space {
			n := min(space-len(c.tail), len(rest))
			c.tail = append(c.tail, rest[:n]...)
			rest = rest[n:]
			continue
		}
		n := copy(c.tail[c.at:], rest)
		c.at = (c.at + n) % space
		rest = rest[n:]
	}
	c.to.write(p) // after keeping it, because this may block
	return len(p), nil
}

// output returns what was kept, as text.
func (c *capture) output() Output {
	end := append(append([]byte{}, c.tail[c.at:]...), c.tail[:c.at]...)
	o := Output{Bytes: c.total, Omitted: c.total - int64(len(c.head)+len(end))}
	if o.Omitted == 0 {
		o.Text = text(append(c.head, end...))
		return o
	}
	// The cut may split a character.
	head := c.head
	for i := 0; i < utf8.UTFMax && len(head) > 0; i++ {
		if r, n := utf8.DecodeLastRune(head); r != utf8.RuneError || n != 1 {
			break
		}
		head = head[:len(head)-1]
	}
	for i := 0; i < utf8.UTFMax && len(end) > 0 && !utf8.RuneStart(end[0]); i++ {
		end = end[1:]
	}
	o.Omitted = c.total - int64(len(head)+len(end))
	o.Text = fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", text(head), o.Omitted, text(end))
	return o
}

// text makes the output of a command valid UTF-8.
func text(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// shorten returns at most n bytes of an output, for a note.
func (o Output) shorten(n int) Output {
	if len(o.Text) <= n {
		return o
	}
	c := &capture{limit: n}
	_, _ = c.Write([]byte(o.Text))
	short := c.output()
	return Output{Text: short.Text, Bytes: o.Bytes, Omitted: o.Omitted + short.Omitted}
}

// tailOf returns the last lines of a command's output.
func tailOf(r *Result) string {
	s := strings.TrimSpace(r.Stderr.Text)
	if s == "" {
		s = strings.TrimSpace(r.Stdout.Text)
	}
	lines := strings.Split(s, "\n")
	if len(lines) > maxTailLines {
		lines = lines[len(lines)-maxTailLines:]
	}
	s = strings.Join(lines, "\n")
	if len(s) > maxTail {
		s = strings.ToValidUTF8(s[len(s)-maxTail:], "")
	}
	return s
}

// The bounds of what an ExitError shows.
const (
	maxTailLines = 5
	maxTail      = 1000
)
