package durable

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/store"
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
// variable or flag says that it is a secret: one with "secret", "token",
// "passw", "passphrase", "credential", "auth", "cookie", "dsn" or "key" in it.
const Redacted = "[redacted]"

// isSecret reports whether a name is that of a secret.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"secret", "token", "passw", "passphrase", "credential", "auth", "cookie", "dsn", "key"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
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
		now.Env[name] = cut(strings.ToValidUTF8(value, "�"), maxCapturedText)
	}
	return now
}

// redactArgs returns arguments without the values of flags that are secrets:
// "-token=x" and "-token x" alike.
func redactArgs(args []string) []string {
	out := make([]string, 0, min(len(args), maxCaptured))
	secret := false // the one before is a flag whose value this is
	for _, arg := range args[:min(len(args), maxCaptured)] {
		arg = cut(strings.ToValidUTF8(arg, "�"), maxCapturedText)
		name, _, joined := strings.Cut(arg, "=")
		isFlag := strings.HasPrefix(arg, "-")
		switch {
		case secret && !isFlag:
			arg = Redacted
		case isFlag && joined && isSecret(name):
			arg = name + "=" + Redacted
		}
		secret = isFlag && !joined && isSecret(arg)
		out = append(out, arg)
	}
	return out
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

// compareEnvironment tells of a run that goes on in another environment than it
// was started in. It does not stop it: that is for the program to judge.
func (r *run) compareEnvironment(recorded *Environment) {
	if last := r.row.Last; last == nil || last.Type != store.RunResumed {
		return
	}
	if list := recorded.Differences(r.eng.environment); len(list) > 0 {
		r.log(slog.LevelWarn, "durable: the run is resumed in another environment than it was started in", slog.Any("differences", list))
	}
}
