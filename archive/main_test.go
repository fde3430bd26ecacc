package archive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/archive"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func TestMain(m *testing.M) {
	// A test starts its own program as a process to kill.
	if dir, rest, ok := strings.Cut(os.Getenv("ARCHIVE_WRITER"), ":"); ok {
		waiting, completed, _ := strings.Cut(rest, ":")
		writeForever(dir, waiting, completed)
	}
	goleak.VerifyTestMain(m)
}

type order struct {
	ID    string
	Total int
}

// bodies counts how often each step's body ran, over all processes.
type bodies struct {
	mu sync.Mutex
	n  map[string]int
}

func (b *bodies) ran(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n == nil {
		b.n = map[string]int{}
	}
	b.n[name]++
}

// checkout charges, asks a person, and ships.
func checkout(b *bodies) *durable.Workflow[order, string] {
	return durable.Define("checkout", func(ctx context.Context, o order) (string, error) {
		pay, err := durable.Step(ctx, "charge", func(context.Context) (string, error) {
			b.ran("charge")
			if o.Total < 0 {
				return "", durable.Permanent(errors.New("out of stock"))
			}
			return fmt.Sprintf("paid %d", o.Total), nil
		})
		if err != nil || o.Total == 0 {
			return pay, err
		}
		by, err := durable.Await[string](ctx, "approve", durable.Prompt("Ship "+o.ID+"?"))
		if err != nil {
			return "", err
		}
		return durable.Step(ctx, "ship", func(context.Context) (string, error) {
			b.ran("ship")
			return pay + ", shipped by " + by, nil
		})
	})
}

// process is one process on a store.
type process struct {
	*durable.Engine
	ctx context.Context
	log *logBook
}

func boot(t *testing.T, st store.Store, o durable.Options) *process {
	t.Helper()
	p := &process{log: &logBook{}}
	o.Logger = slog.New(slog.NewTextHandler(p.log, nil))
	var err error
	p.Engine, err = durable.Open(t.Context(), st, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	p.ctx = durable.NewContext(t.Context(), p.Engine)
	_, err = p.Recover(p.ctx)
	require.NoError(t, err)
	return p
}

type logBook struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// export runs checkout on a store of its own and returns the run's file: waiting
// for a total above 0, failed below, completed for 0.
func export(t *testing.T, id string, total int) []byte {
	t.Helper()
	p := boot(t, memory.Open(), durable.Options{Workflows: []durable.Definition{checkout(&bodies{})}})
	run, err := checkout(&bodies{}).Start(p.ctx, id, order{ID: id, Total: total})
	require.NoError(t, err)
	if total > 0 {
		eventually(t, "it waits", func() bool { return rowOf(t, p, id).Status == store.Waiting })
	} else {
		_, _ = run.Wait(p.ctx)
	}
	return exported(t, p, id)
}

func exported(t *testing.T, p *process, id string) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, operate.On(p.Engine).Export(p.ctx, id, &b))
	return b.Bytes()
}

func rowOf(t *testing.T, p *process, id string) store.Run {
	t.Helper()
	page, err := p.List(p.ctx, store.Filter{IDs: []string{id}, WithLast: true})
	require.NoError(t, err)
	require.Len(t, page.Runs, 1)
	return page.Runs[0]
}

// eventually waits for something that another goroutine or process does.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, 20*time.Second, 2*time.Millisecond, what)
}

// git runs git as a person would.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %s: %s", strings.Join(args, " "), out)
	return strings.TrimSuffix(string(out), "\n")
}

// repository makes one with a commit, a branch, a tag, and changes that are staged
// and not.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	write := func(name, text string) { require.NoError(t, os.WriteFile(dir+"/"+name, []byte(text), 0o600)) }
	write("a", "1\n")
	git(t, dir, "add", "a")
	git(t, dir, "commit", "-q", "-m", "first")
	git(t, dir, "branch", "side")
	git(t, dir, "tag", "v1")
	write("a", "2\n")
	git(t, dir, "add", "a")
	write("a", "3\n")
	write("untracked", "x\n")
	return dir
}

func openGit(t *testing.T, dir string) *archive.Git {
	t.Helper()
	g, err := archive.OpenGit(t.Context(), dir, archive.GitOptions{})
	require.NoError(t, err)
	return g
}

// listed returns the ids of what an archive lists without an error.
func listed(t *testing.T, a archive.Archive) []string {
	t.Helper()
	var ids []string
	for run, err := range a.List(t.Context()) {
		require.NoError(t, err)
		ids = append(ids, run.ID)
	}
	return ids
}
