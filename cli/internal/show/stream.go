// Package show is the input and output of the terminal commands: what they print, for
// people and for programs, and what they read from the keyboard.
//
//	stream.go    standard output and error: a terminal or a pipe, colours, JSON
//	table.go     tables
//	steps.go     the steps and attempts of a run, as a tree
//	text.go      numbers, durations and words
//	escape.go    text that others have written, made safe for a terminal
//	quote.go     words for a shell
//	commands.go  commands of this program that can be pasted into a shell
//	failure.go   errors in words, with what to do next and the exit code
//	bar.go       the progress of long work
//	keys*.go     single keys
package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/holdfast-dev/holdfast/internal/termview"
	"github.com/holdfast-dev/holdfast/store"
)

// A Stream is standard output or standard error. Each decides for itself how it
// prints: one may be a terminal and the other a pipe.
type Stream struct {
	W      io.Writer
	TTY    bool
	Colour bool
	Width  int // of a terminal

	lost error // the first that Printf has met
}

// NewStream returns the stream on w, with colours if w is a terminal that wants them.
func NewStream(w io.Writer, noColour bool, getenv func(string) string) *Stream {
	s := &Stream{W: w, Width: 80}
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	s.TTY = true
	s.Colour = !noColour && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
		s.Width = n
	}
	return s
}

// Printf prints to the stream.
func (s *Stream) Printf(format string, args ...any) {
	if _, err := fmt.Fprintf(s.W, format, args...); err != nil && s.lost == nil {
		s.lost = err
	}
}

// Lost returns why something that was printed has reached nobody, such as a full disk; nil: all has.
func (s *Stream) Lost() error {
	if s.lost == nil {
		return nil
	}
	return &Failure{Code: "output", Exit: ExitFailed, Err: s.lost, Message: "The output could not be written: " + s.lost.Error(), Next: "What the command did is done; only its output is missing."}
}

// The colours. A word or a sign always says the same as the colour.
const (
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Dim    = "2"
	Bold   = "1"
)

// Paint colours a text if the stream has colours.
func (s *Stream) Paint(colour, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// At shows a moment: short and local on a terminal, RFC 3339 in UTC elsewhere.
func (s *Stream) At(t store.Time) string {
	switch {
	case t == 0:
		return "-"
	case !s.TTY:
		return RFC3339(t)
	}
	local := t.Time().Local()
	if y, m, d := time.Now().Date(); local.Year() == y && local.Month() == m && local.Day() == d {
		return local.Format("15:04:05")
	}
	return local.Format("2006-01-02 15:04")
}

// JSON prints one object on its own line.
func (s *Stream) JSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	line := b.Bytes()
	if s.TTY { // the same value, in characters that a terminal only shows
		line = escapeJSON(line)
	}
	_, err := s.W.Write(line)
	return err
}

// View returns the options of what is drawn on the stream.
func (s *Stream) View() termview.Options {
	o := termview.Detect(s.W)
	o.Color = o.Color && s.Colour
	return o
}
