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

// command is one command that runs.
type command struct {
	argv   []string
	env    []string
	dir    string
	grace  time.Duration
	limit  int
	output io.Writer // gets what it writes while it runs; nil: nobody does
	signal string    // that has ended it
	unseen error     // why output did not get all
}

// The bounds of an end.
const (
	// shutdownGrace is what is left of the time that durable gives a body whose
	// engine closes.
	shutdownGrace = 500 * time.Millisecond
	// drainTime is how long outputs are read on when the whole group is gone: by
	// then only a process that has left the group can hold them open.
	drainTime = time.Second
)

// run starts the command and waits for its end, or ends it when ctx does. The
// Result has what was written also beside an error.
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
	done, err := start(cmd)
	if err != nil {
		out.abandon()
		return Result{}, err
	}
	out.read()
	var stopped error
	select {
	case <-done:
	case <-ctx.Done():
		to.release()
		killed := c.end(cmd, done, c.graceFor(ctx))
		stopped = stoppedBy(ctx, c.argv, killed)
	}
	// What it has left running in its group must not go on beside the next step.
	killGroup(cmd.Process.Pid)
	to.release()
	out.wait()
	r := Result{ExitCode: cmd.ProcessState.ExitCode(), Stdout: stdout.output(), Stderr: stderr.output(), Took: time.Since(began)}
	c.signal = signalOf(cmd.ProcessState)
	return r, stopped
}

func (c *command) graceFor(ctx context.Context) time.Duration {
	if errors.Is(context.Cause(ctx), durable.ErrShutdown) {
		return min(c.grace, shutdownGrace)
	}
	return c.grace
}

// end asks the group to stop and then kills it. It returns when the command has
// ended, and whether it had to be killed.
func (c *command) end(cmd *exec.Cmd, done <-chan struct{}, grace time.Duration) (killed bool) {
	stopGroup(cmd.Process.Pid)
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-done:
		return false
	case <-t.C:
	}
	killGroup(cmd.Process.Pid)
	<-done
	return true
}

// start starts a command; done is closed when it has ended. Its thread is kept
// for it as long as it runs: where the system ends a child whose parent has died
// (Linux), it is the thread that counts as the parent.
func start(cmd *exec.Cmd) (done chan struct{}, err error) {
	done = make(chan struct{})
	began := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		began <- err
		if err == nil {
			_ = cmd.Wait() // the state of the process says it
			close(done)
		}
	}()
	return done, <-began
}

// outputs are the pipes of a command. They are ours and not exec's, whose Wait
// would wait for processes that the command has left behind.
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

// read begins to read, once the command has its ends.
func (o *outputs) read() {
	for i, r := range o.reads {
		_ = o.writes[i].Close()
		o.work.Go(func() { _, _ = io.Copy(o.to[i], r) })
	}
}

// wait returns when all was read, or nobody of the group writes any more.
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
