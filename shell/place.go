package shell

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

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
	Dirty  bool   `json:"dirty"`  // something is changed or untracked
	// Repository is the git directory that the work tree belongs to, and Tree the
	// top of the work tree.
	Repository string `json:"repository,omitempty"`
	Tree       string `json:"tree,omitempty"`
}

// gitState returns the state of the work tree that dir is in, nil if it is in
// none or git is missing: a command may run without git.
func gitState(ctx context.Context, dir string) (*GitState, error) {
	g, err := gitexec.In(dir, false)
	if errors.Is(err, gitexec.ErrMissing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	unfiltered, _, err := g.WithoutFilters(ctx)
	if err != nil {
		return nil, err
	}
	out, err := unfiltered.Run(ctx, nil, nil, "status", "--porcelain=v2", "--branch", "--ignore-submodules=all")
	if said := (*gitexec.Error)(nil); errors.As(err, &said) && ctx.Err() == nil &&
		(strings.HasPrefix(said.Text, "not a git repository") || strings.Contains(said.Text, "must be run in a work tree")) {
		return nil, nil
	}
	if err != nil {
		return nil, err
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
	if out, err = g.Run(ctx, nil, nil, "rev-parse", "--git-common-dir", "--show-toplevel"); err != nil {
		return nil, err
	}
	if lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"); len(lines) == 2 { // otherwise a name has a line break
		s.Repository, s.Tree = lines[0], lines[1]
		if !filepath.IsAbs(s.Repository) {
			s.Repository = filepath.Join(g.Dir(), s.Repository)
		}
	}
	return s, nil
}

// afterStop is how long reading the state of a work tree may take once its step is
// over: a git filter must not hold up the step.
const afterStop = 500 * time.Millisecond

// stateAfter returns the state that a command has left, nil if that is unknown. It
// works for a command that was stopped with its step too, because the next process
// finds that state.
func stateAfter(ctx context.Context, dir string) *GitState {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), afterStop)
		defer cancel()
	}
	s, err := gitState(ctx, dir)
	if err != nil {
		durable.Logger(ctx).Warn("shell: the state of the work tree after the command is not recorded", "dir", dir, "error", err)
	}
	return s
}

// differences lists how now differs from was, one line each.
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
		if was.Git.Tree != "" {
			add("the work tree", was.Git.Tree, now.Git.Tree)
		}
		add("HEAD", orNone(was.Git.Head), orNone(now.Git.Head))
		add("the branch", orNone(was.Git.Branch), orNone(now.Git.Branch))
		if was.Git.Dirty != now.Git.Dirty {
			add("the state of the work tree", clean(was.Git), clean(now.Git))
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

// defaultEnv lists the variables of this process that every command gets, besides
// those that Workspace.Env names.
var defaultEnv = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SHELL", "SYSTEMROOT", "USERPROFILE"}

// environment returns the variables that a command gets, and those that are recorded.
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

// restore puts a work tree back to a branch or commit, or recreates it if it is
// missing. It resets and cleans nothing: git refuses what would lose changes. It
// touches only the recorded work tree, and creates none inside another one.
func restore(ctx context.Context, dir string, was *GitState) error {
	if was == nil || was.Head == "" {
		return errors.New("no commit was recorded")
	}
	at := was.Tree
	if at == "" { // not recorded by earlier versions
		var err error
		if at, err = treeOf(ctx, dir, was.Repository); err != nil {
			return err
		}
	}
	if _, err := os.Stat(at); os.IsNotExist(err) {
		if err := remake(ctx, at, was); err != nil {
			return err
		}
	}
	g, err := gitexec.In(at, false)
	if err != nil {
		return err
	}
	now, err := gitState(ctx, at)
	switch {
	case err != nil:
		return err
	case now == nil:
		return fmt.Errorf("%s is no git work tree", at)
	case now.Tree != at || was.Repository != "" && now.Repository != was.Repository:
		return fmt.Errorf("%s belongs to another work tree now: %s, of the repository %s", at, now.Tree, now.Repository)
	}
	if now.Head == was.Head && (was.Branch == "" || now.Branch == was.Branch) {
		return nil
	}
	if err := checkFilters(ctx, g); err != nil {
		return err
	}
	if was.Branch != "" && now.Branch != was.Branch {
		if _, err := g.Run(ctx, nil, nil, "switch", "--quiet", "--no-guess", "--", was.Branch); err != nil {
			return err
		}
		if now, err = gitState(ctx, at); err != nil {
			return err
		}
	}
	switch {
	case now != nil && now.Head == was.Head:
		return nil
	case was.Branch != "":
		return fmt.Errorf("branch %s has moved from %s", was.Branch, was.Head)
	}
	_, err = g.Run(ctx, nil, nil, "switch", "--quiet", "--detach", was.Head)
	return err
}

// checkFilters refuses a checkout that would run a program named by the repository,
// and that without that program would write the wrong files.
func checkFilters(ctx context.Context, g *gitexec.Git) error {
	_, named, err := g.WithoutFilters(ctx)
	if err == nil && len(named) > 0 {
		err = fmt.Errorf("the configuration of the repository of %s names the filter %q, a program that git runs when it checks out: "+
			"check out by hand, or name the filter in your own configuration (git config --global) instead", g.Dir(), named[0])
	}
	return err
}

// remake recreates a missing work tree.
func remake(ctx context.Context, at string, was *GitState) error {
	if was.Repository == "" {
		return errors.New("no repository was recorded")
	}
	g, err := gitexec.In(was.Repository, true)
	if err != nil {
		return err
	}
	if err := checkFilters(ctx, g); err != nil {
		return err
	}
	args := []string{"worktree", "add", "--force", "--detach", "--", at, was.Head}
	if was.Branch != "" {
		args = []string{"worktree", "add", "--force", "--", at, was.Branch}
	}
	_, err = g.Run(ctx, nil, nil, args...)
	return err
}

// treeOf returns the work tree that a directory is in, or was in before it was
// deleted, among those that its repository knows.
func treeOf(ctx context.Context, dir, repository string) (string, error) {
	if repository == "" {
		return "", errors.New("no repository was recorded")
	}
	g, err := gitexec.In(repository, true)
	if err != nil {
		return "", err
	}
	out, err := g.Run(ctx, nil, nil, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return "", err
	}
	best := ""
	for field := range strings.SplitSeq(string(out), "\x00") {
		tree, ok := strings.CutPrefix(field, "worktree ")
		if ok && len(tree) > len(best) && (dir == tree || strings.HasPrefix(dir, strings.TrimSuffix(tree, "/")+"/")) {
			best = tree
		}
	}
	if best == "" {
		return "", fmt.Errorf("it is not recorded which work tree of %s it was in", repository)
	}
	return best, nil
}
