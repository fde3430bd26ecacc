package show

import (
	"fmt"
	"strings"
)

// Quote returns a word that a POSIX shell reads as exactly s, and that is safe to show
// on a terminal.
func Quote(s string) string {
	switch {
	case s == "":
		return "''"
	case !Clean(s):
		return octal(s)
	case strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,") == "" && s[0] != '=':
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// octal quotes a word with characters that must not reach the terminal: printf makes
// them when the command runs. Trailing line feeds would be lost, but no id or name has
// one.
func octal(s string) string {
	var b strings.Builder
	b.WriteString(`"$(printf '%b' '`)
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, `\0%03o`, c)
	}
	b.WriteString(`')"`)
	return b.String()
}

// QuoteAll returns the command that words make.
func QuoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}
