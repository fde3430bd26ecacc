package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// working is the line by which a worker says that it is up.
const working = "working"

// worker sends what is in line until it is stopped or killed. It does not know how many
// others there are, nor how often it was killed before: every process runs these lines.
func worker(ctx context.Context, dir, url string) error {
	mailer := &Mailer{Server: &Client{URL: url}}
	st, err := openStore(dir)
	if err != nil {
		return err
	}
	defer st.Close()
	eng, err := durable.Open(ctx, st, durable.Options{
		Workflows: []durable.Definition{
			durable.Define(sendMail.Name(), mailer.Send),
			durable.Define(digest.Name(), mailer.Digest),
		},
		Queues:    []durable.Queue{queue},
		Schedules: []durable.Schedule{nightly},
		// Who is killed this often is not the fault of a mail.
		QuarantineAfter: 1 << 20,
	})
	if err != nil {
		return err
	}
	defer eng.Close()
	if _, err := eng.Recover(ctx); err != nil {
		return err
	}
	fmt.Println(working)
	<-ctx.Done()
	return nil
}

// openStore opens the file that the office and the workers share. A process that is killed
// loses nothing that the operating system has, so SQLite need not wait for the disk here.
func openStore(dir string) (store.Store, error) {
	return sqlite.OpenOptions(filepath.Join(dir, "mail.db"), sqlite.Options{Synchronous: sqlite.Normal})
}
