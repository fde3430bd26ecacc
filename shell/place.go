package shell

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/gitexec"
)

// Place is where a command runs, as far as it is recorded.
type Place struct {
	Dir  string            `json:"dir"`  // absolute, links resolved
	Args []string          `json:"args"` // the program first; secrets left out
	Env  map[string]string `json:"env,omitempty"`
	Git  *GitState         `json:"git,omitempty"` // nil: no work tree, or Workspace.NoGit
}

// GitState is the state of a git work tree.
type GitState struct {
	Head   string `json:"head"`   // commit; empty: none yet
	Branch string `json:"branch"` // empty: none is checked out
	Dirty  bool   `json:"dirty"`  // something is changed or not tracked
	// Repository is the git directory that the work tree belongs to.
	Repository string `json:"repository,omitempty"`
}

// gitState returns the state of the work tree that dir is in, nil if it is in
// none or git is missing: a command may run where there is no git.
func gitState(ctx context.Context, dir string) *GitState {
	g, err := gitexec.In(dir, false)
	if err != nil {
		return nil
	}
	out, err := g.Run(ctx, nil, nil, "status", "--porcelain=v2", "--branch", "--ignore-submodules=all")
	if err != nil {
		return nil
	}
	s := &GitState{}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(line, "\n")
		switch key, value, _ := strings.Cut(strings.TrimPrefix(line, "# "), " "); {
		case !strings.HasPrefix(line, "# "):
			s.Dirty = s.Dirty || line != ""
		case key == "branch.oid" && value != "(initial)":
			s.Head = value
		case key == "branch.head" && value != "(detached)":
			s.Branch = value
		}
	}
	if out, err = g.Run(ctx, nil, nil, "rev-parse", "--git-common-dir"); err == nil {
		s.Repository = strings.TrimSuffix(string(out), "\n")
		if !filepath.IsAbs(s.Repository) {
			s.Repository = filepath.Join(g.Dir(), s.Repository)
		}
	}
	return s
}

// differences lists what is another in now than it was, a line each.
func differences(was, now *Place) []string {
	var list []string
	add := func(what, before, after string) {
		if before != after {
			list = append(list, fmt.Sprintf("%s was %s and is %s", what, before, after))
		}
	}
	add("the directory", was.Dir, now.Dir)
	for _, name := range slices.Sorted(maps.Keys(was.Env)) {
		if value, ok := now.Env[name]; !ok {
			list = append(list, name+" was set and is not")
		} else {
			add(name, fmt.Sprintf("%q", was.Env[name]), fmt.Sprintf("%q", value))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now.Env)) {
		if _, ok := was.Env[name]; !ok {
			list = append(list, name+" was not set and is")
		}
	}
	switch {
	case was.Git != nil && now.Git == nil:
		list = append(list, "it was a git work tree and is none")
	case was.Git != nil:
		add("HEAD", orNone(was.Git.Head), orNone(now.Git.Head))
		add("the branch", orNone(was.Git.Branch), orNone(now.Git.Branch))
		if was.Git.Dirty != now.Git.Dirty {
			add("the work tree", clean(was.Git), clean(now.Git))
		}
	}
	return list
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func clean(s *GitState) string {
	if s.Dirty {
		return "changed"
	}
	return "clean"
}

// DefaultEnv are the variables of this process that every command gets, beside
// those that Workspace.Env names.
var defaultEnv = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SHELL", "SYSTEMROOT", "USERPROFILE"}

// environment returns what a command gets, and what of it is recorded.
func (w *Workspace) environment() (env []string, recorded map[string]string) {
	given := map[string]string{}
	for _, name := range defaultEnv {
		if value, ok := os.LookupEnv(name); ok {
			given[name] = value
		}
	}
	recorded = map[string]string{}
	keep := func(name, value string) {
		given[name] = value
		if durable.SecretName(name) {
			value = durable.Redacted
		}
		recorded[name] = strings.ToValidUTF8(value, "\uFFFD")
	}
	for _, name := range w.Env {
		if value, ok := os.LookupEnv(name); ok {
			keep(name, value)
		}
	}
	for name, value := range w.Set {
		keep(name, value)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		env = append(env, name+"="+given[name])
	}
	return env, recorded
}

// restore puts a work tree back to a branch or commit, or makes it again where it
// is missing. It resets and cleans nothing: git refuses what would lose changes.
func restore(ctx context.Context, dir string, was *GitState) error {
	if was == nil || was.Head == "" {
		return fmt.Errorf("no commit was recorded")
	}
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		if was.Repository == "" {
			return fmt.Errorf("no repository was recorded")
		}
		g, err := gitexec.In(was.Repository, true)
		if err != nil {
			return err
		}
		args := []string{"worktree", "add", "--force", "--detach", "--", dir, was.Head}
		if was.Branch != "" {
			args = []string{"worktree", "add", "--force", "--", dir, was.Branch}
		}
		if _, err := g.Run(ctx, nil, nil, args...); err != nil {
			return err
		}
	}
	g, err := gitexec.In(dir, false)
	if err != nil {
		return err
	}
	now := gitState(ctx, dir)
	if now == nil {
		return fmt.Errorf("it is no git work tree")
	}
	if was.Branch != "" && now.Branch != was.Branch {
		if _, err := g.Run(ctx, nil, nil, "switch", "--quiet", "--no-guess", "--", was.Branch); err != nil {
			return err
		}
		now = gitState(ctx, dir)
	}
	if now != nil && now.Head == was.Head {
		return nil
	}
	if was.Branch != "" {
		return fmt.Errorf("branch %s has moved from %s", was.Branch, was.Head)
	}
	_, err = g.Run(ctx, nil, nil, "switch", "--quiet", "--detach", was.Head)
	return err
}
