package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"
)

// Killer starts a program until it ends on its own, and kills it before that at
// random moments.
type Killer struct {
	Role string   // of the program
	Args []string // for it
	Rand *rand.Rand

	// Book is the path of the book that the program writes its acts in. Its
	// growth sets the pace, so that the kills spread over the whole work however
	// fast the machine is.
	Book string
	// Left says how many lines the program still has to write.
	Left func() (int, error)
	// Killed is called after each kill, when the program is gone.
	Killed func() error
}

// life is how long one life of a program may last.
const life = 6 * Patience

// Run kills the program up to a number of times. It returns how often it did once a
// life of the program has ended successfully.
func (k *Killer) Run(ctx context.Context, kills int) (done int, err error) {
	for {
		was, err := k.live(ctx, kills-done)
		if err != nil || !was {
			return done, err
		}
		done++
		if err := k.Killed(); err != nil {
			return done, err
		}
	}
}

// live runs the program once, and reports whether it was killed.
func (k *Killer) live(ctx context.Context, kills int) (wasKilled bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, life)
	defer cancel()
	moment, err := k.moment(kills)
	if err != nil {
		return false, err
	}
	var mu sync.Mutex
	var said []string
	p, err := Start(ctx, k.Role, func(line string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, line)
	}, k.Args...)
	if err != nil {
		return false, err
	}
	defer p.Stop()
	if moment != nil {
		came, err := moment(ctx, p.Done())
		if err != nil {
			return false, err
		}
		if came {
			if killed, err := p.Kill(); killed || err != nil {
				return killed, err
			}
		}
	}
	<-p.Done()
	if p.err != nil {
		mu.Lock()
		defer mu.Unlock()
		return false, fmt.Errorf("the program failed: %w\n%s", p.err, strings.Join(said, "\n"))
	}
	return false, nil
}

// A moment waits until it is time to kill, and reports false if the program ended
// first.
type moment func(ctx context.Context, ended <-chan struct{}) (bool, error)

// moment picks the next moment, or nil when no kill is left: sometimes during
// the start, when the store is opened and runs are recovered, else once a random
// number of lines has been written.
func (k *Killer) moment(kills int) (moment, error) {
	if kills == 0 {
		return nil, nil
	}
	if k.Rand.IntN(4) == 0 {
		return after(time.Duration(k.Rand.IntN(60_000)) * time.Microsecond), nil
	}
	info, err := os.Stat(k.Book)
	if err != nil {
		return nil, err
	}
	left, err := k.Left()
	if err != nil {
		return nil, err
	}
	lines := 1 + k.Rand.IntN(max(1, 3*left/(2*(kills+1))))
	then := after(time.Duration(k.Rand.IntN(2_000)) * time.Microsecond)
	return func(ctx context.Context, ended <-chan struct{}) (bool, error) {
		came, err := grown(ctx, k.Book, info.Size(), lines, ended)
		if !came || err != nil {
			return false, err
		}
		return then(ctx, ended)
	}, nil
}

func after(d time.Duration) moment {
	return func(ctx context.Context, ended <-chan struct{}) (bool, error) {
		select {
		case <-ended:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-time.After(d):
			return true, nil
		}
	}
}

// grown waits until the book has n lines beyond offset.
func grown(ctx context.Context, path string, offset int64, lines int, ended <-chan struct{}) (bool, error) {
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
		if lines -= bytes.Count(news, []byte("\n")); lines <= 0 {
			return true, nil
		}
		if came, err := look(ctx, ended); !came || err != nil {
			return false, err
		}
	}
}
