package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Process is another process of this very program, in a role.
type Process struct {
	cmd   *exec.Cmd
	alive io.WriteCloser // closing it tells the child to end
	lines chan string    // of its stdout; closed at its end
	done  chan struct{}
	err   error // why it ended; read after done is closed
}

// Start runs this program again in a role. Each line that the child logs is passed to
// heard; what it prints is for Line.
func Start(ctx context.Context, role string, heard func(line string), args ...string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	// A child that hangs must say where: Go programs answer SIGQUIT with their stacks.
	// Where there are no signals it is killed after the delay.
	cmd.Cancel = func() error {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return cmd.Process.Signal(syscall.SIGQUIT)
		}
		return cmd.Process.Kill()
	}
	cmd.WaitDelay = 5 * time.Second
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
	p := &Process{cmd: cmd, alive: alive, lines: make(chan string, 64), done: make(chan struct{})}
	var readers sync.WaitGroup
	readers.Go(func() {
		defer close(p.lines)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			p.lines <- s.Text()
		}
	})
	readers.Go(func() {
		for s := bufio.NewScanner(stderr); s.Scan(); {
			heard(s.Text())
		}
	})
	go func() {
		readers.Wait() // cmd.Wait closes the pipes, so they are read out first
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Pid returns the id of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Line returns the next line the process prints.
func (p *Process) Line() (string, error) {
	select {
	case l, ok := <-p.lines:
		if !ok {
			return "", errors.New("it ended")
		}
		return l, nil
	case <-time.After(Patience):
		return "", fmt.Errorf("nothing heard for %s", Patience)
	}
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns how the process ended.
func (p *Process) Wait() error {
	select {
	case <-p.done:
		return p.err
	case <-time.After(Patience):
		return fmt.Errorf("still running after %s", Patience)
	}
}

// Kill ends the process as a power cut would: no handler runs, nothing is flushed. It
// reports whether the process was still alive.
func (p *Process) Kill() (bool, error) {
	err := p.cmd.Process.Kill()
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return false, err
	}
	<-p.done
	return err == nil && !p.cmd.ProcessState.Success(), nil
}

// Stop ends the process if it still runs, gracefully if it can.
func (p *Process) Stop() {
	p.alive.Close()
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		_, _ = p.Kill()
	}
}

// StartServing starts this program again in a role, with its log on the timeline, and
// returns once it prints the line that says that it is up.
func StartServing(ctx context.Context, tl *Timeline, who, role, up string, args ...string) (*Process, error) {
	p, err := Start(ctx, role, func(line string) { tl.Say(who, line) }, args...)
	if err != nil {
		return nil, err
	}
	for {
		switch line, err := p.Line(); {
		case err != nil:
			p.Stop()
			return nil, fmt.Errorf("%s did not come up: %w", who, err)
		case line == up:
			return p, nil
		default:
			tl.Say(who, line)
		}
	}
}
