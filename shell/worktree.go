package shell

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// Attribute is the name of the attribute that holds the directory of a run that
// was started with Worktree.
const Attribute = "worktree"

// Key returns the exclusive key of a directory, "worktree:/src/app": the same for
// every spelling of its path.
func Key(dir string) (string, error) {
	path, err := canonical(dir)
	if err != nil {
		return "", err
	}
	return Attribute + ":" + path, nil
}

// canonical returns the canonical path of a directory; that of a directory that
// does not exist yet is based on its parent's.
func canonical(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("shell: the directory %s: %w", dir, err)
	}
	rest := ""
	for at := abs; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest), nil
		}
		if filepath.Dir(at) == at {
			return abs, nil
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// Worktree returns options of Start for a run that works in a directory: no other
// run started with them has the directory at the same time (durable.Exclusive;
// ErrOccupied names the run that has it), and RunIn finds the run by its directory.
//
//	opts, err := shell.Worktree("/src/app")
//	run, err := release.Start(ctx, "release-7", in, opts...)
func Worktree(dir string) ([]durable.StartOption, error) {
	key, err := Key(dir)
	if err != nil {
		return nil, err
	}
	path, err := canonical(dir)
	if err != nil {
		return nil, err
	}
	return []durable.StartOption{durable.Exclusive(key), durable.Attributes(map[string]string{Attribute: path})}, nil
}

// RunIn returns the id of the run that works in a directory, among those started
// with Worktree: the one that has not ended, or else the latest; empty: there is
// none. For the reverse, durable.Engine.Get returns the directory of a run among
// its attributes.
func RunIn(ctx context.Context, eng *durable.Engine, dir string) (string, error) {
	path, err := canonical(dir)
	if err != nil {
		return "", err
	}
	f := store.Filter{Attributes: map[string]string{Attribute: path}, Limit: 1}
	f.Statuses = []store.Status{store.Pending, store.Running, store.Resuming, store.Waiting, store.Interrupted}
	for range 2 {
		page, err := eng.List(ctx, f)
		if err != nil {
			return "", err
		}
		if len(page.Runs) > 0 {
			return page.Runs[0].ID, nil
		}
		f.Statuses = nil
	}
	return "", nil
}
