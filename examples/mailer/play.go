package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/examples/internal/demo"
)

// workers is how many there are.
const workers = 2

// life is how long a demonstration may last: far longer than the rate makes it.
const life = 5 * time.Minute

// stage is what a demonstration plays on.
type stage struct {
	options
	dir    string
	tl     *demo.Timeline
	server *Server
	office *Office
	staff  [workers]*demo.Process
	kills  int // so far
	// triggered is the digest that was started by hand.
	triggered string
}

// play floods the queue, has the others send their mails, kills workers, and looks into the
// mail server's book.
func play(ctx context.Context, out io.Writer, o options) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, life, fmt.Errorf("not all mails were delivered within %s", life))
	defer cancel()
	s := &stage{options: o}
	if s.dir, err = os.MkdirTemp("", "holdfast-mailer-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	st, err := openStore(s.dir)
	if err != nil {
		return err
	}
	defer st.Close()
	if s.office, err = openOffice(ctx, st); err != nil {
		return err
	}
	defer s.office.eng.Close()
	if s.server, err = listen(ctx, o.seed); err != nil {
		return err
	}
	defer s.server.Close()
	defer func() {
		for _, w := range s.staff {
			if w != nil {
				w.Stop()
			}
		}
	}()
	fmt.Fprintf(out, "One queue, %d workers, and a mail server that takes %d mails per %s, %d at once and %d of one tenant (seed %d).\n\n",
		workers, queue.Rate, queue.Per, queue.Max, queue.MaxPerPartition, o.seed)
	s.tl = demo.NewTimeline(out, 8)
	if err := s.act(ctx); err != nil {
		return err
	}
	return s.verdict(ctx, out)
}

// act plays the story.
func (s *stage) act(ctx context.Context) error {
	if err := s.flooded(ctx); err != nil {
		return err
	}
	for n := range s.staff {
		if err := s.hire(ctx, n); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var tasks, watch sync.WaitGroup
	do := func(f func(context.Context) error) {
		tasks.Go(func() {
			if err := f(ctx); err != nil {
				cancel(err) // the first one is what went wrong
			}
		})
	}
	watch.Go(func() { s.look(ctx) })
	for n, tenant := range everybody {
		do(func(ctx context.Context) error {
			return s.office.correspond(ctx, tenant, rand.New(rand.NewPCG(s.seed, uint64(2+n))))
		})
	}
	do(s.killing)
	do(s.digesting)
	do(func(ctx context.Context) error {
		for n := range s.flood {
			if err := s.office.delivered(ctx, reader(n)); err != nil {
				return err
			}
		}
		return nil
	})
	tasks.Wait()
	cancel(nil)
	watch.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// flooded puts the flood in line, before anybody works, and shows what is not put in line
// twice.
func (s *stage) flooded(ctx context.Context) error {
	for _, when := range []string{"writes a newsletter", "clicks on Send again"} {
		b, err := s.office.newsletter(ctx, s.flood)
		if err != nil {
			return err
		}
		s.tl.Say(flooding, fmt.Sprintf("%s: %d mails are put in line, %d were there", when, b.Started, b.Existing))
	}
	for range 2 {
		id, fresh, err := s.office.resetPassword(ctx, flooding, "ann")
		switch {
		case err != nil:
			return err
		case fresh:
			s.tl.Say(flooding, "ann has forgotten her password: "+id+" is put in line, before the newsletter")
		default:
			s.tl.Say(flooding, "ann asks again, and gets no second mail: "+id+" is in line")
		}
	}
	return nil
}

// name is that of a worker.
func name(n int) string { return fmt.Sprintf("worker %d", n+1) }

// hire starts a worker.
func (s *stage) hire(ctx context.Context, n int) (err error) {
	s.staff[n], err = demo.StartServing(ctx, s.tl, name(n), roleWorker, working, s.dir, s.server.URL)
	return err
}

// killing kills workers at random moments, spread over all mails.
func (s *stage) killing(ctx context.Context) error {
	rng := rand.New(rand.NewPCG(s.seed, 0))
	for k := range s.options.kills {
		select {
		case <-ctx.Done():
			return nil
		case <-s.server.After(1 + (k*s.flood+rng.IntN(s.flood))/s.options.kills):
		}
		time.Sleep(time.Duration(rng.IntN(50)) * time.Millisecond)
		n := rng.IntN(workers)
		_, open := s.server.Now()
		lived, err := s.staff[n].Kill()
		switch {
		case err != nil:
			return err
		case !lived:
			return fmt.Errorf("%s ended by itself before it could be killed", name(n))
		}
		s.kills++
		s.tl.Say("you", fmt.Sprintf("kill -9 %d (%s), while %d mails are on their way, and start it again", s.staff[n].Pid(), name(n), open))
		if err := s.hire(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// look says every second how far things are.
func (s *stage) look(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		line, err := s.office.line(ctx)
		if err != nil {
			return // whoever waits for a mail sees it, too
		}
		delivered, _ := s.server.Now()
		s.tl.Say("queue", fmt.Sprintf("%3d delivered, %s", delivered, line))
	}
}

// verdict looks into the mail server's book, once all mails are delivered.
func (s *stage) verdict(ctx context.Context, out io.Writer) error {
	letters, err := s.office.letters(ctx)
	if err != nil {
		return err
	}
	l := Ledger{Letters: letters, Book: s.server.Book(), Digests: s.digests()}
	fmt.Fprintln(out, "\nThe mail server's own book:")
	for _, tenant := range append(everybody, digests) {
		fmt.Fprintln(out, "  "+l.summary(tenant))
	}
	seen, err := check(l, queue)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "  on their way at once: %d of %d; of one tenant: %d of %d\n", seen.AtOnce, queue.Max, seen.OfTenant, queue.MaxPerPartition)
	fmt.Fprintf(out, "  came within %s: %d, where %d may begin and %d be under way; in all: %d within %s\n", queue.Per, seen.Came, queue.Rate, queue.Max, len(letters), seen.Took.Round(10*time.Millisecond))
	fmt.Fprintf(out, "  mails of %s's newsletter that overtook a prompt mail: %d at most\n\n", flooding, seen.Overtaken)
	fmt.Fprintf(out, "Killed %d times: each of the %d mails was delivered once, though %d were handed over again; no limit was exceeded, and nobody waited for the newsletter.\n", s.kills, len(letters), seen.Again)
	return nil
}

// summary says how many mails of a tenant were delivered, and how long they had been in line.
func (l *Ledger) summary(tenant string) string {
	mails, prompt, longest := 0, 0, time.Duration(0)
	for _, m := range l.Letters {
		if m.Tenant != tenant {
			continue
		}
		mails++
		if m.Prompt {
			prompt++
			longest = max(longest, m.Began.Sub(m.InLine))
		}
	}
	says := fmt.Sprintf("%-7s  %3d mails", tenant, mails)
	if prompt > 0 {
		says += fmt.Sprintf(", %d of them prompt, which waited for %s at most", prompt, longest.Round(time.Millisecond))
	}
	return says
}
