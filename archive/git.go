package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// DefaultPrefix is where Git keeps its refs, unless GitOptions.Prefix says
// otherwise.
const DefaultPrefix = "refs/durable/runs/"

// GitOptions configure a Git. The zero value works.
type GitOptions struct {
	// Prefix of the refs; empty: DefaultPrefix. It must begin with "refs/" and not
	// be one of git's own, such as refs/heads/.
	Prefix string
}

// Git is an archive in a git repository: a ref for each run, which points to a
// commit without a parent, with the files
//
//	run.json     what Run holds
//	trace.json   the events, as JSON
//	run.hfrun    the run exactly as it was exported
//
// so that `git for-each-ref refs/durable/runs` lists the runs and
// `git show refs/durable/runs/order-42:run.json` shows one. The work tree, the
// index, HEAD, branches and tags are never touched, no hook is run, and nothing
// is fetched or pushed. The id of a run is the name of its ref, except for bytes
// that are written %XX.
//
// A replaced copy is left to git's own garbage collection. All methods may be
// called concurrently, by many processes.
type Git struct {
	git    *gitCommand
	prefix string
}

// The files of an entry.
const (
	runName   = "run.json"
	traceName = "trace.json"
	fileName  = "run.hfrun"
)

var prefixPart = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`)

// reserved lists the ref namespaces that have a meaning for git.
var reserved = []string{"heads", "tags", "remotes", "notes", "replace", "stash", "bisect", "worktree", "rewritten", "original", "prefetch"}

// checkPrefix returns a prefix with its last slash, or why it cannot be used.
func checkPrefix(p string) (string, error) {
	if p == "" {
		return DefaultPrefix, nil
	}
	parts := strings.Split(strings.TrimSuffix(p, "/"), "/")
	bad := len(parts) < 2 || parts[0] != "refs" || len(p) > 200
	for i, part := range parts {
		bad = bad || !prefixPart.MatchString(part)
		for _, r := range reserved {
			bad = bad || i == 1 && strings.EqualFold(part, r)
		}
	}
	if bad {
		return "", fmt.Errorf("archive: the prefix %q cannot be used: it must be refs/ and names of letters, digits, '_' and '-', and none of git's own places (refs/heads, refs/tags, ...)", p)
	}
	return strings.Join(parts, "/") + "/", nil
}

// OpenGit opens the archive in the repository in dir: the top of a work tree
// (including a linked one) or a bare repository. It writes nothing. Errors: an
// unusable prefix; ErrUnavailable when git is missing or dir holds no repository.
func OpenGit(ctx context.Context, dir string, o GitOptions) (*Git, error) {
	prefix, err := checkPrefix(o.Prefix)
	if err != nil {
		return nil, err
	}
	cmd, err := newGitCommand(dir)
	if err == nil {
		_, err = cmd.run(ctx, nil, nil, "rev-parse", "--git-dir")
	}
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist), strings.Contains(err.Error(), "not a git repository"):
		return nil, fmt.Errorf("%w; `git init --bare %s` makes one", err, dir)
	default:
		return nil, err
	}
	return &Git{git: cmd, prefix: prefix}, nil
}

// Ref returns the name of the ref that holds a run, or why the id is invalid.
func (g *Git) Ref(runID string) (string, error) {
	name, err := nameOf(runID)
	if err != nil {
		return "", err
	}
	return g.prefix + name, nil
}

// commitTries bounds how often Store compares again because another process wrote
// in between.
const commitTries = 10

// Store implements Archive.
func (g *Git) Store(ctx context.Context, runID string, file []byte) error {
	ref, err := g.Ref(runID)
	if err != nil {
		return err
	}
	ours, err := readEntry(runID, file)
	if err != nil {
		return err
	}
	commit := ""
	for try := 0; ; try++ {
		old, have, err := g.present(ctx, ref, ours, try > 0)
		if err != nil {
			return err
		}
		if have != nil {
			switch compare(have, ours) {
			case foreign:
				return &ReusedIDError{RunID: runID, Given: ours.CreatedAt, Held: have.CreatedAt, Where: ref}
			case held:
				if !bytes.Equal(have.File, file) {
					return nil
				}
				// Write it anyway: the other files of the copy may be damaged.
			}
		}
		if commit == "" {
			if commit, err = g.write(ctx, ours); err != nil {
				return err
			}
		}
		if old == commit {
			return nil
		}
		err = g.point(ctx, ref, commit, old)
		if err == nil || try == commitTries || ctx.Err() != nil {
			return err
		}
		// Another process was faster, or was killed while it held the lock. A live
		// git holds it for milliseconds.
		if !g.breakLock(ctx, ref) {
			select {
			case <-time.After(time.Duration(try+1) * 20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
}

// present returns the commit that a ref points to, empty if there is none, and as
// much of its copy as a comparison needs: nil if no copy could be read. With sure
// it checks whether a ref that seems missing points to a missing commit.
func (g *Git) present(ctx context.Context, ref string, ours *Entry, sure bool) (string, *Entry, error) {
	commit, have, err := g.copyAt(ctx, ref, ours)
	var collision *CollisionError
	if err != nil && ctx.Err() == nil && !errors.As(err, &collision) {
		// git gives up at a damaged object. Only a second failure counts as damage.
		commit, have, err = g.copyAt(ctx, ref, ours)
	}
	switch {
	case err == nil && (commit != "" || !sure):
		return commit, have, nil
	case ctx.Err() != nil, errors.As(err, &collision):
		return "", nil, err
	}
	out, unresolved := g.git.run(ctx, nil, nil, "rev-parse", "--verify", "--quiet", ref)
	if id := strings.TrimSpace(string(out)); unresolved == nil && objectID.MatchString(id) {
		return id, nil, nil // damaged: our copy replaces it
	}
	return "", nil, err
}

// copyAt reads the copy that a ref points to.
func (g *Git) copyAt(ctx context.Context, ref string, ours *Entry) (string, *Entry, error) {
	c, err := g.git.cat(ctx)
	if err != nil {
		return "", nil, err
	}
	defer c.close()
	commit, err := c.get(ref)
	if err != nil || commit.id == "" {
		return "", nil, err
	}
	record, err := c.get(commit.id + ":" + runName)
	if err != nil {
		return "", nil, err
	}
	run, err := readRun(record.data)
	if err != nil {
		return commit.id, nil, nil // damaged: our copy replaces it
	}
	if run.ID != ours.ID {
		return "", nil, &CollisionError{RunID: ours.ID, Other: run.ID, Where: ref}
	}
	have := &Entry{Run: run}
	if needsFile(have, ours) {
		file, err := c.get(commit.id + ":" + fileName)
		if err != nil {
			return "", nil, err
		}
		have.File = file.data
	}
	return commit.id, have, nil
}

// write makes the objects of an entry, to which nothing refers yet, checks that
// each can be read, and returns the id of the commit. The same entry gives the
// same commit.
func (g *Git) write(ctx context.Context, e *Entry) (string, error) {
	for dropped := 0; ; dropped++ {
		made, err := g.objects(ctx, e)
		if err == nil {
			err = g.whole(ctx, made)
		}
		if err == nil {
			return made[len(made)-1], nil
		}
		// git does not rewrite an existing object, even one that a crash of the
		// machine has left empty.
		if dropped > len(made) || ctx.Err() != nil || !g.dropDamaged(ctx, made) {
			return "", err
		}
	}
}

// objects makes the objects of an entry and returns the ids of those it made; the
// last one is the commit.
func (g *Git) objects(ctx context.Context, e *Entry) (made []string, err error) {
	run, err := marshal(e.Run)
	if err != nil {
		return nil, err
	}
	trace, err := marshal(e.Trace)
	if err != nil {
		return nil, err
	}
	object := func(env []string, input []byte, args ...string) string {
		if err != nil {
			return ""
		}
		var id string
		if id, err = g.git.object(ctx, env, input, args...); err == nil {
			made = append(made, id)
		}
		return id
	}
	var tree strings.Builder
	for _, f := range []struct {
		name string
		data []byte
	}{{fileName, e.File}, {runName, run}, {traceName, trace}} {
		id := object(nil, f.data, "hash-object", "-w", "-t", "blob", "--no-filters", "--stdin")
		fmt.Fprintf(&tree, "100644 blob %s\t%s\n", id, f.name)
	}
	id := object(nil, []byte(tree.String()), "mktree")
	at := e.EndedAt
	if at.IsZero() {
		at = e.Trace[len(e.Trace)-1].At
	}
	when := fmt.Sprintf("%d +0000", at.Unix())
	object([]string{
		"GIT_AUTHOR_NAME=holdfast", "GIT_AUTHOR_EMAIL=holdfast@localhost", "GIT_AUTHOR_DATE=" + when,
		"GIT_COMMITTER_NAME=holdfast", "GIT_COMMITTER_EMAIL=holdfast@localhost", "GIT_COMMITTER_DATE=" + when,
	}, fmt.Appendf(nil, "run %s of %s: %s\n", e.ID, e.Workflow, e.Status), "commit-tree", id)
	return made, err
}

// whole returns an error if one of the objects cannot be read.
func (g *Git) whole(ctx context.Context, ids []string) error {
	c, err := g.git.cat(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	for _, id := range ids {
		b, err := c.get(id)
		if err != nil {
			return err
		}
		if !b.is(id) {
			return fmt.Errorf("%w: the repository %s does not give back the object %s, which was written to it: see git fsck", ErrUnavailable, g.git.Dir(), id)
		}
	}
	return nil
}

// dropDamaged removes the files of objects that cannot be read, and reports
// whether there was one.
func (g *Git) dropDamaged(ctx context.Context, ids []string) bool {
	root, err := g.common(ctx)
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }()
	dropped := false
	for _, id := range ids {
		if g.whole(ctx, []string{id}) == nil || ctx.Err() != nil {
			continue
		}
		dropped = root.Remove(filepath.Join("objects", id[:2], id[2:])) == nil || dropped
	}
	return dropped
}

// point moves a ref from one commit to another; it fails when the ref is not at
// the expected commit. A symbolic ref, which could lead to a branch, is replaced
// and not followed.
func (g *Git) point(ctx context.Context, ref, to, from string) error {
	line := "create " + ref + " " + to
	if from != "" {
		line = "update " + ref + " " + to + " " + from
	}
	_, err := g.git.run(ctx, nil, []byte("option no-deref\n"+line+"\n"), "update-ref", "--stdin")
	return err
}

// common opens the git directory that all work trees share.
func (g *Git) common(ctx context.Context) (*os.Root, error) {
	out, err := g.git.run(ctx, nil, nil, "rev-parse", "--git-common-dir")
	if err != nil {
		return nil, err
	}
	dir := strings.TrimSuffix(string(out), "\n")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(g.git.Dir(), dir)
	}
	return os.OpenRoot(dir)
}

// staleLock is the age at which the lock of a ref must belong to a killed process:
// a live one holds it for a few milliseconds.
const staleLock = time.Minute

// breakLock removes the lock that a killed process left on one of our refs, and
// reports whether it did.
func (g *Git) breakLock(ctx context.Context, ref string) bool {
	root, err := g.common(ctx)
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }()
	lock := filepath.FromSlash(ref + ".lock")
	info, err := root.Stat(lock)
	if err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) < staleLock {
		return false
	}
	return root.Remove(lock) == nil
}

// refs yields the names of the refs below the prefix.
func (g *Git) refs(ctx context.Context) ([]string, error) {
	out, err := g.git.run(ctx, nil, nil, "for-each-ref", "--format=%(refname)", "--", strings.TrimSuffix(g.prefix, "/"))
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(out)), nil
}

// List implements Archive.
func (g *Git) List(ctx context.Context) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		refs, err := g.refs(ctx)
		if err != nil {
			yield(Run{}, err)
			return
		}
		if len(refs) == 0 {
			return
		}
		var c *catFile
		defer func() {
			if c != nil {
				c.close()
			}
		}()
		for _, ref := range refs {
			if c == nil {
				if c, err = g.git.cat(ctx); err != nil {
					yield(Run{}, err)
					return
				}
			}
			run, err := g.record(c, ref)
			if err != nil && !errors.Is(err, ErrUnreadable) {
				c.close()
				c = nil
				if ctx.Err() == nil {
					// git gives up at the first damaged object, so the next run
					// needs a new git process.
					err = &UnreadableError{RunID: run.ID, Where: ref, Err: err}
				}
			}
			if !yield(run, err) || ctx.Err() != nil {
				return
			}
		}
	}
}

// record reads the Run of one ref.
func (g *Git) record(c *catFile, ref string) (Run, error) {
	id, err := idOf(strings.TrimPrefix(ref, g.prefix))
	if err != nil {
		return Run{}, &UnreadableError{Where: ref, Err: err}
	}
	b, err := c.get(ref + ":" + runName)
	if err != nil {
		return Run{ID: id}, err
	}
	if b.kind != "blob" {
		return Run{ID: id}, &UnreadableError{RunID: id, Where: ref, Err: errors.New("it has no " + runName)}
	}
	run, err := readRun(b.data)
	if err == nil && run.ID != id {
		err = fmt.Errorf("it is the record of run %q", run.ID)
	}
	if err != nil {
		return Run{ID: id}, &UnreadableError{RunID: id, Where: ref, Err: err}
	}
	return run, nil
}

// Trace implements Archive.
func (g *Git) Trace(ctx context.Context, runID string) ([]Event, error) {
	var trace []Event
	err := g.read(ctx, runID, func(c *catFile, ref, commit string) error {
		b, err := c.get(commit + ":" + traceName)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(b.data, &trace); err != nil {
			return &UnreadableError{RunID: runID, Where: ref, Err: err}
		}
		return nil
	})
	return trace, err
}

// Get implements Archive.
func (g *Git) Get(ctx context.Context, runID string) (*Entry, error) {
	var entry *Entry
	err := g.read(ctx, runID, func(c *catFile, ref, commit string) error {
		b, err := c.get(commit + ":" + fileName)
		if err != nil {
			return err
		}
		// Derive the records from the file again, because it has a checksum and
		// they do not.
		if entry, err = readEntry(runID, b.data); err != nil {
			return &UnreadableError{RunID: runID, Where: ref, Err: err}
		}
		return nil
	})
	return entry, err
}

// read calls f for the entry of a run, if there is one.
func (g *Git) read(ctx context.Context, runID string, f func(c *catFile, ref, commit string) error) error {
	ref, err := g.Ref(runID)
	if err != nil {
		return err
	}
	c, err := g.git.cat(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	commit, err := c.get(ref)
	switch {
	case err != nil:
		return err
	case commit.id == "":
		if out, err := g.git.run(ctx, nil, nil, "rev-parse", "--verify", "--quiet", ref); err == nil && objectID.MatchString(strings.TrimSpace(string(out))) {
			return &UnreadableError{RunID: runID, Where: ref, Err: fmt.Errorf("the commit %s is missing from the repository", strings.TrimSpace(string(out)))}
		}
		return fmt.Errorf("run %s: %w", runID, ErrNotFound)
	}
	return f(c, ref, commit.id)
}
