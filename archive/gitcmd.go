package archive

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/gitexec"
)

// gitCommand runs git in one repository. User input, such as a run's id, appears
// in the arguments only as the full name of a ref, which begins with "refs/";
// otherwise it goes through standard input.
type gitCommand struct{ *gitexec.Git }

// newGitCommand finds git, and the repository in a directory; it does not use an
// enclosing repository.
func newGitCommand(dir string) (*gitCommand, error) {
	g, err := gitexec.In(dir, true)
	if err != nil {
		return nil, fmt.Errorf("%w: the repository %s: %w", ErrUnavailable, dir, err)
	}
	return &gitCommand{g}, nil
}

// run calls git with input on standard input, and returns its output.
func (g *gitCommand) run(ctx context.Context, env []string, input []byte, args ...string) ([]byte, error) {
	out, err := g.Run(ctx, env, input, args...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return out, nil
}

func (g *gitCommand) failed(ctx context.Context, command, said string, err error) error {
	return fmt.Errorf("%w: %w", ErrUnavailable, g.Failed(ctx, command, said, err))
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
