package pgtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Replica makes and starts a cluster that follows c by streaming replication, and answers
// queries that only read. It listens on the port of instead, a cluster that has ended, so that
// one connection string with both hosts stays right over any number of failovers; nil: on a
// free port. The caller must Close it.
func (c *Cluster) Replica(instead *Cluster) (*Cluster, error) {
	dir, err := memoryDir(c.as)
	if err != nil {
		return nil, err
	}
	r := &Cluster{bin: c.bin, dir: dir, as: c.as, password: c.password}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	// -R writes down where the primary is, and how to get in.
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "pg_basebackup"), "-D", r.Data(), "-d", c.DSN(), "-R", "-X", "stream", "-c", "fast", "--no-sync")
	cmd.Dir = dir
	c.as.run(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("pg_basebackup: %w\n%s", err, out)
	}
	if instead != nil {
		r.port = instead.port
	} else if r.port, err = freePort(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	if err := r.start(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return r, nil
}

// StartReplica is Replica for a test, which ends when t does.
func (c *Cluster) StartReplica(t testing.TB, instead *Cluster) *Cluster {
	t.Helper()
	r, err := c.Replica(instead)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return r
}

// Promote makes a replica the primary, and returns when it takes writes.
func (c *Cluster) Promote() error { return c.exec("SELECT pg_promote()") }

// Synchronous makes c, a primary, acknowledge a commit only once a replica has it, or no longer.
func (c *Cluster) Synchronous(on bool) error {
	names := "''"
	if on {
		names = "'*'"
	}
	return c.exec("ALTER SYSTEM SET synchronous_standby_names = "+names, "SELECT pg_reload_conf()")
}

// Follows reports how many replicas receive what c writes, and how many of them a commit waits
// for.
func (c *Cluster) Follows() (all, synchronous int, err error) {
	db, err := sql.Open("postgres", c.DSN())
	if err != nil {
		return 0, 0, err
	}
	defer db.Close()
	err = db.QueryRow("SELECT count(*), count(*) FILTER (WHERE sync_state = 'sync') FROM pg_stat_replication WHERE state = 'streaming'").Scan(&all, &synchronous)
	return all, synchronous, err
}

func (c *Cluster) exec(statements ...string) error {
	db, err := sql.Open("postgres", c.DSN())
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	for _, q := range statements {
		_, err := db.ExecContext(ctx, q)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
