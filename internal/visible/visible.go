// Package visible makes untrusted text safe to show in a terminal and in a page: it
// escapes characters that act instead of being seen.
//
// Such characters are control characters (above all those of a terminal), those
// that change the direction of the text around them, those without width or shape,
// line and paragraph separators, and bytes that are not valid UTF-8. Joiners, which
// emoji and some scripts need, stay, and so do the letters of every script.
package visible

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns s as one line of a terminal or a page: \n, \x1b, \u202e. It returns
// s itself when there is nothing to escape.
func Line(s string) string {
	if strings.IndexFunc(s, acts) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n <= 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !acts(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return b.String()
}

// JSON returns a JSON text with the same value in which every acting character is
// escaped. The white space between its parts stays.
func JSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, actsInBlock) && utf8.Valid(text) {
		return text
	}
	return appendBlock(make([]byte, 0, len(text)+64), text)
}

// HTML returns a page of package html/template with every acting character escaped.
// Values that a form sends back unseen stay as they are: those of hidden fields and
// of the options of a choice.
func HTML(page []byte) []byte {
	if !bytes.ContainsFunc(page, actsInBlock) && utf8.Valid(page) {
		return page
	}
	out := make([]byte, 0, len(page)+256)
	for len(page) > 0 {
		begin, end := unseen(page)
		out = appendBlock(out, page[:begin])
		out = append(out, page[begin:end]...)
		page = page[end:]
	}
	return out
}

// unseen finds the first tag whose value is sent back unseen, at page[begin:end].
// html/template writes no ">" into an attribute.
func unseen(page []byte) (begin, end int) {
	begin = len(page)
	for _, tag := range []string{`<input type="hidden"`, `<option`} {
		if i := bytes.Index(page[:begin], []byte(tag)); i >= 0 {
			begin = i
		}
	}
	if begin == len(page) {
		return begin, begin
	}
	n := bytes.IndexByte(page[begin:], '>')
	if n < 0 {
		return begin, len(page)
	}
	return begin, begin + n + 1
}

// appendBlock appends a text of several lines, with JSON escapes, which are UTF-16
// only.
func appendBlock(b, text []byte) []byte {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n <= 1:
			b = append(b, "\ufffd"...)
		case !actsInBlock(r):
			b = append(b, text[:n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
		text = text[n:]
	}
	return b
}

func actsInBlock(r rune) bool { return r != '\n' && r != '\t' && r != '\r' && acts(r) }

// acts reports whether a character does something instead of being seen.
func acts(r rune) bool {
	const joiner = '\u200d'
	switch {
	case r < 0x80:
		return r < ' ' || r == 0x7f
	case r == joiner:
		return false
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}
