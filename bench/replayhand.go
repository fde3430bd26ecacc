package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// replayByHand reads a history without an engine, checks each event as a replay must, and decodes
// its result: what is left of REPLAY if nobody claims the run, keeps its calls, or executes its code.
func replayByHand(ctx context.Context, s store.Store, id string) error {
	h, err := s.Load(ctx, id, store.Cursor{})
	if err != nil {
		return err
	}
	return replayEvents(id, h.Events)
}

// replayEvents checks that nothing of a log is missing or was changed, and decodes the results.
func replayEvents(id string, events iter.Seq2[store.Event, error]) error {
	var sealing store.Sealing
	var seq int64
	var sum uint32
	results, total := 0, 0
	for e, err := range events {
		if err != nil {
			return err
		}
		if e.Seq != seq+1 || sealing.Seal(id, sum, &e) != e.Sum {
			return fmt.Errorf("event %d of the history does not follow event %d", e.Seq, seq)
		}
		if seq, sum = e.Seq, e.Sum; e.Type != store.StepCompleted {
			continue
		}
		var v int
		if !payload.DecodeInt(e.Payload, &v) {
			return fmt.Errorf("the result of event %d is no int", e.Seq)
		}
		results, total = results+1, total+v
	}
	if results != replaySteps || total != replaySteps*(replaySteps-1)/2 {
		return fmt.Errorf("the history has %d results, whose sum is %d", results, total)
	}
	return nil
}

// rowsByHand is replayByHand without the store: one statement through database/sql.
type rowsByHand struct {
	db   *sql.DB
	stmt *sql.Stmt
}

// The columns of an event, and where they are in the tables of the store.
const (
	handColumns = "e.epoch, e.branch, e.type, e.key, e.attempt, e.ordinal, e.at, e.took, e.active, e.steps, e.data, e.payload, e.sum"

	sqliteRows   = "SELECT e.place & 268435455, " + handColumns + " FROM durable_runs r JOIN durable_events e ON e.place > r.no << 28 AND e.place < r.no + 1 << 28 WHERE r.id = ?1 ORDER BY e.place"
	postgresRows = "SELECT e.seq, " + handColumns + " FROM durable_runs r JOIN durable_events e ON e.run_no = r.no WHERE r.id = $1 ORDER BY e.seq"
)

func openRowsByHand(ctx context.Context, t *target, address string) (*rowsByHand, error) {
	driver, source, text := "postgres", address, postgresRows
	if t.name == "sqlite" {
		driver, source, text = "sqlite3", "file:"+address+"?_query_only=1&_mutex=no", sqliteRows
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	stmt, err := db.PrepareContext(ctx, text)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &rowsByHand{db: db, stmt: stmt}, nil
}

func (r *rowsByHand) Close() error { return errors.Join(r.stmt.Close(), r.db.Close()) }

func (r *rowsByHand) replay(ctx context.Context, id string) error {
	rows, err := r.stmt.QueryContext(ctx, id)
	if err != nil {
		return err
	}
	defer rows.Close()
	return replayEvents(id, func(yield func(store.Event, error) bool) {
		for rows.Next() {
			var e store.Event
			var took, active int64
			err := rows.Scan(&e.Seq, &e.Epoch, &e.Branch, &e.Type, &e.Key, &e.Attempt, &e.Ordinal, &e.At, &took, &active, &e.Steps, &e.Data, &e.Payload, &e.Sum)
			e.Took, e.Active = time.Duration(took)*time.Microsecond, time.Duration(active)*time.Microsecond
			if !yield(e, err) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(store.Event{}, err)
		}
	})
}
