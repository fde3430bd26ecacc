package vintage_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/durable"
)

// market is a program that uses all of the SDK. It leaves the stores of a release behind,
// killed in the middle of its work, and later releases continue that work with it. What it
// does must stay as it is: a change of its calls is a change under runs in flight.
type market struct {
	leaving bool // the process that will be killed: some bodies do not return
	bad     bool // the deploy that does not fit the run changed-1

	mu  sync.Mutex
	ran []string // the bodies that began, in order
}

type cart struct{ Items int }

type session struct{ ID string }

var errBank = errors.New("the bank is closed")

// did notes that a body runs.
func (m *market) did(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ran = append(m.ran, what)
}

func (m *market) times(what string) (n int) {
	for _, w := range m.bodies() {
		if w == what {
			n++
		}
	}
	return n
}

func (m *market) bodies() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.ran)
}

// stays is a body: in the process that will be killed it does not return.
func (m *market) stays(what string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		m.did(what)
		if m.leaving {
			<-ctx.Done()
			return "", ctx.Err()
		}
		return what, nil
	}
}

func (m *market) does(what string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		m.did(what)
		return what, nil
	}
}

func (m *market) options() durable.Options {
	o := durable.Options{
		Queues: []durable.Queue{{Name: "mail", Max: 1}},
		Types:  []durable.TypeDef{durable.Type[cart]("cart", 1)},
		Errors: []durable.ErrorKind{durable.Sentinel("market.bank", errBank)},
		// Where it was filled is nobody's business.
		Capture: durable.Capture{Off: true}, Name: "market", Build: "market of a release",
		Lease: time.Second, Grace: -1, Logger: slog.New(slog.DiscardHandler),
	}
	if m.bad || !m.leaving {
		o.Build = "" // neither is the build that has left the run changed-1
	}
	flow := func(name string, fn func(context.Context, int) (string, error), d ...durable.DefineOption) *durable.Workflow[int, string] {
		wf := durable.Define(name, fn, d...)
		o.Workflows = append(o.Workflows, wf)
		return wf
	}
	flow("order", m.order)
	flow("pay", m.pay)
	flow("family", m.family)
	flow("child", m.child)
	flow("list", m.list)
	flow("stream", m.stream)
	flow("saga", m.saga)
	flow("renew", m.renew)
	flow("inbox", m.inbox)
	flow("ask", m.ask)
	flow("approval", m.approval)
	flow("late", m.late)
	flow("together", m.together)
	flow("changed", m.changed)
	flow("priced", m.priced, durable.Version("1"))
	if m.bad || !m.leaving {
		flow("priced", m.priced, durable.Version("2"))
	}
	flow("mail", m.mail)
	flow("bank", m.bank)
	flow("told", m.told)
	flow("steps", m.steps, durable.Steps("one", "two", "three"))
	flow("broken", m.broken)
	o.Schedules = []durable.Schedule{flow("tick", m.tick).Schedule("tick", durable.Every(time.Second), 7)}
	return o
}

func (m *market) order(ctx context.Context, n int) (string, error) {
	c, err := durable.Step(ctx, "reserve", func(context.Context) (cart, error) { m.did("reserve"); return cart{n}, nil }, durable.WithInput(n))
	if err != nil {
		return "", err
	}
	if _, err := durable.Step(ctx, "look", m.does("look"), durable.Relaxed()); err != nil {
		return "", err
	}
	paid, err := durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 5, Initial: time.Millisecond}, func(ctx context.Context) (string, error) {
		at := durable.Attempt(ctx)
		durable.Note(ctx, "bank", fmt.Sprint("answer ", at.Number))
		if m.leaving && at.Number < 3 {
			return "", fmt.Errorf("attempt %d: %w", at.Number, errBank)
		}
		if m.leaving {
			if err := durable.SaveProgress(ctx, session{"s-3"}); err != nil {
				return "", err
			}
			return m.stays("charge")(ctx)
		}
		open, _, err := durable.Progress[session](ctx)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("attempt %d in session %s, after %s, %t", at.Number, open.ID, at.Failures[1].Notes["bank"], errors.Is(at.Failures[0].Err, errBank)), nil
	})
	return fmt.Sprintf("%d items: %s", c.Items, paid), err
}

func (m *market) pay(ctx context.Context, _ int) (string, error) {
	return durable.Once(ctx, "pay", m.stays("pay"), durable.Reconcile(func(context.Context) (string, bool, error) {
		return "paid, says the bank", true, nil
	}))
}

func (m *market) family(ctx context.Context, n int) (string, error) {
	child := durable.Ref[int, string]("child")
	one, err := child.Start(ctx, "family-1-one", 0)
	if err != nil {
		return "", err
	}
	two, err := child.Start(ctx, "family-1-two", n)
	if err != nil {
		return "", err
	}
	a, err := one.Wait(ctx)
	if err != nil {
		return "", err
	}
	b, err := two.Wait(ctx)
	return a + ", " + b, err
}

func (m *market) child(ctx context.Context, n int) (string, error) {
	if n == 0 {
		return durable.Step(ctx, "work", m.does("work of a child"))
	}
	return durable.Await[string](ctx, "go")
}

func (m *market) list(ctx context.Context, _ int) (string, error) {
	out, err := durable.Map(ctx, "fruit", []int{0, 1, 2, 3, 4}, durable.MapOptions{Concurrency: 1, KeepGoing: true}, m.fruit)
	var dead *durable.MapError
	if !errors.As(err, &dead) || len(dead.Failed) != 1 {
		return "", err
	}
	return fmt.Sprintf("%s; %s is dead after %d", strings.Join(out, " "), dead.Failed[0].Key, dead.Failed[0].Attempts), nil
}

func (m *market) fruit(ctx context.Context, i int) (string, error) {
	return durable.Step(ctx, "wash", func(ctx context.Context) (string, error) {
		switch i {
		case 2:
			return "", durable.Permanent(errors.New("rotten"))
		case 3:
			return m.stays("fruit 3")(ctx)
		}
		return m.does(fmt.Sprint("fruit ", i))(ctx)
	})
}

func (m *market) stream(ctx context.Context, n int) (string, error) {
	sum, err := durable.MapSeq(ctx, "numbers", func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}, durable.MapOptions{Concurrency: 1}, func(ctx context.Context, i int) (int, error) {
		return durable.Step(ctx, "square", func(ctx context.Context) (int, error) {
			if i == n-2 {
				if _, err := m.stays("square")(ctx); err != nil {
					return 0, err
				}
			}
			return i * i, nil
		})
	}, 0, func(a, o int) int { return a + o })
	return fmt.Sprint(sum), err
}

func (m *market) saga(ctx context.Context, _ int) (string, error) {
	for _, part := range []string{"flight", "hotel"} {
		undo := m.does("undo " + part)
		if part == "flight" {
			undo = m.stays("undo " + part)
		}
		if err := durable.Compensate(ctx, "undo "+part, func(ctx context.Context) error { _, err := undo(ctx); return err }); err != nil {
			return "", err
		}
		if _, err := durable.Step(ctx, part, m.does(part)); err != nil {
			return "", err
		}
	}
	return "", durable.Do(ctx, "car", func(context.Context) error { return durable.Permanent(errBank) })
}

func (m *market) renew(ctx context.Context, n int) (string, error) {
	if _, err := durable.Step(ctx, "work", m.does("work of a generation")); err != nil {
		return "", err
	}
	if n < 3 {
		return "", durable.Continue(ctx, n+1)
	}
	word, err := durable.Await[string](ctx, "go")
	return fmt.Sprintf("generation %d %s", n, word), err
}

func (m *market) inbox(ctx context.Context, _ int) (string, error) {
	var got []string
	for _, name := range []string{"go", "later", "later"} {
		word, err := durable.Await[string](ctx, name)
		if err != nil {
			return "", err
		}
		got = append(got, word)
	}
	return strings.Join(got, " "), nil
}

func (m *market) ask(ctx context.Context, _ int) (string, error) {
	q, err := durable.AwaitRequest[int](ctx, "double")
	if err != nil {
		return "", err
	}
	return "replied", q.Reply(ctx, 2*q.Value)
}

func (m *market) approval(ctx context.Context, _ int) (string, error) {
	return durable.Await[string](ctx, "ship", durable.Prompt("Ship it?"))
}

func (m *market) late(ctx context.Context, n int) (string, error) {
	if err := durable.Sleep(ctx, time.Duration(n)*time.Second); err != nil {
		return "", err
	}
	_, err := durable.Await[string](ctx, "never", durable.Timeout(time.Duration(n)*time.Millisecond))
	var late *durable.TimeoutError
	return fmt.Sprint("late: ", errors.As(err, &late)), nil
}

func (m *market) together(ctx context.Context, _ int) (string, error) {
	quick := durable.Go(ctx, "quick", func(ctx context.Context) (string, error) { return durable.Step(ctx, "run", m.does("quick")) })
	slow := durable.Go(ctx, "slow", func(ctx context.Context) (string, error) { return durable.Await[string](ctx, "go") })
	_, first, err := durable.First(ctx, "race", quick, slow)
	if err != nil {
		return "", err
	}
	second, err := slow.Wait(ctx)
	return first + " before " + second, err
}

func (m *market) changed(ctx context.Context, _ int) (string, error) {
	first := "old"
	if m.bad {
		first = "new"
	}
	if _, err := durable.Step(ctx, first, m.does(first)); err != nil {
		return "", err
	}
	return durable.Step(ctx, "pack", m.stays("pack"))
}

func (m *market) priced(ctx context.Context, n int) (string, error) {
	if durable.Patched(ctx, "tax") {
		n++
	}
	word, err := durable.Await[string](ctx, "go")
	return fmt.Sprintf("version %s: %d %s", durable.RunVersion(ctx), n, word), err
}

func (m *market) mail(ctx context.Context, n int) (string, error) {
	return durable.Step(ctx, "send", m.stays(fmt.Sprint("mail ", n)))
}

func (m *market) bank(ctx context.Context, n int) (string, error) {
	book := func(ctx context.Context, tx *sqlx.Tx) (int, error) {
		m.did("book")
		_, err := tx.ExecContext(ctx, "INSERT INTO bookings (amount) VALUES ("+fmt.Sprint(n)+")")
		return n, err
	}
	if _, err := durable.Transact(ctx, "book", book); err != nil {
		return "", err
	}
	if _, err := durable.Await[string](ctx, "go"); err != nil {
		return "", err
	}
	_, err := durable.Transact(ctx, "book again", book)
	return "booked twice", err
}

func (m *market) told(ctx context.Context, n int) (string, error) {
	if err := durable.Publish(ctx, "state", cart{n}); err != nil {
		return "", err
	}
	if err := durable.SetAttributes(ctx, map[string]string{"customer": "Zoë"}); err != nil {
		return "", err
	}
	word, err := durable.Await[string](ctx, "go")
	return word + " " + durable.Headers(ctx)["tenant"], err
}

// steps is jumped back in, and forked.
func (m *market) steps(ctx context.Context, _ int) (string, error) {
	for _, name := range []string{"one", "two", "three"} {
		if _, err := durable.Step(ctx, name, m.does(name)); err != nil {
			return "", err
		}
	}
	word, err := durable.Await[string](ctx, "go")
	return "stepped " + word, err
}

func (m *market) broken(ctx context.Context, n int) (string, error) {
	if n == 0 {
		return strings.Repeat("a large result; ", 5000), nil // compressed
	}
	return "", durable.RetryDo(ctx, "fail", durable.Policy{MaxAttempts: 2, Initial: time.Millisecond}, func(context.Context) error { return errBank })
}

func (m *market) tick(ctx context.Context, n int) (string, error) {
	return durable.Step(ctx, "tick", m.does(fmt.Sprint("tick ", n, " ", durable.ScheduledAt(ctx).IsZero())))
}
