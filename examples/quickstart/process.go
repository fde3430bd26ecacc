package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// process is another process of this very program, in a role.
type process struct {
	cmd   *exec.Cmd
	alive io.WriteCloser // closing it tells the child to end
	lines chan string    // of its stdout; closed at its end
	done  chan struct{}
	err   error // why it ended; read after done is closed
}

// start runs this program again in a role. What the child logs goes to the
// timeline, what it prints to lines.
func start(ctx context.Context, tl *timeline, role string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	alive, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, alive: alive, lines: make(chan string, 16), done: make(chan struct{})}
	var readers sync.WaitGroup
	readers.Go(func() {
		defer close(p.lines)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			p.lines <- s.Text()
		}
	})
	readers.Go(func() {
		for s := bufio.NewScanner(stderr); s.Scan(); {
			tl.say(role, s.Text())
		}
	})
	go func() {
		readers.Wait() // Wait closes the pipes, so they are read out first
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// line returns the next line the process prints.
func (p *process) line(limit time.Duration) (string, error) {
	select {
	case l, ok := <-p.lines:
		if !ok {
			return "", errors.New("it ended")
		}
		return l, nil
	case <-time.After(limit):
		return "", fmt.Errorf("nothing heard for %s", limit)
	}
}

// wait returns how the process ended.
func (p *process) wait(limit time.Duration) error {
	select {
	case <-p.done:
		return p.err
	case <-time.After(limit):
		return fmt.Errorf("still running after %s", limit)
	}
}

// stop ends the process if it still runs.
func (p *process) stop() {
	p.alive.Close()
	if p.wait(time.Second) != nil {
		_ = p.cmd.Process.Kill() // it may already have ended
	}
	<-p.done
}

// exitWithParent ends a child whose parent is gone, however the parent ended: its end
// of the pipe closes with it.
func exitWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

// timeline prints what happens, when, and to whom.
type timeline struct {
	mu    sync.Mutex
	out   io.Writer
	began time.Time
}

func newTimeline(out io.Writer) *timeline { return &timeline{out: out, began: time.Now()} }

func (t *timeline) say(who, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, "%5.2fs  %-4s  %s\n", time.Since(t.began).Seconds(), who, what)
}
