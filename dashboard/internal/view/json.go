package view

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/client"
)

// A Token is a piece of a JSON text as a page shows it: the class of its colour, empty for
// none, and the text, which the template escapes. A hidden token replaces something that
// was redacted.
type Token struct {
	Class  string // s: name of a field, nn: number, lit: true, false, null
	Text   string
	Hidden bool
}

// tokensShown bounds how many pieces may have a colour.
const tokensShown = 4000

// lexeme is a piece of a JSON text, white space and punctuation included.
type lexeme struct {
	kind byte // 0: white space or punctuation; else s, n, l, k for string, number, literal, name of a field
	text string
}

// lex cuts a JSON text into pieces. It takes any text: the pieces of one that is not
// JSON add up to that text, too.
//
//	{"a": [1, "b"]}   {  "a"k  :·[  1n  ,·  "b"s  ]}
func lex(s string) []lexeme {
	var list []lexeme
	for len(s) > 0 {
		kind, n := byte(0), 0
		switch c := s[0]; {
		case c == '"':
			kind, n = 's', lexString(s)
			if strings.HasPrefix(strings.TrimLeft(s[n:], " \t\r\n"), ":") {
				kind = 'k'
			}
		case isBare(c):
			n = spanOf(s, isBare)
			kind = 'n'
			if c != '-' && (c < '0' || c > '9') {
				kind = 'l'
			}
		default:
			n = spanOf(s, func(c byte) bool { return c != '"' && !isBare(c) })
		}
		list = append(list, lexeme{kind, s[:n]})
		s = s[n:]
	}
	return list
}

// classes are the colours of the pieces. Strings have none, since most of a text is
// strings.
var classes = map[byte]string{'k': "s", 'n': "nn", 'l': "lit"}

// isBare reports whether c can be part of a number or of true, false or null.
func isBare(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '-' || c == '+' || c == '.' || c == 'E'
}

func spanOf(s string, in func(byte) bool) int {
	n := 1
	for n < len(s) && in(s[n]) {
		n++
	}
	return n
}

// lexString is the length of the string that s begins with.
func lexString(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

// Tokens returns the pieces of a JSON text that is indented for people. whole is the same
// text before redaction, nil if it was not redacted. If the two have the same shape, the
// differences are shown as hidden; otherwise the text is shown as it is.
func Tokens(text string, whole []byte) []Token {
	list := lex(text)
	var before []lexeme
	if whole != nil {
		before = lex(PayloadText(payloadOf(whole)))
		if !slices.EqualFunc(list, before, sameShape) {
			before = nil
		}
	}
	var out []Token
	for i, l := range list {
		switch {
		case before != nil && l.text != before[i].text:
			out = hiddenTokens(out, l, before[i].text)
		case i < tokensShown && classes[l.kind] != "":
			out = append(out, Token{Class: classes[l.kind], Text: l.text})
		default:
			out = plainToken(out, l.text)
		}
	}
	return out
}

// sameShape reports whether one piece can replace another: any value can replace a value,
// other pieces must be the same text.
func sameShape(a, b lexeme) bool {
	if a.kind == 0 || b.kind == 0 {
		return a == b
	}
	return (a.kind == 'k') == (b.kind == 'k')
}

// plainToken adds a text without a colour, joined to the piece before it if that has none
// either.
func plainToken(out []Token, text string) []Token {
	if n := len(out); n > 0 && out[n-1].Class == "" && !out[n-1].Hidden {
		out[n-1].Text += text
		return out
	}
	return append(out, Token{Text: text})
}

// hiddenTokens adds a value of which something was redacted: as hidden altogether, or as
// hidden between the beginning and the end that it shares with the text before redaction.
func hiddenTokens(out []Token, now lexeme, was string) []Token {
	hidden := Token{Hidden: true}
	if len(now.text) < 2 || now.text[0] != '"' || was[0] != '"' {
		return append(out, hidden)
	}
	text, was := now.text[1:len(now.text)-1], was[1:len(was)-1]
	head := 0
	for head < min(len(text), len(was)) && text[head] == was[head] {
		head++
	}
	tail := 0
	for tail < min(len(text), len(was))-head && text[len(text)-1-tail] == was[len(was)-1-tail] {
		tail++
	}
	// Only whole words count: it means nothing if "[redacted]" and what it hides begin
	// with the same letters.
	head = strings.LastIndexByte(text[:head], ' ') + 1
	if i := strings.IndexByte(text[len(text)-tail:], ' '); i >= 0 {
		tail -= i
	} else {
		tail = 0
	}
	if head+tail == 0 {
		return append(out, hidden)
	}
	out = append(plainToken(out, `"`+text[:head]), hidden)
	return plainToken(out, text[len(text)-tail:]+`"`)
}

// payloadOf is a JSON value as a payload.
func payloadOf(value []byte) *client.Payload { return &client.Payload{Value: value} }

// PayloadText is a payload for people: JSON with a line per field.
func PayloadText(p *client.Payload) string {
	if len(p.Value) == 0 {
		return p.Text
	}
	var b bytes.Buffer
	if json.Indent(&b, p.Value, "", "  ") != nil {
		return string(p.Value)
	}
	return b.String()
}
