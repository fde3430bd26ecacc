// Package gitexec calls git such that a repository's configuration, the environment and
// user-chosen names cannot change what the call does: no shell, no hooks, no prompts,
// no network, no variables that redirect git.
package gitexec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Git calls git in one directory. It may be used concurrently.
type Git struct {
	path string // path of the git program
	dir  string // absolute, links resolved
	env  []string
}

// ErrMissing: git is not installed, or not in PATH.
var ErrMissing = errors.New("git is not installed, or not in PATH")

// flags keep a repository's configuration from running programs, and make git sync
// objects to disk before it refers to them.
var flags = []string{
	"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never",
	"-c", "submodule.recurse=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.fsync=all",
}

// settled holds variables with the same purpose. A repository may name a remote from
// which git fetches missing objects on every read, with a program that the repository
// also names. These variables stop such fetches, and where an older git would still
// fetch, allow no transport (this list overrides protocol.*.allow).
var settled = []string{
	"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_ASKPASS=", "GIT_NO_REPLACE_OBJECTS=1",
	"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none",
}

// passed lists the variables of this process that git sees. It does not see others,
// such as GIT_DIR and GIT_INDEX_FILE. The variables that locate the system and user
// configuration are passed, because only there can a directory that belongs to another
// user be trusted (safe.directory).
var passed = []string{
	"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "SYSTEMROOT", "USERPROFILE",
	"GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM",
}

// In returns a Git for a directory. With own, it does not look for a repository
// in the directories above.
func In(dir string, own bool) (*Git, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return nil, err
	}
	g := &Git{path: path, dir: abs}
	for _, name := range passed {
		if value, ok := os.LookupEnv(name); ok {
			g.env = append(g.env, name+"="+value)
		}
	}
	g.env = append(g.env, settled...)
	if own {
		g.env = append(g.env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(abs))
	}
	return g, nil
}

// WithoutFilters returns a Git that runs none of the filters that the repository's
// own configuration names, and their names. Git runs filters when it reads or writes
// files of the work tree. Filters from the user and system configuration stay.
func (g *Git) WithoutFilters(ctx context.Context) (without *Git, named []string, err error) {
	out, err := g.Run(ctx, nil, nil, "config", "--show-scope", "-z", "--get-regexp", `^filter\.`)
	if status, ok := errors.AsType[*exec.ExitError](err); ok && status.ExitCode() == 1 && ctx.Err() == nil {
		return g, nil, nil // there are none
	}
	if err != nil {
		return nil, nil, err
	}
	settings, named := unfiltered(string(out))
	without = &Git{path: g.path, dir: g.dir, env: append([]string{}, g.env...)}
	// Not as flags, because git ends the name in a flag at its first "=".
	for i, s := range settings {
		without.env = append(without.env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	without.env = append(without.env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(settings)))
	return without, named, nil
}

// unfiltered returns the settings that disable the filters of a repository, from git's
// listing of all filters:
//
//	global NUL filter.lfs.clean LF git-lfs clean NUL
//	local  NUL filter.x.clean   LF touch /tmp/x  NUL   =>  filter.x.clean is ""
//
// and the names of the filters that the repository sets.
func unfiltered(said string) (settings [][2]string, named []string) {
	others := map[string]string{}
	fields := strings.Split(said, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		key, value, _ := strings.Cut(fields[i+1], "\n")
		dot := strings.LastIndexByte(key, '.')
		switch fields[i] {
		case "local", "worktree":
			if name := key[:dot]; !slices.Contains(named, name) {
				named = append(named, name)
			}
		default:
			others[key] = value
		}
	}
	for _, name := range named {
		for _, part := range []string{".clean", ".smudge", ".process"} {
			settings = append(settings, [2]string{name + part, others[name+part]})
		}
		required := others[name+".required"]
		if required == "" {
			required = "false"
		}
		settings = append(settings, [2]string{name + ".required", required})
	}
	for i := range named {
		named[i] = strings.TrimPrefix(named[i], "filter.")
	}
	return settings, named
}

// Dir returns the directory, absolute and without links.
func (g *Git) Dir() string { return g.dir }

// patience is how long git has to stop after it was asked to.
const patience = time.Second

// outputs is how long the outputs of a git that has ended may stay open before its
// answer counts as lost. It is long, because otherwise the answer of a git that did its
// work is thrown away: a process that is started at the same time holds a copy of the
// outputs until it runs, and on a busy machine that, or reading them, takes more than a
// second.
const outputs = 10 * time.Second

// Command prepares a call. When ctx ends, git and the processes it has started, such as
// filters, are asked to stop, so that git removes its lock files; they are killed only
// if they do not. User input must not be in args where git would take it for an option.
func (g *Git) Command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, g.path, append(append([]string{}, flags...), args...)...)
	cmd.Dir, cmd.Env = g.dir, append(append([]string{}, g.env...), env...)
	ownGroup(cmd)
	cmd.Cancel = func() error { return interrupt(cmd.Process) }
	cmd.WaitDelay = patience
	return cmd
}

// Run calls git with input on standard input, and returns its output. Errors are
// *Error.
func (g *Git) Run(ctx context.Context, env []string, input []byte, args ...string) ([]byte, error) {
	cmd := g.Command(ctx, env, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &errs
	cmd.WaitDelay = outputs
	err := cmd.Start()
	if err == nil {
		ended := killAfter(ctx, cmd.Process)
		err = cmd.Wait()
		ended()
	}
	if err != nil {
		if ctx.Err() != nil && cmd.Process != nil {
			kill(cmd.Process)
		}
		return nil, g.Failed(ctx, args[0], errs.String(), err)
	}
	return out.Bytes(), nil
}

// killAfter kills git, and the processes it has started, some time after ctx has ended,
// unless the function it returns was called by then.
func killAfter(ctx context.Context, p *os.Process) (ended func()) {
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-done:
			return
		case <-ctx.Done():
		}
		t := time.NewTimer(patience)
		defer t.Stop()
		select {
		case <-done:
		case <-t.C:
			kill(p)
		}
	})
	return func() {
		close(done)
		watch.Wait()
	}
}

// Error is a call of git that failed.
type Error struct {
	Command string // the git command
	Dir     string
	Text    string // what git said
	Err     error
}

func (e *Error) Error() string {
	text := e.Text
	if text == "" {
		text = e.Err.Error()
	}
	return fmt.Sprintf("git %s in %s: %s", e.Command, e.Dir, text)
}

func (e *Error) Unwrap() error { return e.Err }

// Failed makes the error of a call from git's error output.
func (g *Git) Failed(ctx context.Context, command, said string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = errors.Join(cause, err)
	}
	said = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(said), "fatal: "))
	if len(said) > 1000 {
		said = said[:1000] + "..."
	}
	return &Error{Command: command, Dir: g.dir, Text: said, Err: err}
}
