package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// Result is the record of a command that has ended.
type Result struct {
	ExitCode int           `json:"exit_code"`
	Stdout   Output        `json:"stdout"`
	Stderr   Output        `json:"stderr"`
	Took     time.Duration `json:"took_ns"`
	Place    Place         `json:"place"`           // where it began
	After    *GitState     `json:"after,omitempty"` // the work tree once it had ended
}

// Output is what a command wrote to stdout or stderr: all of it, or the beginning and
// the end.
type Output struct {
	Text    string `json:"text"`
	Bytes   int64  `json:"bytes"`             // written in total
	Omitted int64  `json:"omitted,omitempty"` // omitted from the middle
}

// String returns the text.
func (o Output) String() string { return o.Text }

// ExitError says that a command ended with an exit code other than 0, or by a signal.
// To find it with errors.As on replay, too, pass Errors to durable.Options.Errors.
type ExitError struct {
	Command  string // as a person would type it, without secrets
	Dir      string
	ExitCode int    // -1: a signal ended it
	Signal   string // its name
	Tail     string // the last lines it wrote, of stderr if it wrote there
}

func (e *ExitError) Error() string {
	how := fmt.Sprintf("exited with code %d", e.ExitCode)
	if e.Signal != "" {
		how = "was ended by signal " + e.Signal
	}
	s := fmt.Sprintf("%s (in %s) %s", e.Command, e.Dir, how)
	if e.Tail != "" {
		s += ": " + e.Tail
	}
	return s
}

// StoppedError says that a command was ended because its step was cancelled, ran out of
// time or was shut down. It wraps the cause.
//
// errors.As finds it in the error of a step that ran out of time (see Errors). A step
// that was cancelled or shut down has no outcome of its own: the workflow function gets
// the cancel or shutdown, not this error.
type StoppedError struct {
	Command string
	Killed  bool   // it did not end when it was asked to
	Cause   string // the text of Err
	// Err is the cause. An error read back from the history has none; errors.Is still
	// finds the causes in the error around it.
	Err error `json:"-"`
}

// stoppedBy returns the error of a command that was stopped with its step.
func stoppedBy(ctx context.Context, argv []string, killed bool) error {
	err := context.Cause(ctx)
	return &StoppedError{Command: commandLine(argv), Killed: killed, Cause: err.Error(), Err: err}
}

func (e *StoppedError) Error() string {
	how, cause := "was stopped", e.Cause
	if e.Killed {
		how = "was killed, since it did not stop when it was asked to"
	}
	if cause == "" && e.Err != nil {
		cause = e.Err.Error()
	}
	return fmt.Sprintf("%s %s: %s", e.Command, how, cause)
}

func (e *StoppedError) Unwrap() error { return e.Err }

// DirError says that the working directory of a command does not exist. The step failed
// without running anything.
type DirError struct {
	RunID, Step string
	Dir         string
	// Tree is the top of the work tree that Dir was in, with its Repository, Branch and
	// Head as far as they were recorded. Empty: there was none, or recreating the work
	// tree cannot bring Dir back, because the tree exists or its repository is gone.
	Tree, Repository, Branch, Head string
	Problem                        string
}

func (e *DirError) Error() string {
	s := fmt.Sprintf("run %s, step %s: the working directory %s %s, and the command was not run anywhere else.", e.RunID, e.Step, e.Dir, e.Problem)
	again := e.Tree != "" && e.Repository != ""
	switch {
	case again && e.Branch != "":
		s += fmt.Sprintf(" Recreate it with `git --git-dir=%s worktree add -f %s %s`", quote(e.Repository), quote(e.Tree), quote(e.Branch))
	case again && e.Head != "":
		s += fmt.Sprintf(" Recreate it with `git --git-dir=%s worktree add -f --detach %s %s`", quote(e.Repository), quote(e.Tree), quote(e.Head))
	default:
		again = false
		s += " Recreate it, or name another one in Workspace.Dir"
	}
	s += fmt.Sprintf(", then `%s`", resumeCommand(e.RunID))
	if again {
		s += "; or set Workspace.OnMismatch to shell.Restore, which recreates it"
	}
	return s + "."
}

// MismatchError says that the work tree or the environment is not what it was
// when the run was interrupted, and that Workspace.OnMismatch does not allow the
// command to run. Nothing was run.
type MismatchError struct {
	RunID, Step string
	Dir         string
	Differences []string
	Problem     string // why it could not be restored, if Restore was set
}

func (e *MismatchError) Error() string {
	s := fmt.Sprintf("run %s, step %s: %s is not as it was when the run was interrupted: %s", e.RunID, e.Step, e.Dir, strings.Join(e.Differences, "; "))
	if e.Problem != "" {
		s += "; it could not be restored: " + e.Problem
	}
	return s + fmt.Sprintf(". Put it right and `%s`, or let it go on as it is with shell.Warn", resumeCommand(e.RunID, "--reset-failures"))
}

// Errors returns the kinds of errors of this package, for durable.Options.Errors: with
// them errors.As finds the same errors on replay as live.
func Errors() []durable.ErrorKind {
	return []durable.ErrorKind{
		durable.ErrorType[*ExitError]("holdfast.shell.exit"),
		durable.ErrorType[*StoppedError]("holdfast.shell.stopped"),
		durable.ErrorType[*DirError]("holdfast.shell.dir"),
		durable.ErrorType[*MismatchError]("holdfast.shell.mismatch"),
	}
}

// errEmpty: there is no program to run.
var errEmpty = errors.New("shell: the command is empty")

// quote quotes a word for a POSIX shell.
func quote(word string) string {
	plain := word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@%+,", r))
	})
	if plain {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// resumeCommand returns the command that resumes a run. An id that could be taken for a
// flag comes after "--".
func resumeCommand(id string, flags ...string) string {
	words := append([]string{"durable", "resume", quote(id)}, flags...)
	if strings.HasPrefix(id, "-") {
		words = append(append([]string{"durable", "resume"}, flags...), "--", quote(id))
	}
	return strings.Join(words, " ")
}

// commandLine formats a command for people.
func commandLine(argv []string) string {
	words := []string{quote(argv[0])}
	for _, arg := range durable.RedactArgs(argv[1:]) {
		words = append(words, quote(arg))
	}
	return strings.Join(words, " ")
}
