package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// childEnv holds the orders of a child: this program, executed again by a case that
// needs a second process or one whose memory is unused.
const childEnv = "HOLDFAST_BENCH_CHILD"

// orders say what a child does, and on which database.
type orders struct {
	Role                 string // a key of roles
	Store, Mode, Address string
	Sleepers             sleepers      // of the role sleep
	Idle                 time.Duration // of the role idle
	Name                 string        // of a process, of the role processes
	Runs                 int           // at a time, of the role processes; of the roles cut off and recover
	Batch                int           // changes of a commit, of the role processes alike
	Window               time.Duration // that counts, of the role processes
	Profile              string        // a directory for a profile of its CPU time; empty: none
}

// role is what a child does, with the store of its orders.
type role func(ctx context.Context, o orders, s store.Store, in io.Reader, out io.Writer) error

// roles are the kinds of children. A child ends when its standard input does, so that
// it does not outlive its parent.
var roles = map[string]role{
	"signal":    signalChild,
	"processes": processesChild,

	"processes by hand": processesByHandChild,
	"processes alike":   processesAlikeChild,
	"signal by hand":    signalByHandChild,

	"asleep":  untilEOF(asleepChild),
	"live":    untilEOF(liveChild),
	"waiters": untilEOF(waitersChild),
	"sleep":   untilEOF(sleepChild),
	"queue":   untilEOF(queueChild),
	"idle":    untilEOF(idleChild),
	"cut off": untilEOF(cutOffChild),
	"recover": untilEOF(recoverChild),
}

// obey runs the orders of a child instead of the command.
func obey(ctx context.Context, env string, in io.Reader, out io.Writer) error {
	var o orders
	if err := json.Unmarshal([]byte(env), &o); err != nil {
		return fmt.Errorf("the orders in %s: %w", childEnv, err)
	}
	role := roles[o.Role]
	if role == nil {
		return fmt.Errorf("the orders in %s ask for %q, which is no role", childEnv, o.Role)
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	return profiled(o.Profile, o.Role, func() error {
		s, err := connect(o.Store, o.Mode, o.Address)
		if err != nil {
			return err
		}
		defer s.Close()
		return role(ctx, o, s, in, out)
	})
}

// child is a process that carries out orders. Its first failure is in err once
// ended is closed.
type child struct {
	in    io.WriteCloser
	ended chan struct{}
	err   error
	said  bytes.Buffer  // standard output, to be read once it has ended
	used  time.Duration // CPU time, once it has ended
}

// begin starts a child. It must be ended with end.
func begin(ctx context.Context, o orders) (*child, error) {
	o.Profile = profiles
	env, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{ended: make(chan struct{})}
	var complaint strings.Builder
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), childEnv+"="+string(env))
	cmd.Stdout, cmd.Stderr = &c.said, &complaint
	if c.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(c.ended)
		err := cmd.Wait()
		if state := cmd.ProcessState; state != nil {
			c.used = state.UserTime() + state.SystemTime()
			if !state.Exited() {
				err = &killedError{err}
			}
		}
		if err != nil {
			c.err = fmt.Errorf("the process for the role %s: %w: %s", o.Role, err, strings.TrimSpace(complaint.String()))
		}
	}()
	return c, nil
}

// killedError says that a child was killed.
type killedError struct{ err error }

func (k *killedError) Error() string { return k.err.Error() }

// end tells the child to end, waits for it, and returns its failure.
func (c *child) end() error {
	_ = c.in.Close() // fails only if the child has ended
	<-c.ended
	return c.err
}

// alone has orders carried out on a new database in a process of their own, waits for its end,
// and decodes what it has said.
func alone(ctx context.Context, t *target, o orders, said any) error {
	address, err := t.create(ctx)
	if err != nil {
		return err
	}
	o.Store, o.Mode, o.Address = t.name, t.mode, address
	_, err = o.carryOut(ctx, said)
	return err
}

// carryOut begins a child, waits for its end, and decodes what it has said; nil: it says nothing.
func (o orders) carryOut(ctx context.Context, said any) (*child, error) {
	c, err := begin(ctx, o)
	if err != nil {
		return nil, err
	}
	select {
	case <-c.ended:
	case <-ctx.Done():
	}
	if err := c.end(); err != nil {
		return nil, err
	}
	if said == nil {
		return c, nil
	}
	if err := json.Unmarshal(c.said.Bytes(), said); err != nil {
		return nil, fmt.Errorf("the process for the role %s said %q: %w", o.Role, c.said.String(), err)
	}
	return c, nil
}

// untilEOF makes a role of do, for which standard input has nothing: its context ends with that.
func untilEOF(do func(ctx context.Context, o orders, s store.Store, out io.Writer) error) role {
	return func(ctx context.Context, o orders, s store.Store, in io.Reader, out io.Writer) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			_, _ = io.Copy(io.Discard, in) // an end or an error ends us
			stop()
		}()
		return do(ctx, o, s, out)
	}
}
