package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/client"
)

// A story is played with the same commands that a person would type.
type story struct {
	out  io.Writer
	dir  string
	self string // the program, as it is typed
}

// patience is how long any one act of the story may take.
const patience = 2 * time.Minute

const (
	id      = "greeter-1"
	version = "v1.0.0"
	flaky   = 2 // attempts of the test that fail
)

func play(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "holdfast-pipeline-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &story{out: out, dir: dir}
	if s.self, err = os.Executable(); err != nil {
		return err
	}
	module := filepath.Join(dir, "greeter")
	if err := writeSample(module); err != nil {
		return err
	}
	input, err := json.Marshal(Release{Module: module, Version: version, Publish: filepath.Join(dir, "published")})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "release.json"), input, 0o600); err != nil {
		return err
	}
	fmt.Fprint(out, "A Go module is released. Its test is flaky; somebody presses Ctrl-C, goes on later, and approves in the browser.\n\n")
	resume, err := s.interrupted(ctx)
	if err != nil {
		return err
	}
	if err := s.resumed(ctx, resume); err != nil {
		return err
	}
	return s.check(ctx)
}

// interrupted starts the release and interrupts it between two attempts of the
// test. It returns the printed command for going on.
func (s *story) interrupted(ctx context.Context) (string, error) {
	p, err := s.start(ctx, s.self+" durable run release --id "+id+" --input @release.json")
	if err != nil {
		return "", err
	}
	defer p.kill()
	if _, err := p.until("attempt 2 of 5"); err != nil {
		return "", err
	}
	fmt.Fprintln(s.out, "^C")
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		return "", err
	}
	const before = "Session interrupted. Resume with: "
	line, err := p.until(before)
	if err != nil {
		return "", err
	}
	var exit *exec.ExitError
	if err := p.wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		return "", fmt.Errorf("an interrupted release ends with 130, not with %w", err)
	}
	_, command, _ := strings.Cut(line, before)
	return command, nil
}

// resumed continues with the command that was printed, and approves over HTTP, as the
// button in the browser does.
func (s *story) resumed(ctx context.Context, command string) error {
	fmt.Fprintln(s.out)
	p, err := s.start(ctx, command)
	if err != nil {
		return err
	}
	defer p.kill()
	page, err := p.until("Watch and approve: ")
	if err != nil {
		return err
	}
	if _, err := p.until("attempt 3 of 5"); err != nil {
		return err
	}
	if _, err := p.until("? Publish"); err != nil {
		return err
	}
	_, url, _ := strings.Cut(page, ": ")
	c, err := client.New(url, client.Options{})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "(in the browser, at %s/runs/%s: Approve)\n", url, id)
	if _, err := c.Approve(ctx, id, "", ""); err != nil {
		return err
	}
	if _, err := p.until(id + " completed"); err != nil {
		return err
	}
	return p.wait()
}

// check verifies what was published, and how often each command ran.
func (s *story) check(ctx context.Context) error {
	file := filepath.Join(s.dir, "published", "greeter-"+version)
	said, err := exec.CommandContext(ctx, file).Output()
	if err != nil {
		return fmt.Errorf("what was published does not run: %w", err)
	}
	runs, err := os.ReadFile(filepath.Join(s.dir, "greeter", "flaky.txt"))
	if err != nil {
		return err
	}
	if string(said) != "Hello, world!\n" || string(runs) != fmt.Sprint(flaky+1) {
		return fmt.Errorf("the published program says %q and its test ran %s times", said, runs)
	}
	fmt.Fprintf(s.out, "\n$ %s\n%sThe test ran %s times in all: no attempt was made twice, and none was lost.\n", filepath.Join("published", "greeter-"+version), said, runs)
	return nil
}

// A process is one command of the story; its output is shown as it comes.
type process struct {
	cmd  *exec.Cmd
	said chan string
	once sync.Once
	err  error
	done chan struct{}
}

// start runs a command line through the shell, as if it were pasted.
func (s *story) start(ctx context.Context, command string) (*process, error) {
	fmt.Fprintf(s.out, "$ %s\n", s.plain(command))
	cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+command)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), fmt.Sprint("FLAKY=", flaky), "PIPELINE_HTTP=127.0.0.1:0")
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, r.Close(), w.Close())
	}
	w.Close()
	p := &process{cmd: cmd, said: make(chan string, 1024), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer close(p.said)
		defer r.Close()
		for lines := bufio.NewScanner(r); lines.Scan(); {
			fmt.Fprintln(s.out, s.plain(lines.Text()))
			p.said <- lines.Text()
		}
		p.err = cmd.Wait()
	}()
	return p, nil
}

// plain shortens what differs between runs of the story.
func (s *story) plain(line string) string {
	return strings.ReplaceAll(strings.ReplaceAll(line, s.self, "pipeline"), s.dir+"/", "")
}

// until returns the next line that contains some words.
func (p *process) until(words string) (string, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		select {
		case line, ok := <-p.said:
			switch {
			case !ok:
				return "", fmt.Errorf("it ended without saying %q", words)
			case strings.Contains(line, words):
				return line, nil
			}
		case <-late.C:
			return "", fmt.Errorf("it did not say %q within %s", words, patience)
		}
	}
}

// wait returns how the process ended.
func (p *process) wait() error {
	for range p.said { // show the rest of its output
	}
	<-p.done
	return p.err
}

// kill ends the process if it has not ended.
func (p *process) kill() {
	p.once.Do(func() {
		_ = p.cmd.Process.Kill()
		_ = p.wait()
	})
}
