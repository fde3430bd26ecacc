package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// The demo is a small shop in which things go wrong: real engines on one store,
// one of which dies as from kill -9.

type order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
	Parcels  int    `json:"parcels"`
}

type payment struct {
	Payment  string `json:"payment"`
	Amount   int    `json:"amount"`
	Currency string `json:"currency"`
	Card     string `json:"card"`
}

type shop struct {
	mu   sync.Mutex
	down bool
	hang map[string]bool
}

var retry = durable.Policy{MaxAttempts: 5, Initial: 150 * time.Millisecond, Multiplier: 1.8, Jitter: -1}

func nap(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(d):
			return nil
		}
	}
}

func (s *shop) checkout(ctx context.Context, o order) (string, error) {
	if err := durable.Do(ctx, "validate", nap(42*time.Millisecond)); err != nil {
		return "", err
	}
	parcels := []string{"a", "b", "c"}
	if _, err := durable.Map(ctx, "reserve", parcels, durable.MapOptions{Concurrency: 3}, func(ctx context.Context, p string) (string, error) {
		return p, nap(time.Duration(60+40*len(o.ID)%90) * time.Millisecond)(ctx)
	}); err != nil {
		return "", err
	}
	if _, err := durable.Step(ctx, "quote", func(ctx context.Context) (int, error) { return o.Cents, nap(12 * time.Millisecond)(ctx) }); err != nil {
		return "", err
	}
	_, err := durable.Retry(ctx, "charge", retry, func(ctx context.Context) (payment, error) { return s.charge(ctx, o) })
	if err != nil {
		return "", err
	}
	if _, err := invoice.Run(ctx, durable.AutoID, o.ID); err != nil {
		return "", err
	}
	if err := durable.Sleep(ctx, 900*time.Millisecond); err != nil {
		return "", err
	}
	if _, err := durable.Step(ctx, "address", func(ctx context.Context) (string, error) { return "12 Wrong Street", nap(180 * time.Millisecond)(ctx) }); err != nil {
		return "", err
	}
	if err := durable.Do(ctx, "packing-slip", nap(90*time.Millisecond)); err != nil {
		return "", err
	}
	ok, err := durable.Await[bool](ctx, "approve", durable.Prompt(fmt.Sprintf("Ship %s to %s, %d parcels, €%d.00?", o.ID, o.Customer, o.Parcels, o.Cents/100)), durable.Timeout(24*time.Hour))
	if err != nil || !ok {
		return "not shipped", err
	}
	return "shipped", durable.Do(ctx, "ship", nap(120*time.Millisecond))
}

func (s *shop) charge(ctx context.Context, o order) (payment, error) {
	n := durable.Attempt(ctx).Number
	s.mu.Lock()
	down, hang := s.down, s.hang[o.ID] && n == 3
	s.hang[o.ID] = s.hang[o.ID] && n != 3
	s.mu.Unlock()
	switch {
	case hang:
		return payment{}, nap(time.Hour)(ctx)
	case n == 1 && o.ID == "order-4711":
		_ = nap(400 * time.Millisecond)(ctx)
		return payment{}, context.DeadlineExceeded
	case n == 2 && o.ID == "order-4711", down:
		durable.Note(ctx, "bank.request_id", fmt.Sprintf("rq_81c%d", n))
		_ = nap(180 * time.Millisecond)(ctx)
		return payment{}, errors.New("bank: POST /v2/charges: 503 Service Unavailable")
	case n < 3 && o.ID == "order-4715":
		_ = nap(90 * time.Millisecond)(ctx)
		return payment{}, context.DeadlineExceeded
	case o.ID == "order-4690":
		return payment{}, durable.Permanent(errors.New("card country is not allowed"))
	}
	return payment{"pay_5Kc2", o.Cents, "EUR", "4242 4242 4242 4242"}, nap(140 * time.Millisecond)(ctx)
}

var invoice = durable.Define("invoice", func(ctx context.Context, order string) (string, error) {
	return durable.Step(ctx, "render", func(ctx context.Context) (string, error) { return "inv-" + order, nap(220 * time.Millisecond)(ctx) })
})

// demo makes the runs, and returns an engine that goes on executing them.
func demo(ctx context.Context, data *memory.Store) (*durable.Engine, func(), error) {
	s := &shop{hang: map[string]bool{"order-4711": true}, down: true}
	checkout := durable.Define("checkout", s.checkout, durable.Version("v3"), durable.Steps("validate", "quote", "charge", "address", "packing-slip", "approve", "ship"))
	agent := durable.Define("support-agent", func(ctx context.Context, q string) (bool, error) {
		if err := durable.Do(ctx, "draft", nap(300*time.Millisecond)); err != nil {
			return false, err
		}
		return durable.Await[bool](ctx, "send", durable.Prompt("Send this reply to the customer?"))
	}, durable.Version("v12"))
	imports := durable.Define("nightly-import", func(ctx context.Context, n int) (int, error) {
		in := make([]int, n)
		out, err := durable.Map(ctx, "rows", in, durable.MapOptions{Concurrency: 4, KeepGoing: true}, func(ctx context.Context, i int) (int, error) {
			return durable.Step(ctx, "upsert", func(ctx context.Context) (int, error) { return i, nap(25 * time.Millisecond)(ctx) })
		})
		return len(out), err
	}, durable.Version("v8"))
	cleanup := durable.Define("gdpr-export", func(ctx context.Context, _ string) (int, error) {
		if err := durable.Do(ctx, "collect", nap(30*time.Millisecond)); err != nil {
			return 0, err
		}
		return 1, durable.Sleep(ctx, 6*time.Hour)
	})
	old := durable.Define("billing", func(ctx context.Context, _ string) (int, error) {
		if err := durable.Do(ctx, "render", nap(30*time.Millisecond)); err != nil {
			return 0, err
		}
		return 1, durable.Do(ctx, "send", nap(time.Hour))
	}, durable.Version("v2"))
	quiet := slog.New(slog.DiscardHandler)
	boot := func(name string, defs ...durable.Definition) (*durable.Engine, *crashstore.Store, error) {
		d := crashstore.New(data.Handle())
		eng, err := durable.Open(ctx, crashstore.Notifier{Store: d}, durable.Options{Name: name, Workflows: defs, Lease: time.Second, Grace: -1, Logger: quiet})
		if err != nil {
			return nil, nil, err
		}
		_, err = eng.Recover(ctx)
		return eng, d, err
	}
	attr := durable.Attributes(map[string]string{"customer": "C-2290"})

	web4, d4, err := boot("web-4", old)
	if err != nil {
		return nil, nil, err
	}
	if _, err := old.Start(durable.NewContext(ctx, web4), "invoice-2231", "x"); err != nil {
		return nil, nil, err
	}
	web1, d1, err := boot("web-1", checkout, invoice, agent, imports, cleanup)
	if err != nil {
		return nil, nil, err
	}
	on1 := durable.NewContext(ctx, web1)
	begin := func(on context.Context, id string, c int) error {
		_, err := checkout.Start(on, id, order{ID: id, Customer: "Ada Lindqvist", Cents: c, Parcels: 3}, attr)
		return err
	}
	for i, id := range []string{"order-4698", "order-4699", "order-4700", "order-4702"} {
		if err := begin(on1, id, 9600+i); err != nil {
			return nil, nil, err
		}
	}
	time.Sleep(5 * time.Second)
	s.mu.Lock()
	s.down = false
	s.mu.Unlock()
	for _, id := range []string{"order-4711", "order-4690"} {
		if err := begin(on1, id, 128400); err != nil {
			return nil, nil, err
		}
	}
	if _, err := agent.Start(on1, "agent-6c10", "q"); err != nil {
		return nil, nil, err
	}
	if _, err := cleanup.Start(on1, "export-0092", "q"); err != nil {
		return nil, nil, err
	}
	time.Sleep(2300 * time.Millisecond)
	d1.Die()
	d4.Die()
	go func() { _ = web1.Close(); _ = web4.Close() }()
	time.Sleep(2200 * time.Millisecond)

	// It lives on, and serves the pages.
	web2, err := durable.Open(ctx, data.Handle(), durable.Options{Name: "web-2", Workflows: []durable.Definition{checkout, invoice, agent, imports, cleanup}, Lease: time.Second, Grace: -1, Logger: quiet})
	if err != nil {
		return nil, nil, err
	}
	if _, err := web2.Recover(ctx); err != nil {
		return nil, nil, err
	}
	on2 := durable.NewContext(ctx, web2)
	time.Sleep(3500 * time.Millisecond)
	if err := edit(on2, web2, "order-4711"); err != nil {
		return nil, nil, err
	}
	for _, id := range []string{"order-4710", "order-4709", "order-4688"} {
		if err := begin(on2, id, 9000); err != nil {
			return nil, nil, err
		}
	}
	if _, err := imports.Start(on2, "import-2026-11-21", 10_000); err != nil {
		return nil, nil, err
	}
	time.Sleep(2500 * time.Millisecond)
	for _, id := range []string{"order-4710", "order-4709"} {
		open, err := operate.On(web2).ApprovalsOf(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		if err := operate.On(web2).Answer(ctx, open[0], true); err != nil {
			return nil, nil, err
		}
	}
	if err := web2.Cancel(ctx, "order-4688", "customer asked"); err != nil {
		return nil, nil, err
	}
	time.Sleep(time.Second)
	if err := begin(on2, "order-4715", 5000); err != nil {
		return nil, nil, err
	}
	time.Sleep(700 * time.Millisecond)
	return web2, func() { _ = web2.Close() }, nil
}

func edit(ctx context.Context, eng *durable.Engine, id string) error {
	if err := eng.Pause(ctx, id, "wrong address"); err != nil {
		return err
	}
	var err error
	for range 50 {
		time.Sleep(50 * time.Millisecond)
		if _, err = operate.On(eng).Edit(ctx, id, "address", "21 Right Street", operate.EditOptions{Reason: "Wrong street number", By: "mara@shop"}); err == nil {
			return eng.Unpause(ctx, id)
		}
	}
	return err
}
