// Package redact removes secrets from what is recorded and logged about a process:
// its arguments, its environment, and texts that may contain a URL. durable.Redacted
// says what counts as a secret.
package redact

import (
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/guard"
)

// Redacted is durable.Redacted.
const Redacted = "[redacted]"

// Most is how many arguments or variables are recorded; the rest is left out.
const Most = 128

// maxText is the largest size of each of them, in bytes.
const maxText = 1 << 10

var (
	secretParts = []string{"secret", "token", "passw", "passphrase", "credential", "auth", "cookie", "dsn", "bearer", "key"}
	secretWords = []string{"pass", "pwd", "pw", "pat"}
	databases   = []string{"database", "db", "postgres", "postgresql", "pg", "mysql", "mongo", "mongodb", "redis", "amqp", "rabbitmq"}
	nameWord    = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)
)

// Secret reports whether a name is the name of a secret.
func Secret(name string) bool {
	lower := strings.ToLower(name)
	if lower == "pwd" || lower == "oldpwd" { // the working directory of a shell
		return false
	}
	if slices.ContainsFunc(secretParts, func(part string) bool { return strings.Contains(lower, part) }) {
		return true
	}
	has := func(of []string, word string) bool { return slices.Contains(of, strings.ToLower(word)) }
	words := nameWord.FindAllString(name, -1)
	if slices.ContainsFunc(words, func(w string) bool { return has(secretWords, w) }) || strings.HasSuffix(lower, "dbpass") || strings.HasSuffix(lower, "pgpass") {
		return true
	}
	return slices.ContainsFunc(words, func(w string) bool { return has(databases, w) }) &&
		slices.ContainsFunc(words, func(w string) bool { return has([]string{"url", "uri"}, w) })
}

// Args returns arguments without the values that are secrets: "-token=x", "-token x",
// "TOKEN=x", "--header Authorization:x" and "https://user:x@host" alike.
func Args(args []string) []string {
	out := make([]string, 0, min(len(args), Most))
	secret := false // this is the value of the flag before it
	for _, arg := range args[:min(len(args), Most)] {
		// It may itself be a flag instead, with its value in the next argument.
		isFlag := strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") && (strings.HasSuffix(arg, ":") || !strings.Contains(arg, ":")) && Secret(arg)
		if secret && !isFlag {
			arg = Redacted
		} else {
			arg = cut(word(arg))
		}
		secret = isFlag
		out = append(out, arg)
	}
	return out
}

// Env returns the value of a variable as it is recorded.
func Env(name, value string) string {
	if Secret(name) {
		return Redacted
	}
	return cut(text(value))
}

// word is text, and also removes the value of "NAME=value", of a flag with such a
// value, or of "Header: value", if the name says that it is a secret.
func word(arg string) string {
	if name, value, ok := strings.Cut(arg, "="); ok && isName(name) {
		if Secret(name) {
			return name + "=" + Redacted
		}
		return name + "=" + word(value)
	}
	if name, _, ok := strings.Cut(arg, ":"); ok && isName(name) && Secret(name) {
		return name + ": " + Redacted
	}
	return text(arg)
}

// isName reports whether a text may be the name of a variable, flag or header.
func isName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r))
	})
}

var (
	urlPassword = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s/:@]*):[^\s/]*@`)
	urlToken    = regexp.MustCompile(`(https?://)[^\s/:@]+@`)
	bearer      = regexp.MustCompile(`(?i)\b(bearer)\s+\S+`)
)

// text returns s without the secrets that their form shows, wherever they are.
func text(s string) string {
	if strings.Contains(s, "://") {
		s = urlPassword.ReplaceAllString(s, "$1:"+Redacted+"@")
		s = urlToken.ReplaceAllString(s, "$1"+Redacted+"@")
	}
	return bearer.ReplaceAllString(s, "$1 "+Redacted)
}

// cut returns a text as it is recorded. Secrets are taken out before it is cut.
func cut(s string) string {
	return guard.Text(strings.ToValidUTF8(s, "\ufffd"), maxText)
}
