package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// Workspace says where and how commands run. Create a new one for each run, in the
// workflow function: it remembers where the run's last command ran. Its methods may
// be called concurrently from branches; its fields must not change after the first
// call.
type Workspace struct {
	// Dir is the working directory; empty: that of the process. A relative path
	// starts at the directory of the process that runs the first command; a run
	// resumed by a process elsewhere goes on where it was.
	Dir string
	// Env names variables of this process that the commands get, and that are
	// recorded with their values, except for secrets (durable.SecretName). The
	// commands always get a few others (PATH, HOME, LANG, TMPDIR and the like), and
	// no further ones.
	Env []string
	// Set holds further variables, recorded in the same way.
	Set map[string]string
	// Output, if set, gets the output of the commands while they run, stdout and
	// stderr mixed, from a separate goroutine. When it fails, it gets no more. A slow
	// Output holds the command up, as a full pipe does, once the command is 256 KiB
	// ahead. If Output is still in a call when the step runs out of time, or has
	// accepted nothing for five seconds after the command has ended, it does not get
	// the rest, which is logged. It never changes what is recorded.
	Output io.Writer
	// MaxOutput is how many bytes of stdout, and of stderr, are recorded: of longer
	// output, the beginning and the end. Zero: DefaultMaxOutput.
	MaxOutput int
	// Grace is how long a command that must stop has after SIGTERM until it is
	// killed; zero: DefaultGrace. When the engine shuts down it has at most half a
	// second; set durable.Options.Grace to give it longer.
	Grace time.Duration
	// OnMismatch says what happens when a resumed run finds its place changed; zero:
	// Warn.
	OnMismatch Mismatch
	// NoGit: do not record or compare the git work tree, which saves two calls of git
	// per command.
	NoGit bool

	mu   sync.Mutex
	left *Place // left by the last command, if that was replayed, until another one runs
	at   string // where earlier commands ran; empty: there are none
}

// The defaults of Workspace.
const (
	DefaultMaxOutput = 64 << 10
	DefaultGrace     = 5 * time.Second
)

// Mismatch says what happens when the place of a command is not as the run left it
// when it was interrupted: another HEAD, branch or dirty flag, other variables,
// another directory, or none.
type Mismatch int

const (
	// Warn logs the differences and goes on. A missing directory is a *DirError.
	Warn Mismatch = iota
	// Refuse fails the step with a *MismatchError before the command runs.
	Refuse
	// Restore switches the work tree to the branch, or commit, that it had, and
	// recreates a missing one. It resets and cleans nothing: if git refuses because
	// of uncommitted changes, or the branch has moved, the step fails with a
	// *MismatchError. Differing variables and dirty flags are logged.
	Restore
)

// Run runs a command as a step: argv is the program and its arguments, which no
// shell interprets. When it returns nil, the command has ended with code 0 and its
// Result is durable: a replay returns it and runs nothing.
//
// Errors, in the step's *durable.StepError: *ExitError; *StoppedError; *DirError;
// *MismatchError; the reason why the program could not be started. The output of a
// failed attempt is in its note "shell".
func (w *Workspace) Run(ctx context.Context, step string, argv ...string) (Result, error) {
	return w.observed(func(ran *bool) (Result, error) {
		return durable.Step(ctx, step, w.body(ran, true, argv))
	})
}

// Retry is Run with retries as p says. Every failed attempt is recorded with its exit
// code and its output.
func (w *Workspace) Retry(ctx context.Context, step string, p durable.Policy, argv ...string) (Result, error) {
	return w.observed(func(ran *bool) (Result, error) {
		return durable.Retry(ctx, step, p, w.body(ran, true, argv))
	})
}

// Seek runs a command repeatedly until check accepts its Result, whatever its exit
// code: a refused Result is a failed attempt, and is kept with it
// (durable.Failure.Output). before, if not nil, runs before each attempt, in the same
// step, to change what is checked: it sees the earlier failures with
// durable.Attempt(ctx).
func (w *Workspace) Seek(ctx context.Context, step string, p durable.Policy, before func(ctx context.Context) error, check func(Result) error, argv ...string) (Result, error) {
	return w.observed(func(ran *bool) (Result, error) {
		run := w.body(ran, false, argv)
		return durable.Seek(ctx, step, p, func(ctx context.Context) (Result, error) {
			if before != nil {
				if err := before(ctx); err != nil {
					return Result{}, err
				}
			}
			return run(ctx)
		}, check)
	})
}

// Exec runs a command in the body of your own step, with the context of that body. An
// exit code other than 0 gives an *ExitError, in addition to the Result. A body may
// call it several times, even concurrently. Before its first command, the place is
// compared with what the run left, even in an earlier process that was killed in the
// middle of this body; later changes are the body's own. What Exec saves for that is
// in a separate slot of progress, "holdfast/shell".
func (w *Workspace) Exec(ctx context.Context, argv ...string) (Result, error) {
	return w.perform(ctx, true, true, argv)
}

// observed performs a step and, if it was replayed, remembers what it left, to
// compare the next command with that.
func (w *Workspace) observed(perform func(ran *bool) (Result, error)) (Result, error) {
	ran := false
	r, err := perform(&ran)
	w.mu.Lock()
	defer w.mu.Unlock()
	var exit *ExitError
	switch {
	case ran:
		w.left = nil
	case err == nil:
		left := r.Place
		left.Git = r.After
		w.left, w.at = &left, left.Dir
	case errors.As(err, &exit):
		w.at = exit.Dir
	}
	return r, err
}

// body returns the body of a step. With strict, an exit code other than 0 is an
// error.
func (w *Workspace) body(ran *bool, strict bool, argv []string) func(ctx context.Context) (Result, error) {
	return func(ctx context.Context) (Result, error) {
		*ran = true
		return w.perform(ctx, strict, false, argv)
	}
}

// perform runs a command in the body of a step; goesOn says that the body does more
// than that.
func (w *Workspace) perform(ctx context.Context, strict, goesOn bool, argv []string) (Result, error) {
	if len(argv) == 0 || argv[0] == "" {
		return Result{}, durable.Permanent(errEmpty)
	}
	b := bodyOf(ctx)
	before, err := b.interrupted(ctx)
	if err != nil {
		return Result{}, err
	}
	env, place, err := w.prepare(ctx, before, argv)
	if err != nil {
		return Result{}, err
	}
	mark, err := b.begins(ctx, place)
	if err != nil {
		return Result{}, err
	}
	if mark != "" {
		env = append(env, markName+"="+mark)
	}
	c := &command{argv: argv, env: env, dir: place.Dir, grace: w.grace(), limit: w.maxOutput(), mark: mark, output: w.Output}
	r, err := c.run(ctx)
	if c.unseen != nil {
		durable.Logger(ctx).Warn("shell: Workspace.Output did not get all that the command has written; what is recorded is whole", "dir", place.Dir, "error", c.unseen)
	}
	r.Place = *place
	if !w.NoGit {
		r.After = stateAfter(ctx, place.Dir)
	}
	note(ctx, &r)
	if saveErr := b.ended(ctx, mark, place, r.After, goesOn); err == nil {
		err = saveErr
	}
	if err == nil && strict && (r.ExitCode != 0 || c.signal != "") {
		err = &ExitError{Command: commandLine(argv), Dir: place.Dir, ExitCode: r.ExitCode, Signal: c.signal, Tail: tailOf(&r)}
	}
	return r, err
}

// noteKey is the note in which an attempt keeps the result of its last command.
const noteKey = "shell"

// note stores the result of a command with the attempt.
func note(ctx context.Context, r *Result) {
	const each = 4 << 10 // notes are bounded, and JSON may take six bytes for one
	if durable.Attempt(ctx).Key == "" {
		return
	}
	durable.Note(ctx, noteKey, struct {
		ExitCode int    `json:"exit_code"`
		Stdout   Output `json:"stdout"`
		Stderr   Output `json:"stderr"`
		// Where it began and what it left, for people (internal/outline shows it) and
		// for the next process; see leftIn.
		Dir   string    `json:"dir,omitempty"`
		Git   *GitState `json:"git,omitempty"`
		After *GitState `json:"after,omitempty"`
	}{r.ExitCode, r.Stdout.shorten(each), r.Stderr.shorten(each), r.Place.Dir, r.Place.Git, r.After})
}

func (w *Workspace) grace() time.Duration {
	if w.Grace > 0 {
		return w.Grace
	}
	return DefaultGrace
}

func (w *Workspace) maxOutput() int {
	if w.MaxOutput > 0 {
		return w.MaxOutput
	}
	return DefaultMaxOutput
}

// prepare returns where a command is to run, once that place is as it should be.
// before is the place of the interrupted attempt, nil if there is none.
func (w *Workspace) prepare(ctx context.Context, before *Place, argv []string) (env []string, now *Place, err error) {
	w.mu.Lock()
	was, at := w.left, w.at
	w.mu.Unlock()
	if before != nil {
		was, at = before, before.Dir
	}
	var here *tree
	if was != nil {
		if here, err = enter(ctx, was.tree()); err != nil {
			return nil, nil, w.ended(ctx, argv, err)
		}
		defer here.leave()
		if left, ok := leftIn(ctx, was.tree()); ok && before == nil {
			was = &Place{Dir: was.Dir, Env: was.Env, Git: left}
		}
	}
	dir, err := w.dir(ctx, was, at, here)
	if err != nil {
		return nil, nil, w.ended(ctx, argv, err)
	}
	env, recorded := w.environment()
	now = &Place{Dir: dir, Args: append([]string{argv[0]}, durable.RedactArgs(argv[1:])...), Env: recorded}
	var unread error
	if !w.NoGit {
		if now.Git, unread = gitState(ctx, dir); unread != nil {
			if ctx.Err() != nil {
				return nil, nil, stoppedBy(ctx, argv, false)
			}
			durable.Logger(ctx).Warn("shell: the state of the work tree cannot be read, and is not recorded", "dir", dir, "error", unread)
		}
	}
	if was != nil {
		if err := w.compare(ctx, was, now, here.live.Load(), before != nil, unread); err != nil {
			return nil, nil, w.ended(ctx, argv, err)
		}
	}
	w.mu.Lock()
	w.left, w.at = nil, dir
	w.mu.Unlock()
	if here != nil {
		here.live.Store(true)
	}
	treeAt(ctx, now.tree()).live.Store(true)
	return env, now, nil
}

// ended returns the error of a command that was not started: a *StoppedError if its
// step has ended.
func (w *Workspace) ended(ctx context.Context, argv []string, err error) error {
	if ctx.Err() != nil {
		return stoppedBy(ctx, argv, false)
	}
	return err
}

// compare lets a command begin in a place that is as the run left it, or as
// OnMismatch allows it to be. live: a command of this execution has begun in the work
// tree, so its state proves nothing. interrupted: was is where an interrupted command
// began. unread: why the state is unknown.
func (w *Workspace) compare(ctx context.Context, was, now *Place, live, interrupted bool, unread error) error {
	known := *was
	switch {
	case live || unread != nil:
		known.Git = nil
	case interrupted && was.Git != nil && now.Git != nil:
		// Changes by the interrupted command are expected.
		git := *was.Git
		git.Dirty = now.Git.Dirty
		known.Git = &git
	}
	list := differences(&known, now)
	var failed error
	switch {
	case unread != nil && was.Git != nil && !live:
		list = append(list, "the state of its work tree cannot be read")
		failed = unread
	case w.OnMismatch == Restore && moved(&known, now):
		if failed = restore(ctx, now.Dir, was.Git); failed == nil {
			now.Git, failed = gitState(ctx, now.Dir)
		}
		if failed == nil && moved(&known, now) {
			failed = errors.New("it is in another work tree")
		}
		if failed == nil {
			list = differences(&known, now)
		}
	}
	switch {
	case w.OnMismatch == Restore && failed != nil, w.OnMismatch == Refuse && len(list) > 0:
		return w.mismatch(ctx, now.Dir, list, failed)
	case len(list) > 0:
		durable.Logger(ctx).Warn("shell: the place of the command is not as it was when the run was interrupted", "dir", now.Dir, "differences", list)
	}
	return nil
}

// moved reports whether the work tree is at another commit or branch, or is another
// one.
func moved(was, now *Place) bool {
	return was.Git != nil && (now.Git == nil || was.Git.Head != now.Git.Head || was.Git.Branch != now.Git.Branch ||
		was.Git.Tree != "" && was.Git.Tree != now.Git.Tree)
}

func (w *Workspace) mismatch(ctx context.Context, dir string, list []string, err error) error {
	a := durable.Attempt(ctx)
	e := &MismatchError{RunID: a.RunID, Step: a.Key, Dir: dir, Differences: list}
	if err != nil {
		e.Problem = err.Error()
	}
	return durable.Permanent(e)
}

// dir returns the working directory, absolute and without links. at is where the
// run's commands ran so far: a process that resumes the run may have another working
// directory, and a relative path would then be another directory.
func (w *Workspace) dir(ctx context.Context, was *Place, at string, here *tree) (string, error) {
	dir := w.Dir
	if at != "" && !filepath.IsAbs(dir) {
		dir = at
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("shell: the working directory: %w", err)
	}
	info, err := os.Stat(dir)
	if os.IsNotExist(err) && w.OnMismatch == Restore && was != nil && !here.live.Load() {
		// By the recorded name, if that is the same directory: links on the path may
		// be gone with it.
		if err := restore(ctx, was.Dir, was.Git); err != nil {
			return "", w.mismatch(ctx, dir, []string{"it does not exist"}, err)
		}
		info, err = os.Stat(dir)
	}
	problem := ""
	switch {
	case os.IsNotExist(err):
		problem = "does not exist any more"
		if was == nil && at == "" {
			problem = "does not exist"
		}
	case err != nil:
		return "", fmt.Errorf("shell: the working directory: %w", err)
	case !info.IsDir():
		problem = "is not a directory"
	}
	if problem != "" {
		return "", w.missing(ctx, dir, problem, was) // it may be created again
	}
	return filepath.EvalSymlinks(dir)
}

// missing returns the error for a missing directory.
func (w *Workspace) missing(ctx context.Context, dir, problem string, was *Place) error {
	a := durable.Attempt(ctx)
	e := &DirError{RunID: a.RunID, Step: a.Key, Dir: dir, Problem: problem}
	if was == nil || was.Git == nil {
		return e
	}
	at := was.Git.Tree
	if at == "" {
		at, _ = treeOf(ctx, was.Dir, was.Git.Repository) // otherwise it is unknown
	}
	_, repository := os.Stat(was.Git.Repository)
	if _, err := os.Stat(at); at != "" && repository == nil && os.IsNotExist(err) {
		e.Tree, e.Repository, e.Branch, e.Head = at, was.Git.Repository, was.Git.Branch, was.Git.Head
	}
	return e
}
