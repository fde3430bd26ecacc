package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// bin has the programs under test: shop, which mounts the commands, and durable.
var bin string

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	pgtest.Parallel(4) // most of their time tests wait for the programs that they run
	dir, err := os.MkdirTemp("", "durable-cli-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = dir
	for name, pkg := range map[string]string{"shop": "./internal/shop", "durable": "../cmd/durable"} {
		if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, name), pkg).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building %s: %v\n%s", name, err, out)
			return 1
		}
	}
	return m.Run()
}

// A desk is where a person sits: a directory with a store, a shell, and programs.
type desk struct {
	t   *testing.T
	dir string
	env []string
	as  func(*exec.Cmd) // lets what sh runs be another user; nil: it is that of the tests
}

func newDesk(t *testing.T, env ...string) *desk {
	d := &desk{t: t, dir: t.TempDir()}
	d.env = append(d.env,
		"PATH="+bin+":"+os.Getenv("PATH"), "HOME="+d.dir, "XDG_CONFIG_HOME="+filepath.Join(d.dir, "config"),
		"TERM=xterm", "USER=ada", "SHOP_JOURNAL="+filepath.Join(d.dir, "journal"), "TZ=UTC", "LANG=C.UTF-8",
	)
	d.env = append(d.env, env...)
	return d
}

// with returns the same desk with more in the environment.
func (d *desk) with(env ...string) *desk {
	return &desk{d.t, d.dir, append(append([]string{}, d.env...), env...), d.as}
}

// answer is what a command printed, and how it ended.
type answer struct {
	out, err string
	code     int
}

// sh runs a line in a shell, with pipes.
func (d *desk) sh(line string) answer {
	d.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env = d.dir, d.env
	if d.as != nil {
		d.as(cmd)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second // what it started may hold the pipes
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && ctx.Err() == nil && !errors.As(err, &exit) {
		require.NoError(d.t, err, line)
	}
	require.NoError(d.t, ctx.Err(), "%s did not end; it printed:\n%s%s", line, &out, &errs)
	return answer{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// ok is sh for what must succeed.
func (d *desk) ok(line string) answer {
	d.t.Helper()
	a := d.sh(line)
	require.Zero(d.t, a.code, "%s\n%s%s", line, a.out, a.err)
	return a
}

// journal lists the step bodies that were run.
func (d *desk) journal() []string {
	b, err := os.ReadFile(filepath.Join(d.dir, "journal"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(d.t, err)
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// until waits until a step body has begun.
func (d *desk) until(step string) {
	d.t.Helper()
	require.Eventually(d.t, func() bool { return slices.Contains(d.journal(), step) }, 30*time.Second, 5*time.Millisecond, "%s never began", step)
}

// A screen is a command in a real terminal.
type screen struct {
	t    *testing.T
	cmd  *exec.Cmd
	tty  *os.File
	read chan string
	seen string
	done chan struct{}
}

// terminal runs a line in a terminal of 100 columns.
func (d *desk) terminal(line string) *screen {
	d.t.Helper()
	cmd := exec.Command("sh", "-c", "exec "+line)
	cmd.Dir, cmd.Env = d.dir, d.env
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 100})
	require.NoError(d.t, err)
	s := &screen{t: d.t, cmd: cmd, tty: tty, read: make(chan string, 1024), done: make(chan struct{})}
	go func() {
		defer close(s.read)
		b := make([]byte, 4096)
		for {
			n, err := tty.Read(b)
			if n > 0 {
				s.read <- string(b[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	d.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = tty.Close()
		for range s.read {
		}
	})
	return s
}

// until reads until the terminal shows text.
func (s *screen) until(text string) {
	s.t.Helper()
	after := time.After(30 * time.Second)
	for !strings.Contains(plain(s.seen), text) {
		select {
		case more, open := <-s.read:
			require.True(s.t, open, "the command ended without showing %q; it showed:\n%s", text, plain(s.seen))
			s.seen += more
		case <-after:
			require.Failf(s.t, "not shown", "%q; it showed:\n%s", text, plain(s.seen))
		}
	}
}

// press types keys; ctrlC is one.
func (s *screen) press(keys string) {
	s.t.Helper()
	_, err := s.tty.WriteString(keys)
	require.NoError(s.t, err)
}

const ctrlC = "\x03"

// pressAgain presses ctrlC a second time, no faster than a person does: the same
// signal that comes twice at once is told once.
func (s *screen) pressAgain() {
	s.t.Helper()
	time.Sleep(300 * time.Millisecond)
	s.press(ctrlC)
}

// end reads to the end and returns the exit code.
func (s *screen) end() int {
	s.t.Helper()
	after := time.After(30 * time.Second)
	for {
		select {
		case more, open := <-s.read:
			if s.seen += more; open {
				continue
			}
			return exitCode(s.t, s.cmd, func() string { return plain(s.seen) })
		case <-after:
			require.Failf(s.t, "it did not end", "it showed:\n%s", plain(s.seen))
		}
	}
}

// start runs a command in the background with pipes, for signals; its standard
// output and error go to files.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	log string
}

func (d *desk) start(line string) *process {
	d.t.Helper()
	f, err := os.CreateTemp(d.dir, "log")
	require.NoError(d.t, err)
	defer f.Close()
	cmd := exec.Command("sh", "-c", "exec "+line)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = d.dir, d.env, f, f
	require.NoError(d.t, cmd.Start())
	p := &process{d.t, cmd, f.Name()}
	d.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return p
}

func (p *process) text() string {
	b, err := os.ReadFile(p.log)
	require.NoError(p.t, err)
	return string(b)
}

// until waits until the process has printed text.
func (p *process) until(text string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return strings.Contains(p.text(), text) }, 30*time.Second, 5*time.Millisecond, "%q in:\n%s", text, &lazy{p})
}

type lazy struct{ p *process }

func (l *lazy) String() string { return l.p.text() }

func (p *process) signal(sig syscall.Signal) { require.NoError(p.t, p.cmd.Process.Signal(sig)) }

// wait waits for the end and returns the exit code, -1 when it was killed.
func (p *process) wait() int {
	p.t.Helper()
	return exitCode(p.t, p.cmd, p.text)
}

// exitCode waits for the end of a command. One that does not come to it is asked
// what it is doing (SIGQUIT) before the test fails.
func exitCode(t *testing.T, cmd *exec.Cmd, text func() string) int {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		<-ended
		require.Failf(t, "it did not end", "%s; it printed:\n%s", cmd, text())
	}
	return cmd.ProcessState.ExitCode()
}

var (
	escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]|\x1b\\][^\x07]*\x07")
	moments = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\b\d\d:\d\d:\d\d\b`)
	lengths = regexp.MustCompile(`\b\d+(\.\d+)?(ms|s|m\d+s)\b|\b\d+(\.\d+)? (µs|ms|s|min)\b`)
)

// plain takes away what only a terminal needs.
func plain(s string) string {
	return strings.ReplaceAll(escapes.ReplaceAllString(s, ""), "\r", "")
}

// timeless makes two prints of the same story equal.
func timeless(s string) string {
	return lengths.ReplaceAllString(moments.ReplaceAllString(s, "TIME"), "TOOK")
}
