package view

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/outline"
	"github.com/holdfast-dev/holdfast/store"
)

// A Text is a sentence of an outline, redacted.
type Text []spanView

type spanView struct {
	Text         string
	Code, Strong bool
	At           string // RFC 3339; empty: no moment
	URL          string // of a link
}

// Sentence is a text of an outline, redacted.
func (r Redact) Sentence(t outline.Text) Text {
	out := make(Text, len(t))
	for i, s := range t {
		out[i] = spanView{Text: r.Text(s.Text), Code: s.Code, Strong: s.Strong}
		if s.At != 0 {
			out[i].At = s.At.Time().UTC().Format(time.RFC3339)
		}
	}
	return out
}

// Size writes a number of bytes: 1.5 KiB.
func Size(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// Millis writes a short time with one decimal.
func Millis(d time.Duration) string {
	if d >= 100*time.Millisecond {
		return outline.Duration(d)
	}
	if d < 100*time.Microsecond {
		return outline.Duration(d)
	}
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}

// Zone is the time zone of the program. The pages name it.
var Zone = time.Local

// Now approximates the time of the store by this machine's clock.
func Now() store.Time { return store.Time(time.Now().UnixMicro()) }

// Message is the text of an error for a browser user: that of the innermost error that
// says everything, without the prefixes of the enclosing calls.
func Message(err error) string {
	var no *durable.NotResumableError
	if errors.As(err, &no) {
		return no.Error()
	}
	if m := notFound.FindStringSubmatch(err.Error()); m != nil {
		return "run " + m[1] + " was not found"
	}
	return strings.TrimPrefix(err.Error(), "durable: ")
}

// notFound matches the error of stores for a missing run.
var notFound = regexp.MustCompile(`run "([^"]*)": store: run not found$`)

// maxMessage bounds the text of an error in an answer, in bytes: it may repeat parts of
// the request, or what user code returned.
const maxMessage = 4000

// Clip cuts the text of an error to maxMessage.
func Clip(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "") + "…"
}
