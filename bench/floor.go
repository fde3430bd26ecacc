package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// A floor is the best that a user could write by hand: single inserts through
// database/sql with a prepared statement, into a table of the same shape as the events
// of the store, with the same fence (a row is accepted only after its predecessor of
// the same epoch), each a durable commit.
//
// The rows are copies of one that the store wrote, so that the sizes agree. Only their
// place in the log differs.
type floor struct {
	db    *sql.DB
	conn  *sql.Conn
	stmt  *sql.Stmt
	args  []any
	place int // of the column in args that counts up
	blob  int // of the payload in args
}

var errFenced = errors.New("the floor's own fence refused a row")

// singles makes n inserts and returns how long they took.
func (f *floor) singles(_ context.Context, n int) (time.Duration, error) {
	began := time.Now()
	for range n {
		if err := f.single(); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// p50 makes n inserts and returns the median of how long one took, in microseconds.
func (f *floor) p50(n int) (float64, error) {
	took := make([]float64, n)
	for i := range took {
		began := time.Now()
		if err := f.single(); err != nil {
			return 0, err
		}
		took[i] = micros(time.Since(began))
	}
	return median(took), nil
}

// single makes one insert.
func (f *floor) single() error {
	seq, ok := f.args[f.place].(int64)
	if !ok {
		return fmt.Errorf("the place in the log is a %T", f.args[f.place])
	}
	f.args[f.place] = seq + 1
	// A context that can be cancelled would cost a goroutine for each insert.
	res, err := f.stmt.ExecContext(context.Background(), f.args...)
	if err != nil {
		return err
	}
	if rows, err := res.RowsAffected(); err != nil {
		return err
	} else if rows != 1 {
		return errFenced
	}
	return nil
}

// Close ends the floor.
func (f *floor) Close() error {
	return errors.Join(f.stmt.Close(), f.conn.Close(), f.db.Close())
}

// A column of the events table.
type column struct{ name, typ string }

// sample is a row of the events table.
type sample struct {
	columns []column
	values  []any
}

func (s sample) index(name string) (int, error) {
	i := slices.IndexFunc(s.columns, func(c column) bool { return c.name == name })
	if i < 0 {
		return 0, fmt.Errorf("the events table has no column %s", name)
	}
	return i, nil
}

// names lists the columns for a statement.
func (s sample) names() string {
	var names []string
	for _, c := range s.columns {
		names = append(names, `"`+c.name+`"`)
	}
	return strings.Join(names, ", ")
}

// readSample runs a query that returns one row.
func readSample(ctx context.Context, db *sql.DB, query string) (sample, error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return sample{}, err
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return sample{}, err
	}
	var s sample
	into := make([]any, len(types))
	s.values = make([]any, len(types))
	for i, t := range types {
		s.columns = append(s.columns, column{t.Name(), t.DatabaseTypeName()})
		into[i] = &s.values[i]
	}
	if !rows.Next() {
		return sample{}, errors.Join(errors.New("the store has written no event to copy"), rows.Err())
	}
	if err := rows.Scan(into...); err != nil {
		return sample{}, err
	}
	return s, rows.Err()
}

// prepare fills the floor with its first row, which has no predecessor, and the
// fenced insert after it.
func (f *floor) prepare(ctx context.Context, first, fenced string) error {
	if _, err := f.conn.ExecContext(ctx, first, f.args...); err != nil {
		return fmt.Errorf("first row: %w", err)
	}
	var err error
	f.stmt, err = f.conn.PrepareContext(ctx, fenced)
	return err
}

// withFloor opens a new store with an engine for w, and a floor beside it.
func withFloor(ctx context.Context, t *target, fn func(context.Context, *floor) error, w durable.Definition) error {
	s, err := t.open()
	if err != nil {
		return err
	}
	defer s.Close()
	f, err := t.openFloor(ctx)
	if err != nil {
		return err
	}
	defer f.Close()
	return withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error { return fn(ctx, f) }, w)
}
