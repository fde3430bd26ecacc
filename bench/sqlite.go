package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	_ "github.com/mattn/go-sqlite3"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// The modes of SQLite: FULL survives a power cut and is the store's default.
const (
	modeFull   = "FULL"
	modeNormal = "NORMAL"
)

var files atomic.Int64

func openSQLite(path, mode string) (store.Store, error) {
	sync := sqlite.Full
	if mode == modeNormal {
		sync = sqlite.Normal
	}
	return sqlite.OpenOptions(path, sqlite.Options{Synchronous: sync})
}

// settleSQLite writes to the disk what is left of a fill, which does not wait for it: otherwise
// the first checkpoint of the WAL that does waits for all of it.
func settleSQLite(ctx context.Context, path string) (err error) {
	db, err := sql.Open("sqlite3", "file:"+path+"?_synchronous=FULL&_busy_timeout=10000")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	// A checkpoint of nothing would not wait for the file.
	for _, statement := range []string{"CREATE TABLE bench_settled (at)", "DROP TABLE bench_settled", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("settle %s: %w", path, err)
		}
	}
	return nil
}

func sqliteTarget(dir, mode string) *target {
	path := func() string { return filepath.Join(dir, fmt.Sprintf("%d.db", files.Add(1))) }
	return &target{
		name: "sqlite", mode: mode,
		open:   func() (store.Store, error) { return openSQLite(path(), mode) },
		create: func(context.Context) (string, error) { return path(), nil },
		remove: func(path string) error {
			var errs []error
			for _, suffix := range []string{"", "-wal", "-shm"} {
				if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
					errs = append(errs, err)
				}
			}
			return errors.Join(errs...)
		},
		size:   sqliteSize,
		settle: settleSQLite,
		openFloor: func(ctx context.Context) (*floor, error) {
			p := path()
			s, err := openSQLite(p, mode)
			if err != nil {
				return nil, err
			}
			if err := writeSample(ctx, s); err != nil {
				return nil, err
			}
			return sqliteFloor(ctx, p, mode)
		},
	}
}

// sqliteSize counts the pages in use: those of deleted runs are used again.
func sqliteSize(ctx context.Context, path string) (bytes float64, err error) {
	db, err := sql.Open("sqlite3", "file:"+path+"?_query_only=1&_busy_timeout=10000")
	if err != nil {
		return 0, err
	}
	defer db.Close()
	const used = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()"
	err = db.QueryRowContext(ctx, used).Scan(&bytes)
	return bytes, err
}

// sqliteFloor makes a table of the shape of the store's events next to it, and fenced
// inserts into that.
func sqliteFloor(ctx context.Context, path, mode string) (*floor, error) {
	db, err := sql.Open("sqlite3", "file:"+path+"?_journal_mode=WAL&_mutex=no&_synchronous="+mode)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	var create string
	err = db.QueryRowContext(ctx, "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'durable_events'").Scan(&create)
	if err != nil {
		return nil, fmt.Errorf("reading the shape of the events: %w", err)
	}
	if _, err := db.ExecContext(ctx, strings.Replace(create, "durable_events", "floor_events", 1)); err != nil {
		return nil, err
	}
	row, err := readSample(ctx, db, "SELECT * FROM durable_events WHERE type = 'step_completed' ORDER BY place DESC LIMIT 1")
	if err != nil {
		return nil, err
	}
	place, err := row.index("place")
	if err != nil {
		return nil, err
	}
	epoch, err := row.index("epoch")
	if err != nil {
		return nil, err
	}
	var parameters []string
	for i := range row.columns {
		parameters = append(parameters, fmt.Sprintf("?%d", i+1))
	}
	insert := fmt.Sprintf("INSERT INTO floor_events (%s) VALUES (%s)", row.names(), strings.Join(parameters, ", "))
	blob, err := row.index("payload")
	if err != nil {
		return nil, err
	}
	f := &floor{db: db, args: row.values, place: place, blob: blob}
	if f.conn, err = db.Conn(ctx); err != nil {
		return nil, err
	}
	parameters[epoch] = fmt.Sprintf("(SELECT ?%d FROM floor_events WHERE place = ?%d - 1 AND epoch = ?%d)", epoch+1, place+1, epoch+1)
	fenced := fmt.Sprintf("INSERT OR IGNORE INTO floor_events (%s) VALUES (%s)", row.names(), strings.Join(parameters, ", "))
	return f, f.prepare(ctx, insert, fenced)
}
