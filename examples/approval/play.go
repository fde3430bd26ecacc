package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/examples/internal/demo"
)

// stage is where the story plays: a directory, a timeline, and the view of an observer.
type stage struct {
	dir    string
	tl     *demo.Timeline
	office *Office
	served int // processes that served so far
}

// play plays the story in processes of this program, with the very commands a
// person would give, and checks what was done.
func play(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "holdfast-approval-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	office, err := openOffice(ctx, dir)
	if err != nil {
		return err
	}
	defer office.Close()
	s := &stage{dir: dir, tl: demo.NewTimeline(out, 7), office: office}

	fmt.Fprint(out, "A release is built, tried on staging, and must not go to production until a person says so.\n\n")
	last, err := s.approvedThoughKilled(ctx)
	if err != nil {
		return err
	}
	defer last.Stop()
	if err := s.rejected(ctx); err != nil {
		return err
	}
	last.Stop()
	if err := s.check(); err != nil {
		return err
	}
	fmt.Fprint(out, "\nTwo processes were killed while the question was open, and none was alive when it was answered:\nnothing lost, nothing done twice.\n")
	return nil
}

// approvedThoughKilled is the first act. It returns the process that serves in
// the end.
func (s *stage) approvedThoughKilled(ctx context.Context) (*demo.Process, error) {
	const id = "shop-1.4.2"
	first, err := s.serve(ctx)
	if err != nil {
		return nil, err
	}
	defer first.Stop()
	if err := s.command(ctx, "you", "start", "shop", "1.4.2"); err != nil {
		return nil, err
	}
	if err := s.asked(ctx, id); err != nil {
		return nil, err
	}
	if err := s.kill(first); err != nil {
		return nil, err
	}

	second, err := s.serve(ctx)
	if err != nil {
		return nil, err
	}
	defer second.Stop()
	if err := s.kill(second); err != nil {
		return nil, err
	}

	s.tl.Say("", "(days go by, and no process is alive)")
	if err := s.command(ctx, "ada", "approve", id); err != nil {
		return nil, err
	}
	third, err := s.serve(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.ended(ctx, id, true); err != nil {
		third.Stop()
		return nil, err
	}
	return third, nil
}

// rejected is the second act: the answer reaches a living process.
func (s *stage) rejected(ctx context.Context) error {
	const id = "shop-1.5.0"
	if err := s.command(ctx, "you", "start", "shop", "1.5.0"); err != nil {
		return err
	}
	if err := s.asked(ctx, id); err != nil {
		return err
	}
	if err := s.command(ctx, "ada", "reject", id, "not on a Friday"); err != nil {
		return err
	}
	return s.ended(ctx, id, false)
}

// serve starts a process that executes deployments, and returns when it is up.
func (s *stage) serve(ctx context.Context) (*demo.Process, error) {
	s.served++
	return demo.StartServing(ctx, s.tl, fmt.Sprintf("serve %d", s.served), "serve", serving, "-dir", s.dir, "serve")
}

func (s *stage) kill(p *demo.Process) error {
	s.tl.Say("you", fmt.Sprintf("kill -9 %d", p.Pid()))
	switch lived, err := p.Kill(); {
	case err != nil:
		return err
	case !lived:
		return errors.New("the process ended by itself before it could be killed")
	}
	return nil
}

// command runs one of the short commands in its own process.
func (s *stage) command(ctx context.Context, who string, args ...string) error {
	p, err := demo.Start(ctx, "command", func(line string) { s.tl.Say(who, line) }, append([]string{"-dir", s.dir, "-as", who}, args...)...)
	if err != nil {
		return err
	}
	defer p.Stop()
	if err := p.Wait(); err != nil {
		return fmt.Errorf("%s %q: %w", who, args, err)
	}
	return nil
}

// asked waits until a deployment waits for a person.
func (s *stage) asked(ctx context.Context, id string) error {
	for deadline := time.Now().Add(demo.Patience); ; time.Sleep(5 * time.Millisecond) {
		questions, err := s.office.Questions(ctx)
		if err != nil {
			return err
		}
		for _, q := range questions {
			if q.ID == id {
				s.tl.Say("", "(asks) "+q.Text)
				return nil
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("deployment %s did not ask anybody within %s", id, demo.Patience)
		}
	}
}

// ended waits for a deployment's end.
func (s *stage) ended(ctx context.Context, id string, deployed bool) error {
	ctx, cancel := context.WithTimeout(ctx, demo.Patience)
	defer cancel()
	r, err := s.office.Result(ctx, id)
	if err != nil {
		return err
	}
	if r.Deployed != deployed {
		return fmt.Errorf("deployment %s ended with %+v", id, r)
	}
	if deployed {
		s.tl.Say("", fmt.Sprintf("(done) %s is in production, as %s decided", r.Image, r.Decision.By))
	} else {
		s.tl.Say("", fmt.Sprintf("(done) %s stays out of production: %s said %q", r.Image, r.Decision.By, r.Decision.Reason))
	}
	return nil
}

// check compares the site's own book and its production with what must have
// happened.
func (s *stage) check() error {
	acts, err := os.ReadFile(filepath.Join(s.dir, actsName))
	if err != nil {
		return err
	}
	const want = "build shop:1.4.2\ninstall shop:1.4.2 staging\ninstall shop:1.4.2 production\n" +
		"build shop:1.5.0\ninstall shop:1.5.0 staging\nremove shop staging\n"
	if string(acts) != want {
		return fmt.Errorf("the site's book reads\n%s; expected\n%s", acts, want)
	}
	running, err := os.ReadFile(filepath.Join(s.dir, "production", "shop"))
	if err != nil {
		return err
	}
	if string(running) != "shop:1.4.2" {
		return fmt.Errorf("production runs %s, not shop:1.4.2", running)
	}
	return nil
}
