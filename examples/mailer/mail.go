package main

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// queue is the line in which all mails wait. Every worker declares it; its limits hold over
// all of them.
var queue = durable.Queue{
	Name:            "mail",
	Max:             6,  // mails on their way at once, over all workers
	MaxPerProcess:   4,  // of them in one worker
	MaxPerPartition: 3,  // of them for one tenant
	Rate:            20, // mails that begin
	Per:             time.Second,
}

// sendMail is the workflow, for whoever has a mail to send and not its code.
var sendMail = durable.Ref[Mail, string]("send-mail")

// Mail is what somebody has written.
type Mail struct {
	Tenant  string // on whose behalf
	To      string
	Subject string
}

// Mailer sends mails by a mail server.
type Mailer struct{ Server *Client }

// Send is the workflow: one step, which is tried again when the server is busy, or when the
// worker died in the middle of it. The server gets the same key each time, so it delivers
// once.
//
// Look for what is not here: no rate limiter, no semaphore, no fairness between tenants. The
// queue lets a run begin when all of that allows it.
func (m *Mailer) Send(ctx context.Context, mail Mail) (receipt string, err error) {
	retry := durable.Policy{MaxAttempts: 8, Initial: 50 * time.Millisecond}
	return durable.Retry(ctx, "send", retry, func(ctx context.Context) (string, error) {
		return m.Server.Deliver(ctx, durable.RunID(ctx), mail, durable.IdempotencyKey(ctx))
	})
}

// inLine puts a mail in its tenant's line. Tenants take turns, however long their lines are.
func inLine(tenant string) []durable.StartOption {
	return []durable.StartOption{durable.OnQueue(queue.Name), durable.Partition(tenant)}
}
