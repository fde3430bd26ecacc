package termview

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Options describe the output. The zero value is a file: plain lines, one after
// the other, never cut.
type Options struct {
	// Redraw: it is a terminal, and earlier output can be overwritten.
	Redraw bool
	// Color: it is a terminal, and colours are wanted.
	Color bool
	// Width and Height in cells; 0: not known, no limit.
	Width, Height int
}

// Detect finds out what w is. NO_COLOR in the environment turns colours off,
// TERM=dumb turns off colours and redrawing.
func Detect(w io.Writer) Options {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return Options{}
	}
	dumb := os.Getenv("TERM") == "dumb"
	o := Options{Redraw: !dumb, Color: !dumb && os.Getenv("NO_COLOR") == ""}
	o.resize(w)
	return o
}

// resize asks the terminal for its size, which its user may have changed.
func (o *Options) resize(w io.Writer) {
	if f, ok := w.(*os.File); ok {
		if width, height, err := term.GetSize(int(f.Fd())); err == nil {
			o.Width, o.Height = width, height
		}
	}
}

// A tone is a colour. It never carries information that the text does not.
type tone string

const (
	plain  tone = ""
	good   tone = "\x1b[32m"
	bad    tone = "\x1b[31m"
	asking tone = "\x1b[33m"
	faint  tone = "\x1b[2m"
)

func (o Options) paint(t tone, s string) string {
	if !o.Color || t == plain {
		return s
	}
	return string(t) + s + "\x1b[0m"
}

// screen writes lines, and below them a block that is overwritten. Each change
// is one Write, so that nothing half drawn is visible.
type screen struct {
	w     io.Writer
	o     Options
	drawn int // lines of the block on the terminal
	err   error
}

// draw writes lines that stay, and a block that replaces the previous one.
// Without Redraw there is no block.
func (s *screen) draw(stay, block []string) {
	var b bytes.Buffer
	if s.drawn > 1 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn-1)
	}
	if s.drawn > 0 {
		b.WriteString("\r\x1b[J")
	}
	s.drawn = 0
	for _, l := range stay {
		b.WriteString(l + "\n")
	}
	if s.o.Redraw && len(block) > 0 {
		b.WriteString(strings.Join(block, "\n"))
		s.drawn = len(block)
	}
	if b.Len() == 0 || s.err != nil {
		return
	}
	_, s.err = s.w.Write(b.Bytes())
}

// fit cuts a line so that it takes one row and leaves the last column free,
// because overwriting goes wrong if the terminal wraps a line.
func (o Options) fit(s string) string {
	if o.Width <= 1 {
		return s
	}
	return Clip(s, o.Width-1)
}
