package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// The shop sends mails for three tenants through a queue with limits, exports through one
// that somebody has paused, and has schedules.

var send = durable.Define("send-mail", func(ctx context.Context, to string) (string, error) {
	return durable.Step(ctx, "smtp", func(ctx context.Context) (string, error) {
		if to == "" {
			return "", durable.Permanent(errors.New("smtp: 550 no such mailbox"))
		}
		return "sent", nap(time.Hour)(ctx)
	})
})

var digest = durable.Define("digest", func(ctx context.Context, what string) (int, error) {
	return durable.Step(ctx, "collect", func(ctx context.Context) (int, error) { return len(what), nap(30 * time.Millisecond)(ctx) })
})

// lines fills the queues and the schedules.
func lines(ctx context.Context, st store.Store) (stop func(), err error) {
	eng, err := durable.Open(ctx, st, durable.Options{
		Name: "mail-1", Workflows: []durable.Definition{send, digest}, Lease: time.Second, Grace: -1, Logger: slog.New(slog.DiscardHandler),
		Queues: []durable.Queue{
			{Name: "emails", Max: 5, MaxPerPartition: 2, Rate: 100, Per: time.Minute},
			{Name: "exports", Max: 2},
			{Name: "thumbnails"},
		},
		Schedules: []durable.Schedule{
			digest.Schedule("nightly-digest", durable.Cron("0 2 * * *").In("Europe/Berlin"), "sales"),
			digest.Schedule("stock-check", durable.Every(3*time.Second), "stock"),
			digest.Schedule("month-end", durable.Cron("0 6 1 * *"), "books").Overlap(durable.OverlapQueue).Missed(durable.MissedAll).Paused(),
		},
	})
	if err != nil {
		return nil, err
	}
	if _, err := eng.Recover(ctx); err != nil {
		return nil, err
	}
	stop = func() { _ = eng.Close() }
	on, op := durable.NewContext(ctx, eng), operate.On(eng)
	if err := op.PauseQueue(ctx, "exports", "the warehouse is being moved"); err != nil {
		return stop, err
	}
	mail := func(n int, tenant, to string, o ...durable.StartOption) error {
		_, err := send.Enqueue(on, fmt.Sprintf("mail-%s-%d", tenant, n), to, append(o, durable.OnQueue("emails"), durable.Partition(tenant))...)
		return err
	}
	for i := range 2 {
		err = errors.Join(err, mail(900+i, "globex", ""))
	}
	time.Sleep(time.Second) // they fail before the others hold all places
	for i := range 14 {
		err = errors.Join(err, mail(i, "acme", "ada@acme.example"))
	}
	for i := range 3 {
		err = errors.Join(err, mail(i, "globex", "lin@globex.example"), mail(i, "initech", "bo@initech.example"))
	}
	err = errors.Join(err, mail(20, "acme", "ada@acme.example", durable.Delay(time.Hour)))
	for i := range 4 {
		_, e := digest.Enqueue(on, fmt.Sprintf("export-%d", i), "x", durable.OnQueue("exports"))
		err = errors.Join(err, e)
	}
	time.Sleep(4 * time.Second) // some fires
	_, e := op.TriggerSchedule(ctx, "nightly-digest", "ticket-4711")
	return stop, errors.Join(err, e)
}
