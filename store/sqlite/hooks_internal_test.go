//go:build cgo

package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
)

// Setting runs a pragma on the writer's connection, for tests of what a
// connection may meet.
func (s *Store) Setting(pragma string) error {
	c, err := s.take(context.Background())
	if err != nil {
		return err
	}
	defer s.give(c)
	return c.setting([2]string{pragma, ""})
}

// Statements returns the statements of the package by name.
func (s *Store) Statements() map[string]string {
	all := make(map[string]string)
	for name, q := range s.q.names() {
		all[name] = (*q).text
	}
	return all
}

// Ask returns the answer to a pragma on the writer's connection.
func (s *Store) Ask(pragma string) (answer string, err error) {
	c, err := s.take(context.Background())
	if err != nil {
		return "", err
	}
	defer s.give(c)
	err = c.query(&query{pragma}, func(row []driver.Value) error {
		answer = fmt.Sprint(row[0])
		return nil
	})
	return answer, err
}

// WriteOnReader tries to write on a connection for reading.
func (s *Store) WriteOnReader() error {
	_, err := s.readers.Exec("CREATE TABLE x (a)")
	return err
}

// Knows returns options of a program of before, which knows the first n steps of the schema.
func (o Options) Knows(n int) Options {
	o.migrations = func(ms []sqlstore.Migration) []sqlstore.Migration { return ms[:n] }
	return o
}

// Later returns options of a program that knows more steps of the schema than
// there are.
func (o Options) Later(steps ...string) Options {
	o.migrations = func(ms []sqlstore.Migration) []sqlstore.Migration {
		for _, sql := range steps {
			ms = append(ms, sqlstore.Migration{Version: len(ms) + 1, Name: fmt.Sprint("later_", len(ms)+1), SQL: sql})
		}
		return ms
	}
	return o
}
