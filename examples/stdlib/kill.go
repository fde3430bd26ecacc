package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// killer starts the program until it ends on its own, and kills it before that a
// given number of times.
type killer struct {
	dir, root string
	total     int // packages there are
	kills     int // still to be done
	rng       *rand.Rand
	journal   *Journal
}

// patience is how long one life of the program may last.
const patience = 3 * time.Minute

// run returns when a child has ended on its own.
func (k *killer) run(ctx context.Context) error {
	for n := 1; ; n++ {
		was, err := k.life(ctx)
		if err != nil || !was {
			return err
		}
		k.kills--
		if err := k.journal.Write(killed, strconv.Itoa(n)); err != nil {
			return err
		}
	}
}

// life runs one child, and reports whether it was killed.
func (k *killer) life(ctx context.Context) (wasKilled bool, err error) {
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(limited, self, k.dir, k.root)
	// A child that hangs must say where: Go programs answer SIGQUIT with their
	// stacks. Where there are no signals it is killed after the delay.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(os.Environ(), roleVariable+"="+roleApp)
	var said bytes.Buffer
	cmd.Stderr = &said
	alive, err := cmd.StdinPipe() // its end shows the child that this process is gone
	if err != nil {
		return false, err
	}
	defer alive.Close()
	moment, err := k.moment()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if moment != nil {
		came, err := moment(ctx, ended)
		if err != nil {
			_ = cmd.Process.Kill() // it may have ended already
			<-ended
			return false, err
		}
		if came {
			if err := cmd.Process.Kill(); err == nil {
				<-ended
				return true, nil
			}
		}
	}
	if err := <-ended; err != nil {
		return false, fmt.Errorf("the program failed: %w\n%s", err, said.Bytes())
	}
	return false, nil
}

// A moment waits until it is time to kill. It reports false if the child ended first;
// its result is then still in the channel.
type moment func(ctx context.Context, ended chan error) (bool, error)

// moment picks the next moment, or nil when no kill is left: sometimes during
// the start, when the store is opened and runs are recovered, else once a random
// number of bodies has begun, so that the kills spread over the whole work
// however fast the machine is.
func (k *killer) moment() (moment, error) {
	if k.kills == 0 {
		return nil, nil
	}
	if k.rng.IntN(4) == 0 {
		return after(time.Duration(k.rng.IntN(60_000)) * time.Microsecond), nil
	}
	path := filepath.Join(k.dir, journalName)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := tally(string(text))
	if err != nil {
		return nil, err
	}
	left := k.total - t.Packages
	bodies := 1 + k.rng.IntN(max(1, 3*left/(2*(k.kills+1))))
	then := after(time.Duration(k.rng.IntN(2_000)) * time.Microsecond)
	return func(ctx context.Context, ended chan error) (bool, error) {
		came, err := grown(ctx, path, int64(len(text)), bodies, ended)
		if !came || err != nil {
			return false, err
		}
		return then(ctx, ended)
	}, nil
}

func after(d time.Duration) moment {
	return func(ctx context.Context, ended chan error) (bool, error) {
		select {
		case err := <-ended:
			ended <- err
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(d):
			return true, nil
		}
	}
}

// grown waits until the journal shows n more bodies beyond offset.
func grown(ctx context.Context, path string, offset int64, bodies int, ended chan error) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return false, err
	}
	look := after(500 * time.Microsecond)
	for {
		news, err := io.ReadAll(f)
		if err != nil {
			return false, err
		}
		// A line is one write, so none is cut in two.
		if bodies -= bytes.Count(news, []byte(begun+" ")); bodies <= 0 {
			return true, nil
		}
		if came, err := look(ctx, ended); !came || err != nil {
			return false, err
		}
	}
}
