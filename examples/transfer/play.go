package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/holdfast-dev/holdfast/examples/internal/demo"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// play founds a bank, lets it work while it is killed or its connections are cut, and
// looks at its books.
func play(ctx context.Context, out io.Writer, o options) error {
	dir, err := os.MkdirTemp("", "holdfast-transfer-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	dsn := filepath.Join(dir, "bank.db")
	if o.store == "postgres" {
		if dsn = o.dsn; dsn == "" {
			server, err := pgtest.New()
			if err != nil {
				return fmt.Errorf("no PostgreSQL could be started, and -dsn names none: %w", err)
			}
			defer server.Close()
			dsn = server.DSN()
		}
	}
	st, err := openStore(o.store, dsn) // makes the file and the store's tables
	if err != nil {
		return err
	}
	if err := st.Close(); err != nil {
		return err
	}
	bank, err := openBank(o.store, dsn)
	if err != nil {
		return err
	}
	defer bank.db.Close()
	if err := bank.found(); err != nil {
		return err
	}
	path := filepath.Join(dir, "book")
	if bank.book, err = demo.OpenBook(path); err != nil {
		return err
	}
	defer bank.book.Close()
	fmt.Fprintf(out, "%d accounts with %d each, %d transfers, on %s (seed %d).\n", accounts, deposit, o.transfers, o.store, o.seed)
	how := ""
	if o.cuts > 0 {
		cuts, err := cutOff(ctx, bank, o)
		if err != nil {
			return err
		}
		how = fmt.Sprintf("The connection was cut %d times at COMMIT", cuts)
	} else {
		kills, err := killed(ctx, out, bank, path, o)
		if err != nil {
			return err
		}
		how = fmt.Sprintf("Killed %d times", kills)
	}
	return verdict(out, bank, how)
}

// killed lets a worker work, and kills it.
func killed(ctx context.Context, out io.Writer, bank *Bank, book string, o options) (int, error) {
	n := 0
	k := &demo.Killer{
		Role: roleWorker, Args: []string{bank.kind, bank.dsn, book, strconv.Itoa(o.transfers)},
		Rand: rand.New(rand.NewPCG(o.seed, 0)), Book: book,
		Left: func() (int, error) {
			a, err := bank.audit()
			return 2 * (o.transfers - a.Finished), err
		},
		Killed: func() error {
			n++
			a, err := bank.audit()
			fmt.Fprintf(out, "kill -9 number %2d: %3d orders, %3d transfers are through, and the accounts hold %d\n", n, a.Orders, a.Finished, a.Sum)
			return err
		},
	}
	for {
		if _, err := k.Run(ctx, o.kills-n); err != nil || n >= o.kills {
			return n, err
		}
		o.transfers += 100 // the work was done too early
		k.Args[3] = strconv.Itoa(o.transfers)
	}
}

// verdict looks at the books, once the work is done.
func verdict(out io.Writer, bank *Bank, how string) error {
	a, err := bank.audit()
	if err != nil {
		return err
	}
	refused := 0
	for n := range a.Orders {
		if orderOf(n).Amount > accounts*deposit {
			refused++
		}
	}
	var inTransit, movements int
	if err := bank.db.QueryRow(`SELECT (SELECT balance FROM accounts WHERE id = 0), (SELECT count(*) FROM movements)`).Scan(&inTransit, &movements); err != nil {
		return err
	}
	// One that found no money when its turn came has left nothing either.
	if inTransit != 0 || movements != 4*a.Finished || a.Finished > a.Orders-refused || a.Finished == 0 {
		return fmt.Errorf("%d is in transit, and %d transfers have made %d movements", inTransit, a.Finished, movements)
	}
	fmt.Fprintf(out, "%s: the accounts hold %d as they did; %d of %d transfers were made, each once, and %d found no money.\n", how, a.Sum, a.Finished, a.Orders, a.Orders-a.Finished)
	return nil
}
