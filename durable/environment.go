package durable

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/host"
)

// Environment is what a run was started in.
type Environment struct {
	Dir     string            `json:"dir,omitempty"`     // working directory; empty: not known
	Program string            `json:"program,omitempty"` // name of the executable, without its directory
	Package string            `json:"package,omitempty"` // that "go run" was called with, by its import path; empty where it was not
	Args    []string          `json:"args,omitempty"`    // without the program; only with Capture.Args
	Env     map[string]string `json:"env,omitempty"`     // of the variables in Capture.Env, those that were set
}

// Capture says what is recorded of the environment of a run when it is started
// and when it continues with a new input. The zero value records the working
// directory and the program's name. None of it is encrypted.
type Capture struct {
	// Off: nothing is recorded, and nothing is compared on resume.
	Off bool
	// Args: the arguments of the program, too.
	Args bool
	// Env are the names of environment variables to record; others never are.
	Env []string
}

// Redacted stands for a value that is not recorded, because the name of its
// variable, flag or header says that it is a secret: one with "secret", "token",
// "passw", "passphrase", "credential", "auth", "cookie", "dsn", "bearer" or "key" in it,
// with the word "pass", "pwd", "pw" or "pat", or of the URL of a database. It stands for
// the password within a URL, and for what follows "Bearer", too.
const Redacted = "[redacted]"

var (
	secretParts = []string{"secret", "token", "passw", "passphrase", "credential", "auth", "cookie", "dsn", "bearer", "key"}
	secretWords = []string{"pass", "pwd", "pw", "pat"}
	databases   = []string{"database", "db", "postgres", "postgresql", "pg", "mysql", "mongo", "mongodb", "redis", "amqp", "rabbitmq"}
	nameWord    = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)
)

// isSecret reports whether a name is that of a secret.
func isSecret(name string) bool {
	lower := strings.ToLower(name)
	if lower == "pwd" || lower == "oldpwd" { // where a shell stands
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

var (
	urlPassword = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s/:@]*):[^\s/]*@`)
	urlToken    = regexp.MustCompile(`(https?://)[^\s/:@]+@`)
	bearer      = regexp.MustCompile(`(?i)\b(bearer)\s+\S+`)
)

// redactText returns a text without the secrets that show by their form, wherever they
// stand.
func redactText(text string) string {
	if strings.Contains(text, "://") {
		text = urlPassword.ReplaceAllString(text, "$1:"+Redacted+"@")
		text = urlToken.ReplaceAllString(text, "$1"+Redacted+"@")
	}
	return bearer.ReplaceAllString(text, "$1 "+Redacted)
}

// redactWord is redactText, and takes the value from what is "NAME=value", a flag with
// such a value, or "Header: value", if its name says that it is a secret.
func redactWord(arg string) string {
	if name, value, ok := strings.Cut(arg, "="); ok && isName(name) {
		if isSecret(name) {
			return name + "=" + Redacted
		}
		return name + "=" + redactWord(value)
	}
	if name, _, ok := strings.Cut(arg, ":"); ok && isName(name) && isSecret(name) {
		return name + ": " + Redacted
	}
	return redactText(arg)
}

// isName reports whether a text may be the name of a variable, flag or header.
func isName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r))
	})
}

// The bounds of what is recorded; what is beyond is cut.
const (
	maxCaptured     = 128     // arguments, variables
	maxCapturedText = 1 << 10 // bytes of each
)

// capture returns the environment of this process; nil: none is recorded.
func (c *Capture) capture() *Environment {
	if c.Off {
		return nil
	}
	now := &Environment{Program: filepath.Base(os.Args[0]), Package: host.GoRun()}
	if dir, err := os.Getwd(); err == nil {
		now.Dir = dir
	}
	if c.Args {
		now.Args = redactArgs(os.Args[1:])
	}
	for _, name := range c.Env[:min(len(c.Env), maxCaptured)] {
		value, set := os.LookupEnv(name)
		if !set {
			continue
		}
		if now.Env == nil {
			now.Env = map[string]string{}
		}
		if isSecret(name) {
			value = Redacted
		}
		now.Env[name] = captured(redactText(value))
	}
	return now
}

// redactArgs returns arguments without those values that are secrets: "-token=x",
// "-token x", "TOKEN=x", "--header Authorization:x" and "https://user:x@host" alike.
func redactArgs(args []string) []string {
	out := make([]string, 0, min(len(args), maxCaptured))
	secret := false // the one before is a flag whose value this is
	for _, arg := range args[:min(len(args), maxCaptured)] {
		// It may be a flag of its own instead, whose value is the next one.
		isFlag := strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") && (strings.HasSuffix(arg, ":") || !strings.Contains(arg, ":")) && isSecret(arg)
		if secret && !isFlag {
			arg = Redacted
		} else {
			arg = captured(redactWord(arg))
		}
		secret = isFlag
		out = append(out, arg)
	}
	return out
}

// captured is a text as it is recorded. Secrets are out of it before it is cut.
func captured(text string) string {
	return guard.Text(strings.ToValidUTF8(text, "\ufffd"), maxCapturedText)
}

// Differences lists what is another now than it was in e, a line each. What was
// not recorded on one of the sides, or was redacted, is not compared.
func (e *Environment) Differences(now *Environment) []string {
	if e == nil || now == nil {
		return nil
	}
	var list []string
	add := func(what, was, is string) {
		if was != is && was != Redacted && is != Redacted {
			list = append(list, fmt.Sprintf("%s was %s and is %s", what, was, is))
		}
	}
	if e.Dir != "" && now.Dir != "" {
		add("the working directory", e.Dir, now.Dir)
	}
	add("the program", e.Program, now.Program)
	if e.Args != nil && now.Args != nil {
		add("the command line", fmt.Sprintf("%q", e.Args), fmt.Sprintf("%q", now.Args))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		if is, ok := now.Env[name]; ok {
			add(name, fmt.Sprintf("%q", e.Env[name]), fmt.Sprintf("%q", is))
		} else if now.Env != nil {
			list = append(list, name+" was set and is not")
		}
	}
	return list
}

// encode returns e as the first event of a run keeps it; nothing for none.
func (e *Environment) encode() json.RawMessage {
	if e == nil {
		return nil
	}
	return mustJSON(e)
}

// environmentOf returns the environment that the first event of a run keeps, nil if it
// keeps none.
func environmentOf(born *history.Data) *Environment {
	if len(born.Environment) == 0 {
		return nil
	}
	e := new(Environment)
	if json.Unmarshal(born.Environment, e) != nil {
		return nil
	}
	return e
}

// SecretName reports whether a variable, flag or setting of this name is taken
// for a secret, and its value therefore never recorded; see Redacted.
func SecretName(name string) bool { return isSecret(name) }

// RedactArgs returns arguments of a program as they may be recorded: the values
// of flags whose names say that they are secrets are Redacted, in "-token=x" and
// "-token x" alike, and what is very long is cut.
func RedactArgs(args []string) []string { return redactArgs(args) }

// mustJSON returns a string, a bool, a list of strings, or a map of numbers, as JSON, which never fails.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("durable: %T cannot be encoded: %v", v, err))
	}
	return b
}
