// Program is a whole program, as small as one can be that has a queue, a schedule, a
// transactional step and pages to look at. docs/guides/deploying.md explains it.
//
//	go run ./examples/program app.db
//	go run ./examples/program "postgres://shop@localhost/shop"
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// greet is a workflow: a plain function. What it does to the world is in steps.
func greet(ctx context.Context, name string) (int, error) {
	text, err := durable.Step(ctx, "write", func(context.Context) (string, error) {
		return "Hello, " + name, nil
	})
	if err != nil {
		return 0, err
	}
	return durable.Transact(ctx, "keep", func(ctx context.Context, tx *sqlx.Tx) (n int, err error) {
		if _, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS greetings (text text NOT NULL)`); err != nil {
			return 0, err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO greetings (text) VALUES ($1)`, text); err != nil {
			return 0, err
		}
		err = tx.GetContext(ctx, &n, `SELECT count(*) FROM greetings`)
		return n, err
	})
}

// open opens the store that a program was given: a SQLite file, or a URL of PostgreSQL.
func open(dsn string) (store.Store, error) {
	if strings.HasPrefix(dsn, "postgres://") {
		return postgres.OpenOptions(dsn, postgres.Options{Schema: "durable"})
	}
	return sqlite.Open(dsn)
}

// run is the program. Its first start and the one after a crash are the same.
func run(ctx context.Context, dsn, address string) error {
	st, err := open(dsn)
	if err != nil {
		return err
	}
	defer st.Close()

	greeting := durable.Define("greet", greet)
	eng, err := durable.Open(ctx, st, durable.Options{
		Workflows: []durable.Definition{greeting},
		Queues:    []durable.Queue{{Name: "greetings", Max: 2, Rate: 100, Per: time.Minute}},
		Schedules: []durable.Schedule{greeting.Schedule("hourly", durable.Cron("@hourly"), "hour")},
	})
	if err != nil {
		return err
	}
	defer eng.Close() // lets steps that are executed end; what is left goes on in the next process
	ctx = durable.NewContext(ctx, eng)

	if _, err := durable.Recover(ctx); err != nil { // goes on with what is there, and takes work from now on
		return err
	}
	first, err := greeting.Start(ctx, "greet-ann", "Ann", durable.OnQueue("greetings")) // once, however often it is called
	if err != nil {
		return err
	}
	n, err := first.Wait(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d greetings; pages on http://%s, Ctrl-C ends\n", n, address)
	return dashboard.ListenAndServe(ctx, address, eng, dashboard.Options{ShowPayloads: true})
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: program app.db, or program postgres://user@host/database")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1], "127.0.0.1:8233"); err != nil {
		log.Print(err)
		os.Exit(1)
	}
}
