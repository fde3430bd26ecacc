package shell

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// command is one running command.
type command struct {
	argv   []string
	env    []string
	dir    string
	grace  time.Duration
	limit  int
	mark   string    // that its processes carry (markName); empty: none
	output io.Writer // gets the output while it runs; nil: not used
	signal string    // that ended it
	unseen error     // why output did not get everything
}

// The time limits for ending a command.
const (
	// shutdownGrace is the part of the time that durable gives a body whose engine
	// closes.
	shutdownGrace = 500 * time.Millisecond
	// drainTime is how long outputs are still read when the whole group is gone: by
	// then only a process that has left the group can hold them open.
	drainTime = time.Second
	// killTime is how long the system may take to end a killed process. A process
	// that hangs in the kernel is left there.
	killTime = 2 * time.Second
)

// run starts the command and waits for its end, or ends it when ctx ends. The Result
// has the output even with an error.
func (c *command) run(ctx context.Context) (Result, error) {
	to := newStream(c.output)
	defer func() { c.unseen = to.finish(ctx.Done()) }()
	stdout, stderr := &capture{limit: c.limit, to: to}, &capture{limit: c.limit, to: to}
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	cmd.Dir, cmd.Env = c.dir, c.env
	ownGroup(cmd)
	out, err := newOutputs(cmd, stdout, stderr)
	if err != nil {
		return Result{}, err
	}
	if err := ctx.Err(); err != nil {
		out.abandon()
		return Result{}, stoppedBy(ctx, c.argv, false)
	}
	began := time.Now()
	p, err := start(cmd)
	if err != nil {
		out.abandon()
		return Result{}, err
	}
	out.read()
	var stopped error
	select {
	case <-p.done:
	case <-ctx.Done():
		to.release()
		killed := c.end(p, c.graceFor(ctx))
		stopped = stoppedBy(ctx, c.argv, killed)
	}
	to.release()
	out.wait()
	r := Result{ExitCode: -1, Stdout: stdout.output(), Stderr: stderr.output(), Took: time.Since(began)}
	select {
	case <-p.done:
		r.ExitCode = cmd.ProcessState.ExitCode()
		c.signal = signalOf(cmd.ProcessState)
	default: // it was killed, and hangs in the kernel
	}
	return r, stopped
}

func (c *command) graceFor(ctx context.Context) time.Duration {
	if errors.Is(context.Cause(ctx), durable.ErrShutdown) {
		return min(c.grace, shutdownGrace)
	}
	return c.grace
}

// end asks the command and its group to stop, and then kills them, and whatever else
// carries its mark. It returns when the command has ended, or cannot be ended, and
// reports whether it had to be killed.
func (c *command) end(p *child, grace time.Duration) (killed bool) {
	p.signal(stopChild)
	if killed = !p.ended(grace); killed {
		p.signal(killChild)
	}
	if c.mark != "" {
		killMarked([]string{markName + "=" + c.mark})
	}
	if killed {
		p.ended(killTime)
	}
	return killed
}

// child is a started command.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended

	mu     sync.Mutex
	reaped bool // its process id, and that of its group, may be reused
}

// start starts a command and keeps the thread for it as long as it runs: where the
// system ends a child whose parent has died (Linux), the thread counts as the parent.
func start(cmd *exec.Cmd) (*child, error) {
	p := &child{cmd: cmd, done: make(chan struct{})}
	began := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		began <- err
		if err == nil {
			p.wait()
			close(p.done)
		}
	}()
	return p, <-began
}

// wait waits for the end of the command, and kills what it has left running in its
// group, which must not go on during the next step.
func (p *child) wait() {
	if !awaitExit(p.cmd.Process.Pid) {
		_ = p.cmd.Wait() // the process state has the outcome
		p.mu.Lock()
		defer p.mu.Unlock()
		p.reaped = true
		killGroup(p.cmd.Process.Pid)
		return
	}
	// Until it is reaped, the id of its group cannot be reused.
	p.mu.Lock()
	defer p.mu.Unlock()
	killGroup(p.cmd.Process.Pid)
	_ = p.cmd.Wait()
	p.reaped = true
}

// signal sends a signal to the command and its group, unless it was reaped.
func (p *child) signal(send func(*os.Process)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		send(p.cmd.Process)
	}
}

// ended waits up to within for the end of the command, and reports whether it ended.
func (p *child) ended(within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-p.done:
		return true
	case <-t.C:
		return false
	}
}

// outputs are the pipes of a command. They are ours, not those of package exec,
// whose Wait would wait for processes that the command has left behind.
type outputs struct {
	reads, writes []*os.File
	to            []*capture
	work          sync.WaitGroup
}

func newOutputs(cmd *exec.Cmd, to ...*capture) (*outputs, error) {
	o := &outputs{to: to}
	for range to {
		r, w, err := os.Pipe()
		if err != nil {
			o.abandon()
			return nil, err
		}
		o.reads, o.writes = append(o.reads, r), append(o.writes, w)
	}
	cmd.Stdout, cmd.Stderr = o.writes[0], o.writes[1]
	return o, nil
}

// abandon closes everything, when nothing was started.
func (o *outputs) abandon() {
	for _, f := range append(o.reads, o.writes...) {
		_ = f.Close()
	}
}

// read starts reading, once the command has its ends of the pipes.
func (o *outputs) read() {
	for i, r := range o.reads {
		_ = o.writes[i].Close()
		o.work.Go(func() { _, _ = io.Copy(o.to[i], r) })
	}
}

// wait returns when everything was read, or when no process of the group writes any
// more.
func (o *outputs) wait() {
	done := make(chan struct{})
	go func() {
		o.work.Wait()
		close(done)
	}()
	t := time.NewTimer(drainTime)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
	for _, r := range o.reads {
		_ = r.Close()
	}
	<-done
}
