package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/lib/pq"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// openPostgres gives the store one connection for its writes, as the floor has.
func openPostgres(dsn string) (store.Store, error) {
	return postgres.OpenOptions(dsn, postgres.Options{Writers: 1})
}

// postgresTarget uses the server of DURABLE_POSTGRES_DSN, or starts one.
func postgresTarget() (*target, func() error, error) {
	server, stop := os.Getenv(pgtest.EnvDSN), func() error { return nil }
	if server == "" {
		c, err := pgtest.New()
		if err != nil {
			return nil, nil, err
		}
		server, stop = c.DSN(), c.Close
	}
	var made []string
	database := func(ctx context.Context) (string, error) {
		name := fmt.Sprintf("durable_bench_%d_%d", os.Getpid(), len(made))
		made = append(made, name)
		return pgtest.With(server, "dbname", name), execute(ctx, server, "CREATE DATABASE "+name)
	}
	closeAll := func() error {
		var errs []error
		for _, name := range made {
			errs = append(errs, execute(context.Background(), server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"))
		}
		return errors.Join(append(errs, stop())...)
	}
	remove := func(dsn string) error {
		i := slices.IndexFunc(made, func(name string) bool { return pgtest.With(server, "dbname", name) == dsn })
		if i < 0 {
			return errors.New("the database is none of ours")
		}
		return execute(context.Background(), server, "DROP DATABASE IF EXISTS "+made[i]+" WITH (FORCE)")
	}
	return &target{
		name: "postgres", mode: "1 connection", create: database, remove: remove, size: postgresSize,
		open: func() (store.Store, error) {
			dsn, err := database(context.Background())
			if err != nil {
				return nil, err
			}
			return openPostgres(dsn)
		},
		openFloor: func(ctx context.Context) (*floor, error) {
			dsn, err := database(ctx)
			if err != nil {
				return nil, err
			}
			s, err := openPostgres(dsn)
			if err != nil {
				return nil, err
			}
			if err := writeSample(ctx, s); err != nil {
				return nil, err
			}
			return postgresFloor(ctx, dsn)
		},
		settle: settlePostgres,
	}, closeAll, nil
}

// settlePostgres does what autovacuum does every minute, and the checkpoint that a server begins
// by itself when much was written. Until that has ended, each page is written to the log again. Of
// an index autovacuum removes nothing before two percent of the table's pages have deleted rows.
func settlePostgres(ctx context.Context, dsn string) error {
	if err := execute(ctx, dsn, "VACUUM (ANALYZE, INDEX_CLEANUP ON)"); err != nil {
		return err
	}
	err := execute(ctx, dsn, "CHECKPOINT")
	if refused := (*pq.Error)(nil); errors.As(err, &refused) && refused.Code.Name() == "insufficient_privilege" {
		return nil
	}
	return err
}

func postgresSize(ctx context.Context, dsn string) (bytes float64, err error) {
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx, "SELECT pg_catalog.pg_database_size(current_database())").Scan(&bytes)
	return bytes, err
}

func execute(ctx context.Context, dsn, statement string) error {
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statement)
	return err
}

// postgresFloor makes a table of the shape of the store's events next to it, and fenced
// inserts into that.
func postgresFloor(ctx context.Context, dsn string) (*floor, error) {
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, "CREATE TABLE floor_events (LIKE durable_events INCLUDING ALL)"); err != nil {
		return nil, err
	}
	row, err := readSample(ctx, db, "SELECT * FROM durable_events WHERE type = 'step_completed' ORDER BY seq DESC LIMIT 1")
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	for _, name := range []string{"run_no", "seq", "epoch", "payload"} {
		if at[name], err = row.index(name); err != nil {
			return nil, err
		}
	}
	var parameters []string
	for i, c := range row.columns {
		parameters = append(parameters, fmt.Sprintf("CAST($%d AS %s)", i+1, c.typ))
		// The driver sends bytes as bytea, and text columns come as bytes.
		if b, ok := row.values[i].([]byte); ok && !strings.EqualFold(c.typ, "bytea") {
			row.values[i] = string(b)
		}
	}
	insert := fmt.Sprintf("INSERT INTO floor_events (%s) SELECT %s", row.names(), strings.Join(parameters, ", "))
	f := &floor{db: db, args: row.values, place: at["seq"], blob: at["payload"]}
	if f.conn, err = db.Conn(ctx); err != nil {
		return nil, err
	}
	fence := fmt.Sprintf(" WHERE EXISTS (SELECT 1 FROM floor_events WHERE run_no = $%d AND seq = $%d - 1 AND epoch = $%d)",
		at["run_no"]+1, at["seq"]+1, at["epoch"]+1)
	return f, f.prepare(ctx, insert, insert+fence)
}
