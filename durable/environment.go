package durable

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// Environment is what a run was started in.
type Environment struct {
	Dir     string            `json:"dir,omitempty"`     // working directory; empty: not known
	Program string            `json:"program,omitempty"` // name of the executable, without its directory
	Package string            `json:"package,omitempty"` // import path of the package that "go run" was called with; empty if it was not
	Args    []string          `json:"args,omitempty"`    // without the program; only with Capture.Args
	Env     map[string]string `json:"env,omitempty"`     // those of the variables in Capture.Env that were set
}

// Capture says what is recorded of the environment of a run when it is started
// and when it continues with a new input. The zero value records the working
// directory and the program's name. None of it is encrypted.
type Capture struct {
	// Off: nothing is recorded, and nothing is compared on resume.
	Off bool
	// Args: the arguments of the program are recorded, too.
	Args bool
	// Env are the names of environment variables to record; others are never recorded.
	Env []string
}

// Redacted ("[redacted]") replaces a value that is not recorded because the name of its
// variable, flag or header says that it is a secret: a name with "secret", "token",
// "passw", "passphrase", "credential", "auth", "cookie", "dsn", "bearer" or "key" in it,
// with the word "pass", "pwd", "pw" or "pat", or that of the URL of a database. It also
// replaces the password within a URL, and what follows "Bearer".
const Redacted = redact.Redacted

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
		now.Args = redact.Args(os.Args[1:])
	}
	for _, name := range c.Env[:min(len(c.Env), redact.Most)] {
		value, set := os.LookupEnv(name)
		if !set {
			continue
		}
		if now.Env == nil {
			now.Env = map[string]string{}
		}
		now.Env[name] = redact.Env(name, value)
	}
	return now
}

// Differences lists, a line each, what is different now from e. What was not recorded on
// one of the sides, or was redacted, is not compared.
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

// encode returns e as the first event of a run keeps it; nil for a nil e.
func (e *Environment) encode() json.RawMessage {
	if e == nil {
		return nil
	}
	return mustJSON(e)
}

// environmentOf returns the environment that the first event of a run keeps, nil if it
// keeps none.
func environmentOf(born *history.Beginning) *Environment {
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
func SecretName(name string) bool { return redact.Secret(name) }

// RedactArgs returns arguments of a program as they may be recorded: the values
// of flags whose names say that they are secrets are Redacted, in "-token=x" and
// "-token x" alike, and very long ones are cut.
func RedactArgs(args []string) []string { return redact.Args(args) }

// mustJSON returns a string, a bool, a list of strings, or a map of numbers, as JSON, which never fails.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("durable: %T cannot be encoded: %v", v, err))
	}
	return b
}
