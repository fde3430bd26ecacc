package main

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// nightly is the schedule of the digest. Every worker declares it, and one of them fires it.
var nightly = digest.Schedule("nightly-digest", durable.Cron("0 2 * * *").In("Europe/Berlin"), everybody)

// digest is the workflow that nightly starts.
var digest = durable.Ref[[]string, int]("digest")

// digests is the line of the digest's mails: as if they were of one more tenant, they delay
// nobody's own mails.
const digests = "digests"

// Digest is the workflow: it tells each tenant what there was on the day before the night.
// Each mail is a child run on the queue, so that any worker sends it, within the limits. The
// digest itself is on no queue: it would hold one of the places that its mails wait for.
func (m *Mailer) Digest(ctx context.Context, tenants []string) (sent int, err error) {
	// The night's own time: the run may begin later, or be made up for years later.
	day := durable.ScheduledAt(ctx).AddDate(0, 0, -1).Format(time.DateOnly)
	var mails []*durable.Run[string]
	for _, tenant := range tenants {
		mail := Mail{Tenant: digests, To: tenant, Subject: "Your mails of " + day}
		run, err := sendMail.Start(ctx, durable.RunID(ctx)+"/"+tenant, mail, inLine(digests)...)
		if err != nil {
			return 0, err
		}
		mails = append(mails, run)
	}
	for _, run := range mails {
		if _, err := run.Wait(ctx); err != nil {
			return sent, err
		}
		sent++
	}
	return sent, nil
}
