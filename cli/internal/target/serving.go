package target

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// Who implements Target.
func (l *Local) Who(ctx context.Context, owner string) string {
	executors, err := l.Store.Executors(ctx)
	if err != nil {
		return ""
	}
	for _, x := range executors {
		if x.ID == owner {
			return executorName(x)
		}
	}
	return ""
}

func executorName(x store.Executor) string {
	host := x.Host
	if host == "" {
		host = x.Name
	}
	return fmt.Sprintf("pid %d on %s", x.PID, host)
}

// ServedBy lists the workflows whose code an engine has, by name, as the engine
// announces them to all others.
func ServedBy(ctx context.Context, eng *durable.Engine) []store.Served {
	if eng == nil {
		return nil
	}
	executors, err := eng.Store().Executors(ctx)
	if err != nil {
		return nil
	}
	for _, x := range executors {
		if x.ID == eng.ID() {
			slices.SortFunc(x.Serves, func(a, b store.Served) int { return cmp.Compare(a.Workflow, b.Workflow) })
			return x.Serves
		}
	}
	return nil
}

// Serves reports whether the engine has the code of a workflow.
func (l *Local) Serves(ctx context.Context, workflow, version string) bool {
	return store.Serves(ServedBy(ctx, l.Engine), workflow, version)
}

// OthersServe reports whether a live executor other than this one has the code of a
// run. It is true if that cannot be read.
func (l *Local) OthersServe(ctx context.Context, s *Run) bool {
	live, err := l.live(ctx)
	if err != nil {
		return true
	}
	for _, x := range live {
		if x.ID != l.Engine.ID() && store.Serves(x.Serves, s.Workflow, s.Version) {
			return true
		}
	}
	return false
}

// OthersServeAny reports whether a live executor other than this one has code of
// a workflow.
func (l *Local) OthersServeAny(ctx context.Context, workflow string) bool {
	live, err := l.live(ctx)
	if err != nil {
		return false
	}
	for _, x := range live {
		if x.ID != l.Engine.ID() && slices.ContainsFunc(x.Serves, func(s store.Served) bool { return s.Workflow == workflow }) {
			return true
		}
	}
	return false
}

// CommandHeader is the header in which a run that was started at a terminal keeps the
// command of the program that has its code.
const CommandHeader = "holdfast.command"

// Code implements Target.
func (l *Local) Code(ctx context.Context, r *Run) string {
	if l.Mounted && l.Serves(ctx, r.Workflow, r.Version) {
		return l.commands.Run(r.Workflow, r.ID)
	}
	return recordedCommand(r, l.commands)
}

// recordedCommand returns the command that continues a run in the program that started
// it, as the run records it; empty if it does not.
func recordedCommand(r *Run, c *show.Commands) string {
	words := recorded(r)
	if words == nil {
		return ""
	}
	command := c.RunIn(words, r.Workflow, r.ID)
	dir, err := os.Getwd()
	relative := words[0] == "go" || strings.Contains(words[0], "/") && !filepath.IsAbs(words[0])
	if relative && r.Env != nil && r.Env.Dir != "" && (err != nil || dir != r.Env.Dir) {
		command = "cd " + show.Quote(r.Env.Dir) + " && " + command
	}
	return command
}

// recorded returns the words with which the program of a run was called. The caller
// that starts a run chooses its headers, so they are believed only if they name the
// program that the engine itself has recorded, in words that are neither flags nor
// special to a shell.
func recorded(s *Run) []string {
	words := strings.Fields(s.Headers[CommandHeader])
	if len(words) == 0 || len(words) > 8 || s.Env == nil {
		return nil
	}
	built := s.Env.Package != "" && len(words) > 2 && words[0] == "go" && words[1] == "run" && words[2] == s.Env.Package
	if !built && filepath.Base(words[0]) != s.Env.Program {
		return nil
	}
	for _, w := range words {
		if show.Quote(w) != w || strings.HasPrefix(w, "-") {
			return nil
		}
	}
	return words
}
