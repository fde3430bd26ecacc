package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/holdfast-dev/holdfast/store"
)

// Restore implements store.Migrator. from is the schema of a copy that Backup or
// a migration made; it stays. The replaced tables move unchanged to a schema of
// their own, whose name is returned; DROP SCHEMA removes it. Everything named
// durable_… in the schema counts as ours. The restored tables have the owners of the
// replaced ones, and the rights granted in them; views of your own still show the
// replaced tables until you make them again.
//
// It fails with an error that matches store.ErrOwned while an executor lives:
// stop all programs and wait until the leases of crashed ones have expired. If an
// executor's last beat lies in the future because the server's clock was set back,
// Restore itself waits for one lease, for at most a minute, and goes on if there
// was no beat meanwhile. A backup of a newer version of the program gives a
// *store.SchemaError.
func (sc *Schema) Restore(ctx context.Context, from string) (kept string, err error) {
	s := sc.s
	if err := checkSchemaName(from); err != nil {
		return "", err
	}
	if from == s.schema {
		return "", fmt.Errorf("postgres: schema %s cannot be restored from itself: %w", from, store.ErrInvalid)
	}
	if err := s.enter(ctx); err != nil {
		return "", err
	}
	defer s.calls.Done()
	if err := s.createSchema(ctx); err != nil {
		return "", err
	}
	silent, err := s.silentAhead(ctx)
	if err != nil {
		return "", described("look for executors", err)
	}
	err = s.alone(ctx, func() error {
		return s.within(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted}, func(tx *sqlx.Tx) error {
			kept, err = s.restore(ctx, tx, from, silent)
			return err
		})
	})
	switch {
	case err == nil:
		return kept, nil
	case errors.Is(err, store.ErrInvalid), errors.Is(err, store.ErrSchema), errors.Is(err, store.ErrOwned):
		return "", err
	}
	return "", described("restore from schema "+from, err)
}

// aheadWait is the longest that Restore waits for a beat.
const aheadWait = time.Minute

// lastBeat is a row of schema_ahead or schema_owners.
type lastBeat struct {
	ID     string `db:"id"`
	BeatAt int64  `db:"beat_at"`
	Lease  int64  `db:"lease"`
}

// silentAhead returns the executors whose last beat lies in the future, with that
// beat, after waiting long enough for live ones to beat again.
func (s *Store) silentAhead(ctx context.Context) (map[string]int64, error) {
	version, err := s.migrations.Current(ctx, s.db)
	if err != nil || version == 0 {
		return nil, err
	}
	var ahead []lastBeat
	if err := s.db.SelectContext(ctx, &ahead, s.sql.Text("schema_ahead")); err != nil {
		return nil, err
	}
	silent := map[string]int64{}
	var wait time.Duration
	for _, e := range ahead {
		if lease := time.Duration(e.Lease) * time.Microsecond; lease <= aheadWait {
			silent[e.ID] = e.BeatAt
			wait = max(wait, lease)
		}
	}
	return silent, pause(ctx, s.closing, wait)
}

func (s *Store) restore(ctx context.Context, tx *sqlx.Tx, from string, silent map[string]int64) (kept string, err error) {
	if err := s.unlimited(ctx, tx); err != nil {
		return "", err
	}
	if _, err := tx.ExecContext(ctx, s.migrations.Exclude); err != nil {
		return "", err
	}
	version, err := s.versionOf(ctx, tx, from)
	if err != nil {
		return "", err
	}
	backup, err := s.relations(ctx, tx, from)
	if err != nil {
		return "", err
	}
	kept, numbers, err := s.moveAway(ctx, tx, silent)
	if err != nil {
		return "", err
	}
	// The tables are created by running the migrations up to the version, so that
	// they have the indexes and checks of that version, whatever it is.
	if err := s.migrations.Steps(ctx, tx, 0, version); err != nil {
		return "", err
	}
	for _, r := range backup {
		if !r.table() || r.Name == "durable_schema" {
			continue
		}
		if err := s.copyBack(ctx, tx, from, r.Name, numbers); err != nil {
			return "", fmt.Errorf("copy %s: %w", r.Name, err)
		}
	}
	return kept, carryRights(ctx, tx, s.sql.Text("rights_of"), kept, s.schema)
}

// carryRights gives the tables the owners of those that they replace, because who restores
// is often not who uses them, and the rights that were granted to others, such as programs
// that insert requests.
func carryRights(ctx context.Context, tx *sqlx.Tx, rights, from, to string) error {
	var statements []string
	if err := tx.SelectContext(ctx, &statements, rights, from, to); err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("give back rights (%s): %w", statement, err)
		}
	}
	return nil
}

// versionOf returns the version of a copy.
func (s *Store) versionOf(ctx context.Context, tx *sqlx.Tx, schema string) (version int, err error) {
	var there bool
	if err := tx.GetContext(ctx, &there, "SELECT pg_catalog.to_regclass($1) IS NOT NULL", in(schema, "durable_schema")); err != nil {
		return 0, err
	}
	if there {
		if err := tx.GetContext(ctx, &version, "SELECT coalesce(pg_catalog.max(version), 0) FROM "+in(schema, "durable_schema")); err != nil {
			return 0, err
		}
	}
	if version == 0 {
		return 0, fmt.Errorf("postgres: schema %s is no backup: it has no durable_schema: %w", schema, store.ErrInvalid)
	}
	if know := s.migrations.Latest(); version > know {
		return 0, &store.SchemaError{Have: version, Know: know, Todo: "restore this backup with the program that made it, or a newer one"}
	}
	return version, nil
}

// moveAway moves our tables and views into another schema. numbers holds, by table
// and column, the last number that the server assigned. silent holds executors
// that are dead if this is still their last beat.
func (s *Store) moveAway(ctx context.Context, tx *sqlx.Tx, silent map[string]int64) (to string, numbers map[string]int64, err error) {
	numbers = map[string]int64{}
	if err := s.lockTables(ctx, tx, "ACCESS EXCLUSIVE"); err != nil {
		return "", nil, err
	}
	all, err := s.relations(ctx, tx, s.schema)
	if err != nil || len(all) == 0 {
		return "", numbers, err
	}
	version, err := s.migrations.Current(ctx, tx)
	if err != nil {
		return "", nil, err
	}
	if version > 0 {
		var owners []lastBeat
		if err := tx.SelectContext(ctx, &owners, s.sql.Text("schema_owners")); err != nil {
			return "", nil, err
		}
		var live []string
		for _, e := range owners {
			if silent[e.ID] != e.BeatAt {
				live = append(live, e.ID)
			}
		}
		if len(live) > 0 {
			return "", nil, fmt.Errorf("postgres: the store is in use by the executors %s: stop their programs, or wait until the leases of those that crashed have run out: %w",
				strings.Join(live, ", "), store.ErrOwned)
		}
	}
	to = copySchema("replaced", s.schema, version, time.Now())
	if _, err := tx.ExecContext(ctx, "CREATE SCHEMA "+pq.QuoteIdentifier(to)); err != nil {
		return "", nil, creating(to, err)
	}
	for _, r := range all {
		kind := "VIEW"
		if r.table() {
			kind = "TABLE"
			if err := s.lastNumbers(ctx, tx, r.Name, numbers); err != nil {
				return "", nil, err
			}
		}
		if _, err := tx.ExecContext(ctx, "ALTER "+kind+" "+in(s.schema, r.Name)+" SET SCHEMA "+pq.QuoteIdentifier(to)); err != nil {
			return "", nil, fmt.Errorf("move %s: %w", r.Name, err)
		}
	}
	return to, numbers, nil
}

func (s *Store) lastNumbers(ctx context.Context, tx *sqlx.Tx, table string, numbers map[string]int64) error {
	_, numbered, err := s.columns(ctx, tx, s.schema, table)
	if err != nil {
		return err
	}
	for _, column := range numbered {
		var sequence string
		if err := tx.GetContext(ctx, &sequence, "SELECT pg_catalog.pg_get_serial_sequence($1, $2)", in(s.schema, table), column); err != nil {
			return err
		}
		var last int64
		if err := tx.GetContext(ctx, &last, "SELECT last_value FROM "+sequence); err != nil {
			return err
		}
		numbers[table+"."+column] = last
	}
	return nil
}

// copyBack fills a table from a copy. Numbering continues after the highest number
// ever assigned: run numbers are never reused, not even across a restore.
func (s *Store) copyBack(ctx context.Context, tx *sqlx.Tx, from, table string, numbers map[string]int64) error {
	list, _, err := s.columns(ctx, tx, from, table)
	if err != nil {
		return err
	}
	to := in(s.schema, table)
	if _, err := tx.ExecContext(ctx, "INSERT INTO "+to+" ("+list+") OVERRIDING SYSTEM VALUE SELECT "+list+" FROM "+in(from, table)); err != nil {
		return err
	}
	_, numbered, err := s.columns(ctx, tx, s.schema, table)
	if err != nil {
		return err
	}
	for _, column := range numbered {
		_, err := tx.ExecContext(ctx, "SELECT pg_catalog.setval(pg_catalog.pg_get_serial_sequence($1, $2), greatest(1, $3, (SELECT pg_catalog.max("+pq.QuoteIdentifier(column)+") FROM "+to+")))",
			to, column, numbers[table+"."+column])
		if err != nil {
			return err
		}
	}
	return nil
}
