package view

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/visible"
)

// A Command is a command of the durable tool on one run, for pasting into a shell.
type Command struct{ name, id, flags string }

// NewCommand is a command on a run, without flags.
func NewCommand(name, id string) Command { return Command{name: name, id: id} }

// Flag adds a flag and its value.
func (c *Command) Flag(words ...string) {
	c.flags += " " + words[0]
	for _, w := range words[1:] {
		c.flags += " " + ShellQuote(w)
	}
}

// String puts an id that could be taken for a flag at the end, after "--".
func (c Command) String() string {
	switch {
	case c.name == "":
		return ""
	case strings.HasPrefix(c.id, "-"):
		return "durable " + c.name + c.flags + " -- " + ShellQuote(c.id)
	}
	return "durable " + c.name + " " + ShellQuote(c.id) + c.flags
}

// ShellQuote quotes a word for a shell, where it needs that.
func ShellQuote(s string) string {
	plain := s != "" && !strings.HasPrefix(s, "-") && strings.IndexFunc(s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./:@%+=,", c))
	}) < 0
	if plain {
		return s
	}
	if visible.Line(s) != s {
		// The text that is shown has no effect where it is shown, and makes the same word
		// where it is pasted.
		var b strings.Builder
		for _, c := range []byte(s) {
			fmt.Fprintf(&b, `\0%03o`, c)
		}
		return `"$(printf '%b' '` + b.String() + `')"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// MendAdvice says what to do about a damaged run; nothing says that none of it is left.
func MendAdvice(id string, nothing bool) string {
	return "see what can be done: " + MendCommand(id, nothing).String()
}

// MendCommand is the command that MendAdvice names.
func MendCommand(id string, nothing bool) Command {
	c := NewCommand("checkpoints repair", id)
	if nothing {
		c = NewCommand("checkpoints delete", id)
	}
	c.Flag("--dry-run")
	return c
}

// InCommands rewrites advice of the engine for the reader of a page: as commands of the
// terminal.
func InCommands(text string) string { return called(text, inCommand) }

func inCommand(method, id string) string {
	switch method {
	case "Resume":
		return NewCommand("resume", id).String()
	case "Unpause":
		return NewCommand("unpause", id).String()
	case "History":
		return NewCommand("history", id).String()
	case "Verify":
		return NewCommand("checkpoints validate", id).String() + " finds, then " + NewCommand("checkpoints repair", id).String()
	case "Jump":
		return "Jump back, on its page"
	}
	return "Engine." + method
}

// calls matches the methods that the engine's advice names.
var calls = regexp.MustCompile(`Engine\.(\w+)\(ctx, ("(?:[^"\\]|\\.)*")[^)]*\)( finds, then Engine\.Repair)?`)

// called replaces the methods that a text names by what otherwise says for each.
func called(text string, otherwise func(method, id string) string) string {
	return calls.ReplaceAllStringFunc(text, func(call string) string {
		m := calls.FindStringSubmatch(call)
		id, err := strconv.Unquote(m[2])
		if err != nil {
			return call
		}
		return otherwise(m[1], id)
	})
}
