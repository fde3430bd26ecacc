package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// flooding is the tenant with the newsletter.
const flooding = "acme"

// everybody is all tenants.
var everybody = []string{flooding, "bolt", "cork", "dune"}

// few is how many prompt mails each of them sends.
const few = 5

// Office is the program that has mails to send, such as a web application. It has no code of
// a workflow, executes nothing, and knows the queue by its name.
type Office struct {
	eng *durable.Engine

	mu      sync.Mutex
	inLine  map[string]time.Time // when each mail's start had returned
	prompts map[string]bool
	resets  int // how many were asked for
}

func openOffice(ctx context.Context, st store.Store) (*Office, error) {
	eng, err := durable.Open(ctx, st, durable.Options{Name: "office"})
	if err != nil {
		return nil, err
	}
	return &Office{eng: eng, inLine: map[string]time.Time{}, prompts: map[string]bool{}}, nil
}

// reader returns the id of the newsletter's mail to a reader.
func reader(n int) string { return fmt.Sprintf("%s/newsletter/%03d", flooding, n) }

// newsletter puts a mail to each reader in line, in few writes. Done again, it finds them
// all there, because the ids are the same.
func (o *Office) newsletter(ctx context.Context, readers int) (durable.Bulk, error) {
	mails := func(yield func(string, Mail) bool) {
		for n := range readers {
			if !yield(reader(n), Mail{Tenant: flooding, To: fmt.Sprint("reader ", n), Subject: "The newsletter"}) {
				return
			}
		}
	}
	bulk, err := sendMail.StartAll(durable.NewContext(ctx, o.eng), iter.Seq2[string, Mail](mails), inLine(flooding)...)
	if err == nil && len(bulk.Refused) > 0 {
		err = bulk.Refused[0]
	}
	return bulk, err
}

// resetPassword sends a link to who has forgotten the password. It is urgent: it goes before
// the newsletter of the same tenant. Who asks again while the mail is in line or on its way
// gets no second one: id is then that of the first.
func (o *Office) resetPassword(ctx context.Context, tenant, who string) (id string, fresh bool, err error) {
	o.mu.Lock()
	o.resets++
	id = fmt.Sprintf("%s/reset/%s-%d", tenant, who, o.resets)
	o.mu.Unlock()
	_, err = o.send(ctx, id, Mail{Tenant: tenant, To: who, Subject: "Reset your password"}, durable.Priority(10), durable.Dedup("reset "+tenant+" "+who))
	if taken := (*durable.ConflictError)(nil); errors.As(err, &taken) && taken.Holder != "" {
		return taken.Holder, false, nil
	}
	return id, true, err
}

// send puts a mail in line that must not wait behind the flood.
func (o *Office) send(ctx context.Context, id string, mail Mail, opts ...durable.StartOption) (*durable.Run[string], error) {
	run, err := sendMail.Enqueue(durable.NewContext(ctx, o.eng), id, mail, append(inLine(mail.Tenant), opts...)...)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inLine[id], o.prompts[id] = time.Now(), true
	return run, nil
}

// delivered waits until a mail was sent.
func (o *Office) delivered(ctx context.Context, id string) error {
	run, err := sendMail.Handle(durable.NewContext(ctx, o.eng), id)
	if err != nil {
		return err
	}
	_, err = run.Wait(ctx)
	return err
}

// correspond sends a few mails of a tenant, each once the one before was delivered.
func (o *Office) correspond(ctx context.Context, tenant string, rng *rand.Rand) error {
	for n := range few {
		id, err := fmt.Sprintf("%s/letter-%d", tenant, n), error(nil)
		if tenant == flooding {
			id, _, err = o.resetPassword(ctx, tenant, fmt.Sprint("user-", n))
		} else {
			_, err = o.send(ctx, id, Mail{Tenant: tenant, To: "bob", Subject: "A letter"})
		}
		if err == nil {
			err = o.delivered(ctx, id)
		}
		if err != nil {
			return fmt.Errorf("mail %s: %w", id, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Duration(rng.IntN(400)) * time.Millisecond):
		}
	}
	return nil
}

// line says how many mails are on their way, and what keeps the others in line.
func (o *Office) line(ctx context.Context) (string, error) {
	found, err := operate.On(o.eng).Queues(ctx, queue.Name)
	if err != nil {
		return "", err
	}
	q := found[0]
	why := map[operate.WaitReason]int64{}
	for _, w := range q.Waits {
		why[w.Reason] += w.Runs
	}
	says := fmt.Sprintf("%d on their way, %d in line", q.Placed, q.InLine)
	for _, reason := range slices.Sorted(maps.Keys(why)) {
		says += fmt.Sprintf(", %d for %s", why[reason], reason)
	}
	return says, nil
}

// letters returns all mails there are, when they got in line and when their runs began.
func (o *Office) letters(ctx context.Context) (list []Letter, err error) {
	f := store.Filter{Workflows: []string{sendMail.Name()}}
	for {
		page, err := o.eng.List(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, row := range page.Runs {
			if row.Status != store.Completed {
				return nil, fmt.Errorf("mail %s is %s", row.ID, row.Status)
			}
			list = append(list, Letter{ID: row.ID, Tenant: row.Partition, InLine: o.inLine[row.ID], Began: row.StartedAt.Time(), Prompt: o.prompts[row.ID], Resumed: row.Resumes > 0})
		}
		if f.After = page.Next; f.After == "" {
			return list, nil
		}
	}
}
