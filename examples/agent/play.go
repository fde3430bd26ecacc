package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/examples/internal/demo"
	"github.com/holdfast-dev/holdfast/operate"
)

// stage is where the story plays: a directory, a timeline, the model, and the desk at
// which tickets are written and questions answered.
type stage struct {
	dir, model string
	tl         *demo.Timeline
	desk       *Desk
	agents     int // so far
}

// interrupted is the question at which the model hangs the first time: what it says to
// Ada once it knows the state of her order.
const interrupted = "ada 3"

func play(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "holdfast-agent-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &stage{dir: dir, tl: demo.NewTimeline(out, 7)}
	if s.desk, err = openDesk(ctx, dir); err != nil {
		return err
	}
	defer s.desk.Close()
	model, err := demo.Start(ctx, roleModel, func(line string) { s.tl.Say("model", line) }, dir, interrupted)
	if err != nil {
		return err
	}
	defer model.Stop()
	if s.model, err = model.Line(); err != nil {
		return fmt.Errorf("the model did not come up: %w", err)
	}

	fmt.Fprint(out, "Customers write to a shop. A model answers them, and has tools used that a person must allow.\n\n")
	last, err := s.killedThreeTimes(ctx)
	if err != nil {
		return err
	}
	defer last.Stop()
	if err := s.declined(ctx); err != nil {
		return err
	}
	if err := s.unasked(ctx); err != nil {
		return err
	}
	last.Stop()
	if err := s.check(); err != nil {
		return err
	}
	fmt.Fprint(out, "\nThree processes were killed in the middle of a conversation. The model was asked one question twice, the one\n"+
		"it was killed in, and the bank paid once: nothing lost, nothing done twice.\n")
	return nil
}

// killedThreeTimes is the first act. It returns the agent that lives in the end.
func (s *stage) killedThreeTimes(ctx context.Context) (*demo.Process, error) {
	if err := s.write(ctx, Ticket{"ada", "my order 7 never came"}); err != nil {
		return nil, err
	}
	// While the model thinks.
	if err := s.agentKilled(ctx, func() (bool, error) { return s.contains(questionsName, "asked "+interrupted) }); err != nil {
		return nil, err
	}
	// While a person is asked.
	if err := s.agentKilled(ctx, func() (bool, error) { return s.isAsked(ctx, "ada") }); err != nil {
		return nil, err
	}
	s.tl.Say("", "(the weekend goes by, and no process is alive)")
	if err := s.answer(ctx, "ada", Verdict{Allowed: true, By: "grace"}); err != nil {
		return nil, err
	}
	// While the bank pays.
	slow := filepath.Join(s.dir, slowName)
	if err := os.WriteFile(slow, nil, 0o600); err != nil {
		return nil, err
	}
	if err := s.agentKilled(ctx, func() (bool, error) {
		paid, err := s.contains(refundsName, " 7 40 EUR")
		return paid && s.tl.Said("refund 40 EUR for order 7"), err
	}); err != nil {
		return nil, err
	}
	if err := os.Remove(slow); err != nil {
		return nil, err
	}
	last, err := s.agent(ctx)
	if err != nil {
		return nil, err
	}
	return last, s.told(ctx, "ada", "You have your money back: 40 EUR", []string{
		"customer", "model find order", "tool find order", "model refund", "tool refund", "model",
	})
}

// declined is the second act: the answer is no, and reaches a living agent.
func (s *stage) declined(ctx context.Context) error {
	if err := s.write(ctx, Ticket{"bob", "where is my order 9?"}); err != nil {
		return err
	}
	if err := until(ctx, func() (bool, error) { return s.isAsked(ctx, "bob") }); err != nil {
		return err
	}
	if err := s.answer(ctx, "bob", Verdict{By: "grace", Reason: "he has had it back already"}); err != nil {
		return err
	}
	return s.told(ctx, "bob", "A colleague will call you", []string{
		"customer", "model find order", "tool find order", "model refund", "tool refund", "model",
	})
}

// unasked is the third act: no person is needed.
func (s *stage) unasked(ctx context.Context) error {
	if err := s.write(ctx, Ticket{"cy", "where is my order 8?"}); err != nil {
		return err
	}
	return s.told(ctx, "cy", "it arrives tomorrow", []string{"customer", "model find order", "tool find order", "model"})
}

func (s *stage) write(ctx context.Context, t Ticket) error {
	s.tl.Say(t.Customer, t.Text)
	_, err := tickets.Start(durable.NewContext(ctx, s.desk.Engine), t.Customer, t)
	return err
}

// agent starts a process that answers tickets, and returns when it is up.
func (s *stage) agent(ctx context.Context) (*demo.Process, error) {
	s.agents++
	return demo.StartServing(ctx, s.tl, fmt.Sprint("agent ", s.agents), roleAgent, serving, s.dir, s.model)
}

// agentKilled starts an agent and kills it at a given moment.
func (s *stage) agentKilled(ctx context.Context, moment func() (bool, error)) error {
	p, err := s.agent(ctx)
	if err != nil {
		return err
	}
	defer p.Stop()
	if err := until(ctx, moment); err != nil {
		return err
	}
	s.tl.Say("you", fmt.Sprintf("kill -9 %d", p.Pid()))
	lived, err := p.Kill()
	if err == nil && !lived {
		err = errors.New("the agent ended by itself before it could be killed")
	}
	return err
}

// isAsked reports whether a person is asked about a customer's ticket.
func (s *stage) isAsked(ctx context.Context, customer string) (bool, error) {
	open, err := operate.On(s.desk.Engine).Approvals(ctx)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(open, func(a durable.Approval) bool { return a.RunID == customer })
	if i >= 0 {
		s.tl.Say("", "(asks) "+open[i].Prompt)
	}
	return i >= 0, nil
}

// answer answers the question that is open about a customer's ticket.
func (s *stage) answer(ctx context.Context, customer string, v Verdict) error {
	open, err := operate.On(s.desk.Engine).Approvals(ctx)
	if err != nil {
		return err
	}
	for _, a := range open {
		if a.RunID != customer {
			continue
		}
		if v.Allowed {
			s.tl.Say(v.By, "yes")
		} else {
			s.tl.Say(v.By, "no: "+v.Reason)
		}
		return s.desk.Signal(ctx, a.RunID, a.Answer, v)
	}
	return fmt.Errorf("nobody is asked about %s", customer)
}

// told waits for the answer to a customer, and compares the conversation before it
// with the one that must have taken place.
func (s *stage) told(ctx context.Context, customer, what string, turns []string) error {
	ctx, cancel := context.WithTimeout(ctx, demo.Patience)
	defer cancel()
	run, err := tickets.Handle(durable.NewContext(ctx, s.desk.Engine), customer)
	if err != nil {
		return err
	}
	result, err := run.Wait(ctx)
	if err != nil {
		return err
	}
	s.tl.Say("", fmt.Sprintf("(to %s) %s", customer, result.Answer))
	var had []string
	for _, m := range result.Talk {
		had = append(had, strings.TrimSpace(m.Role+" "+m.Tool))
	}
	if !strings.Contains(result.Answer, what) || !slices.Equal(had, turns) {
		return fmt.Errorf("%s was told %q after %q; expected %q after %q", customer, result.Answer, had, what, turns)
	}
	return nil
}

// contains reports whether a file in the directory holds some words.
func (s *stage) contains(name, words string) (bool, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return strings.Contains(string(text), words), err
}

func until(ctx context.Context, moment func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, demo.Patience)
	defer cancel()
	for {
		if came, err := moment(); came || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("what was waited for did not happen: %w", context.Cause(ctx))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// check compares the books of the model and of the bank with what must have
// happened.
func (s *stage) check() error {
	questions, err := os.ReadFile(filepath.Join(s.dir, questionsName))
	if err != nil {
		return err
	}
	asked := map[string]int{}
	for line := range strings.Lines(string(questions)) {
		if question, ok := strings.CutPrefix(strings.TrimSpace(line), "asked "); ok {
			asked[question]++
		}
	}
	for question, n := range asked {
		want := 1
		if question == interrupted {
			want = 2
		}
		if n != want {
			return fmt.Errorf("the model was asked %q %d times, not %d", question, n, want)
		}
	}
	if len(asked) != 8 {
		return fmt.Errorf("the model was asked %d questions, not 8:\n%s", len(asked), questions)
	}
	refunds, err := os.ReadFile(filepath.Join(s.dir, refundsName))
	if err != nil {
		return err
	}
	if strings.Count(string(refunds), "\n") != 1 || !strings.HasSuffix(string(refunds), " 7 40 EUR\n") {
		return fmt.Errorf("the bank's book reads\n%s; expected one refund of 40 EUR for order 7", refunds)
	}
	return nil
}
