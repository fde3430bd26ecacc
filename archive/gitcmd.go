package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// gitCommand runs git in one repository. What a user chooses, such as a run's
// id, never stands among the arguments: it goes through standard input, as part
// of a name that begins with "refs/".
type gitCommand struct {
	path string // of the git program
	dir  string // absolute
	env  []string
}

// gitFlags keep a repository's configuration from running programs, and have
// what is written on disk before it is referred to.
var gitFlags = []string{
	"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never",
	"-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.fsync=all",
}

// passed are the variables of this process that git sees. Others are kept from
// it: GIT_DIR, GIT_INDEX_FILE and their like would lead it elsewhere.
var passed = []string{"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "SYSTEMROOT", "USERPROFILE"}

// newGitCommand finds git, and the repository in a directory; it does not climb
// to one that surrounds it.
func newGitCommand(dir string) (*gitCommand, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("%w: git is not installed, or not in PATH: %w", ErrUnavailable, err)
	}
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the repository %s: %w", ErrUnavailable, dir, err)
	}
	g := &gitCommand{path: path, dir: abs}
	for _, name := range passed {
		if value, ok := os.LookupEnv(name); ok {
			g.env = append(g.env, name+"="+value)
		}
	}
	g.env = append(g.env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0", "GIT_ASKPASS=", "GIT_NO_REPLACE_OBJECTS=1",
		"GIT_CEILING_DIRECTORIES="+filepath.Dir(abs))
	return g, nil
}

// command prepares a call. When ctx ends, git is asked to stop, so that it
// takes its lock files with it, and killed only if it does not.
func (g *gitCommand) command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, g.path, append(append([]string{}, gitFlags...), args...)...)
	cmd.Dir, cmd.Env = g.dir, append(append([]string{}, g.env...), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// run calls git with what it reads, and returns what it writes.
func (g *gitCommand) run(ctx context.Context, env []string, input []byte, args ...string) ([]byte, error) {
	cmd := g.command(ctx, env, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, g.failed(ctx, args[0], errs.String(), err)
	}
	return out.Bytes(), nil
}

// gitError is a call of git that failed.
type gitError struct {
	command string
	dir     string
	text    string // what git said
	err     error
}

func (e *gitError) Error() string {
	text := e.text
	if text == "" {
		text = e.err.Error()
	}
	return fmt.Sprintf("git %s in %s: %s", e.command, e.dir, text)
}

func (e *gitError) Unwrap() []error { return []error{ErrUnavailable, e.err} }

func (g *gitCommand) failed(ctx context.Context, command, said string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = errors.Join(cause, err)
	}
	said = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(said), "fatal: "))
	if len(said) > 1000 {
		said = said[:1000] + "..."
	}
	return &gitError{command: command, dir: g.dir, text: said, err: err}
}

var objectID = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// object calls git for the id of an object it writes.
func (g *gitCommand) object(ctx context.Context, env []string, input []byte, args ...string) (string, error) {
	out, err := g.run(ctx, env, input, args...)
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(out))
	if !objectID.MatchString(id) {
		return "", g.failed(ctx, args[0], "it answered "+fmt.Sprintf("%.80q", id)+" instead of the id of an object", errors.New("unexpected answer"))
	}
	return id, nil
}
