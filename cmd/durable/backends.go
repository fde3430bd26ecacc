package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/holdfast-dev/holdfast/cli"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// noSchema says that there is no store in a database of PostgreSQL.
const noSchema = "no program has made a store in the schema that it leads to. For one in another schema " +
	"(postgres.Options.Schema) add search_path: postgres://host/database?search_path=durable"

// backends are the stores that the command opens. PostgreSQL is asked first: any other
// DSN is a path.
func backends() []cli.Backend {
	return []cli.Backend{
		{
			Name:   "postgres",
			Takes:  isPostgres,
			Open:   openPostgres(postgres.Options{ManualMigrations: true, Writers: 1}),
			Look:   openPostgres(postgres.Options{ReadOnly: true, Writers: 1}),
			Schema: func(dsn string) (cli.Schema, error) { return postgres.OpenSchema(dsn, postgres.Options{}) },
		},
		{
			Name:   "sqlite",
			Takes:  func(dsn string) bool { return !strings.Contains(strings.TrimPrefix(path(dsn), "/"), "://") },
			Open:   openSQLite(sqlite.Options{ManualMigrations: true}),
			Look:   openSQLite(sqlite.Options{ReadOnly: true}),
			Schema: func(dsn string) (cli.Schema, error) { return sqlite.OpenSchema(path(dsn), sqlite.Options{}) },
		},
	}
}

func openPostgres(o postgres.Options) func(context.Context, string) (store.Store, error) {
	return func(ctx context.Context, dsn string) (store.Store, error) {
		sc, err := postgres.OpenSchema(dsn, o)
		if err != nil {
			return nil, err
		}
		if err := isThere(ctx, sc, noSchema, o.ReadOnly); err != nil {
			return nil, err
		}
		return postgres.OpenOptions(dsn, o)
	}
}

func openSQLite(o sqlite.Options) func(context.Context, string) (store.Store, error) {
	return func(ctx context.Context, dsn string) (store.Store, error) {
		if _, err := os.Stat(path(dsn)); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no file %s; the first program that opens a store makes it", path(dsn))
		}
		sc, err := sqlite.OpenSchema(path(dsn), o)
		if err != nil {
			return nil, err
		}
		if err := isThere(ctx, sc, "no program has made a store in this file; the first one that opens it does", o.ReadOnly); err != nil {
			return nil, err
		}
		return sqlite.OpenOptions(path(dsn), o)
	}
}

// schema is what is looked at before a store is opened.
type schema interface {
	cli.Schema
	TakesWrites(ctx context.Context) error
}

// isThere returns an error if there is no store in a database: opening it would make one, in
// whatever database a mistyped name leads to. And it returns one if the store takes no writes,
// unless it is only read.
func isThere(ctx context.Context, sc schema, absent string, readOnly bool) (err error) {
	defer func() { err = errors.Join(err, sc.Close()) }()
	p, err := sc.Plan(ctx)
	switch {
	case err != nil:
	case p.Have == 0:
		err = errors.New(absent)
	case !readOnly:
		err = sc.TakesWrites(ctx)
	}
	return err
}

// isPostgres reports whether a DSN is a PostgreSQL URL or key=value pairs.
func isPostgres(dsn string) bool {
	for _, prefix := range []string{"postgres://", "postgresql://"} {
		if strings.HasPrefix(dsn, prefix) {
			return true
		}
	}
	for _, pair := range []string{"host=", "dbname=", "service="} {
		if strings.HasPrefix(dsn, pair) || strings.Contains(dsn, " "+pair) {
			return true
		}
	}
	return false
}

// path returns the file that an SQLite DSN names.
func path(dsn string) string {
	for _, prefix := range []string{"sqlite://", "sqlite:"} {
		if rest, ok := strings.CutPrefix(dsn, prefix); ok {
			return rest
		}
	}
	return dsn
}
