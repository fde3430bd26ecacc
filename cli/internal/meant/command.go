// Package meant guesses what a mistyped command or value was meant to be.
package meant

import (
	"slices"

	"github.com/spf13/cobra"
)

// elsewhere has what people type at the root, as other programs call it, and the command
// that does it here.
var elsewhere = map[string][]string{
	"status": {"show"}, "get": {"show"}, "describe": {"show"}, "info": {"show"}, "inspect": {"show"},
	"logs": {"watch"}, "log": {"watch"}, "tail": {"watch"}, "follow": {"watch"}, "ps": {"ls"},
	"stop": {"cancel"}, "kill": {"cancel"}, "abort": {"cancel"}, "terminate": {"cancel"},
	"rm": {"checkpoints", "delete"}, "remove": {"checkpoints", "delete"},
	"start": {"run"}, "exec": {"run"}, "retry": {"resume"}, "restart": {"resume"}, "continue": {"resume"},
	"send": {"signal"}, "answer": {"approve"}, "steps": {"checkpoints", "list"}, "events": {"checkpoints", "list"},
}

// alike are words that mean the same; each group of commands has one of a line at most.
var alike = [][]string{
	{"rm", "delete", "remove", "drop"},
	{"show", "get", "describe", "info", "inspect", "status"},
	{"trigger", "run", "start", "fire"},
	{"resume", "unpause", "continue"},
	{"dead", "failed", "dlq"},
}

// Command returns the command that may be meant by words below a group, which has this path below
// the root; nil: none is known.
func Command(group *cobra.Command, path, words []string) []string {
	word, rest := words[0], words[1:]
	if len(path) == 0 {
		if words := elsewhere[word]; words != nil {
			return withID(words, rest)
		}
		if words := below(group, word); words != nil {
			return slices.Concat(words, rest)
		}
	}
	for _, line := range alike {
		if !slices.Contains(line, word) {
			continue
		}
		for _, sub := range group.Commands() {
			if slices.Contains(line, sub.Name()) {
				return slices.Concat(path, []string{sub.Name()}, rest)
			}
		}
	}
	group.SuggestionsMinimumDistance = min(2, len(word)/2) // in a short word two letters are another word
	if near := group.SuggestionsFor(word); len(near) > 0 {
		return slices.Concat(path, near[:1], rest)
	}
	return nil
}

// withID completes a command that takes an argument. Without one it would be refused: where it
// would only show something, ls is meant.
func withID(words, rest []string) []string {
	switch {
	case len(rest) > 0:
		return slices.Concat(words, rest)
	case slices.Contains([]string{"show", "watch", "ls"}, words[0]):
		return []string{"ls"}
	case words[0] == "run":
		return []string{"run", "WORKFLOW"}
	}
	return slices.Concat(words, []string{"ID"})
}

// below returns the path of a command that people look for one level too high; nil, if no group
// has it or several do.
func below(root *cobra.Command, word string) (path []string) {
	for _, group := range root.Commands() {
		for _, sub := range group.Commands() {
			if sub.Name() != word {
				continue
			}
			if path != nil {
				return nil
			}
			path = []string{group.Name(), word}
		}
	}
	return path
}
