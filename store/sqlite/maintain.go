//go:build cgo

package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

var _ store.Maintainer = (*Store)(nil)

// Maintain implements store.Maintainer: it updates the statistics by sampling,
// gives free pages back to the file system if the file was created for that
// (Options.GiveBack), and checkpoints and truncates the WAL. Writers get their
// turn in between. It fails if readers that did not finish kept it from
// truncating a large WAL.
func (s *Store) Maintain(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	for _, pragma := range []string{
		"PRAGMA analysis_limit = 400",
		"PRAGMA optimize = 0x10002", // including tables that were never analyzed
	} {
		if _, err := s.care(ctx, pragma); err != nil {
			return s.fail("update the statistics", err, false)
		}
	}
	incremental, err := s.care(ctx, "PRAGMA auto_vacuum")
	if err != nil {
		return s.fail("look for free pages", err, false)
	}
	for incremental == 2 {
		free, err := s.care(ctx, "PRAGMA freelist_count")
		if err == nil && free == 0 {
			break
		}
		if err == nil {
			_, err = s.care(ctx, vacuumSome)
		}
		if err != nil {
			return s.fail("give free pages back", err, false)
		}
	}
	if s.memory {
		return nil
	}
	return s.foldIn(ctx)
}

func (s *Store) foldIn(ctx context.Context) error {
	wait := careWait
	if deadline, ok := ctx.Deadline(); ok {
		wait = max(min(wait, time.Until(deadline)), 0)
	}
	c, err := s.take(ctx)
	if err != nil {
		return err
	}
	defer s.give(c)
	// In short waits, because nothing can be written meanwhile.
	done := false
	for began := time.Now(); ; {
		if done, err = c.foldIn(min(wait, walWait)); broken(err) {
			c.drop()
		}
		if done || (err != nil && !busy(err)) || time.Since(began) >= wait || s.walSize() < walLarge {
			break
		}
	}
	if size := s.walSize(); err == nil && !done && size >= walLarge {
		return fmt.Errorf("sqlite: %s: its WAL has %d MB and could not be folded into it, because somebody has been reading for %v: end that, such as a shell or a backup with an open transaction, and try again",
			s.name, size>>20, wait.Round(time.Second))
	}
	if busy(err) {
		err = nil // another process is checkpointing it
	}
	return s.fail("fold the WAL into the file", err, false)
}

// vacuumSome gives up to a megabyte back, so that writers wait for milliseconds.
const vacuumSome = "PRAGMA incremental_vacuum(256)"

// care runs a pragma on the writer's connection, in its own transaction if it
// writes, and returns the first value of its answer.
func (s *Store) care(ctx context.Context, pragma string) (answer int64, err error) {
	c, err := s.take(ctx)
	if err != nil {
		return 0, err
	}
	defer s.give(c)
	err = s.whileBusy(ctx, func() error {
		return c.ask(pragma, func(row []driver.Value) { answer, _ = row[0].(int64) })
	})
	if broken(err) {
		c.drop()
	}
	return answer, err
}

// ask runs a statement that is not worth keeping prepared, and calls each for
// its rows, if any. Some pragmas read the database when they are prepared, so a
// kept one would be out of date.
func (c *conn) ask(text string, each func(row []driver.Value)) error {
	rows, err := c.raw.Query(text, nil)
	if err != nil {
		return err
	}
	err = eachRow(rows, func(row []driver.Value) error {
		if each != nil && len(row) > 0 {
			each(row)
		}
		return nil
	})
	return errors.Join(err, rows.Close())
}
