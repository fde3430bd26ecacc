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

// Takes reports whether the engine has the code of a run, and takes runs from its queue.
func (l *Local) Takes(ctx context.Context, s *Run) bool {
	return store.Takes(ServedBy(ctx, l.Engine), s.place())
}

// OthersTake reports whether a live executor other than this one has the code of a run,
// and takes runs from its queue. It is true if that cannot be read.
func (l *Local) OthersTake(ctx context.Context, s *Run) bool {
	yes, err := l.others(ctx, func(one store.Served) bool { return store.Takes([]store.Served{one}, s.place()) })
	return err != nil || yes
}

// OthersServe reports whether a live executor other than this one has code of a workflow,
// whatever its version.
func (l *Local) OthersServe(ctx context.Context, workflow string) bool {
	yes, _ := l.others(ctx, func(one store.Served) bool { return one.Workflow == workflow })
	return yes
}

// OthersMayTake reports whether a live executor other than this one has code of the
// workflow of a run, whatever its version, and takes runs from the queue of the run.
func (l *Local) OthersMayTake(ctx context.Context, s *Run) bool {
	yes, _ := l.others(ctx, func(one store.Served) bool {
		place := s.place()
		place.Version = ""
		one.Versions = []string{""}
		return store.Takes([]store.Served{one}, place)
	})
	return yes
}

// others reports whether a live executor other than this one serves something that is
// wanted.
func (l *Local) others(ctx context.Context, wanted func(store.Served) bool) (bool, error) {
	live, err := l.live(ctx)
	for _, x := range live {
		if x.ID != l.Engine.ID() && slices.ContainsFunc(x.Serves, wanted) {
			return true, nil
		}
	}
	return false, err
}

// place is what decides which executors take a run.
func (s *Run) place() *store.Run {
	return &store.Run{ID: s.ID, Workflow: s.Workflow, Version: s.Version, Queue: s.Queue}
}

// Untaken says of a run that no live process takes, this one included, why that is.
func (l *Local) Untaken(ctx context.Context, s *Run) string {
	if s.Queue != "" && (l.OthersServe(ctx, s.Workflow) || l.Mounted && l.Serves(ctx, s.Workflow, s.Version)) {
		return fmt.Sprintf("nobody alive who serves workflow %s takes runs from queue %s", s.Workflow, s.Queue)
	}
	return "nobody alive runs " + s.Workflow
}

// Starter says which program to start for a run that no process takes.
func (s *Run) Starter() string {
	if s.Queue != "" {
		return "Start a program that has its code and takes runs from " + s.Queue
	}
	return "Start the program that has its code"
}

// CommandHeader is the header in which a run that was started at a terminal keeps the
// command of the program that has its code.
const CommandHeader = "holdfast.command"

// Code implements Target.
func (l *Local) Code(ctx context.Context, r *Run) string {
	if l.Mounted && l.Takes(ctx, r) {
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
