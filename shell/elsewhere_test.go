//go:build linux

package shell_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/shell"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// asked runs a command that the workflow begins with, waits, and returns where
// two more have run.
func asked(dir string, first ...string) func(ctx context.Context) (shell.Result, error) {
	return func(ctx context.Context) (shell.Result, error) {
		ws := &shell.Workspace{Dir: dir}
		var exit *shell.ExitError
		if _, err := ws.Run(ctx, "first", first...); err != nil && !errors.As(err, &exit) {
			return shell.Result{}, err
		}
		if _, err := durable.Await[int](ctx, "go on"); err != nil {
			return shell.Result{}, err
		}
		if _, err := ws.Run(ctx, "mark", "touch", "mark"); err != nil {
			return shell.Result{}, err
		}
		return ws.Run(ctx, "last", "pwd")
	}
}

// resumedElsewhere runs the first command in one directory, and goes on in a
// process that stands in another one.
func resumedElsewhere(t *testing.T, fn func(ctx context.Context) (shell.Result, error), meanwhile func(home string)) (home, away string, r shell.Result, p *process, err error) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	home, away = base+"/home", base+"/away"
	for _, dir := range []string{home, away} {
		require.NoError(t, os.MkdirAll(dir+"/sub", 0o700))
	}
	st := memory.Open()
	t.Chdir(home)
	p = boot(t, st.Handle(), fn)
	p.start(t)
	eventually(t, "it waits", func() bool {
		evs := p.events(t)
		return evs[len(evs)-1].Type == store.WaitRequested
	})
	require.NoError(t, p.Close())
	meanwhile(home)
	t.Chdir(away)
	p = boot(t, st.Handle(), fn)
	require.NoError(t, durable.Signal(p.ctx, "r", "go on", 1))
	r, err = p.start(t).Wait(p.ctx)
	return home, away, r, p, err
}

func TestAResumedRunGoesOnInItsDirectoryWhereverTheProcessStands(t *testing.T) {
	for name, c := range map[string]struct {
		dir   string
		first []string
	}{
		"that of the process":    {"", []string{"true"}},
		"a relative one":         {"sub", []string{"true"}},
		"after one that failed":  {"sub", []string{"false"}},
		"by a way through a dot": {"./sub/.", []string{"true"}},
	} {
		t.Run(name, func(t *testing.T) {
			home, away, r, p, err := resumedElsewhere(t, asked(c.dir, c.first...), func(string) {})
			require.NoError(t, err)
			want := filepath.Join(home, c.dir)
			require.Equal(t, want+"\n", r.Stdout.Text)
			require.FileExists(t, want+"/mark")
			require.NoFileExists(t, filepath.Join(away, c.dir, "mark"))
			require.NotContains(t, p.log.String(), "is not as it was", "nothing about its place has changed")
		})
	}
}

func TestADirectoryThatIsGoneIsNotReplacedByTheOneTheProcessStandsIn(t *testing.T) {
	home, away, _, _, err := resumedElsewhere(t, asked("sub", "true"), func(home string) {
		require.NoError(t, os.Remove(home+"/sub"))
	})
	var missing *shell.DirError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, home+"/sub", missing.Dir)
	require.ErrorContains(t, err, "does not exist any more, and the command was not run anywhere else. Recreate it, or name another one in Workspace.Dir, then `durable resume r`")
	require.NoFileExists(t, away+"/sub/mark")
}

func TestACommandThatWasInterruptedRunsAgainWhereItRan(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, dir := range []string{"/home", "/away"} {
		require.NoError(t, os.Mkdir(base+dir, 0o700))
	}
	fn := func(ctx context.Context) (shell.Result, error) {
		ws := &shell.Workspace{}
		return ws.Run(ctx, "build", "sh", "-c", "if test -e "+base+"/half; then pwd; else touch "+base+"/half; sleep 600; fi")
	}
	st := memory.Open()
	t.Chdir(base + "/home")
	p := boot(t, st.Handle(), fn)
	p.start(t)
	eventually(t, "half of it is done", func() bool { _, err := os.Stat(base + "/half"); return err == nil })
	require.NoError(t, p.Close())
	t.Chdir(base + "/away")
	p = boot(t, st.Handle(), fn)
	r, err := p.start(t).Wait(p.ctx)
	require.NoError(t, err)
	require.Equal(t, base+"/home\n", r.Stdout.Text)
}
