package pgtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lib/pq"
)

// The environment variables this package looks at.
const (
	EnvDSN     = "DURABLE_POSTGRES_DSN"     // a server to use instead of an own cluster
	EnvSkip    = "DURABLE_POSTGRES"         // "skip", "required", or neither: tests are left out where there is no server
	EnvInstall = "DURABLE_POSTGRES_INSTALL" // "0" forbids to install the system package
)

// The cluster all tests of this process share. It is never stopped here: the
// watchdog does that when the process ends.
var shared struct {
	sync.Once
	dsn string
	err error
}

// DSN returns a connection string for a database that is empty and belongs to
// t alone. Where the user of DURABLE_POSTGRES_DSN may not create databases, it
// is a schema, first in the search path.
func DSN(t testing.TB) string {
	t.Helper()
	skip(t)
	shared.Do(func() {
		if shared.dsn = os.Getenv(EnvDSN); shared.dsn != "" {
			return
		}
		var c *Cluster
		if c, shared.err = NewForTests(); shared.err == nil {
			shared.dsn = c.DSN()
		}
	})
	if missing(shared.err) {
		t.Skip(leftOut, shared.err)
	}
	if shared.err != nil {
		t.Fatalf("pgtest: %v", shared.err)
	}
	return fresh(t, shared.dsn)
}

// Start returns a cluster of t's own, stopped and removed when t ends.
func Start(t testing.TB) *Cluster {
	t.Helper()
	skip(t)
	c, err := NewForTests()
	if missing(err) {
		t.Skip(leftOut, err)
	}
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the server's log:\n%s", c.LogTail(40))
		}
		if err := c.Close(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return c
}

func skip(t testing.TB) {
	t.Helper()
	if os.Getenv(EnvSkip) == "skip" {
		t.Skipf("PostgreSQL tests are skipped because %s=skip", EnvSkip)
	}
}

// fresh makes a database, or a schema, on the server of dsn.
func fresh(t testing.TB, dsn string) string {
	t.Helper()
	name := freshName()
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		t.Fatalf("pgtest: %s does not parse: %v", EnvDSN, err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// A copy of files costs the server half of what a copy through its log does, and it has the
	// caches of the template, which every first connection makes otherwise. The server may not know the word.
	create, parameter := "CREATE DATABASE "+pq.QuoteIdentifier(name), "dbname"
	if _, err = db.ExecContext(ctx, create+" STRATEGY file_copy"); err != nil {
		_, err = db.ExecContext(ctx, create)
	}
	if code(err) == "42501" {
		_, err = db.ExecContext(ctx, "CREATE SCHEMA "+pq.QuoteIdentifier(name))
		parameter = "search_path"
	}
	if err != nil {
		t.Fatalf("pgtest: the server cannot be used (is %s right?): %v", EnvDSN, err)
	}
	t.Cleanup(func() {
		if err := drop(dsn, parameter, name); err != nil {
			t.Errorf("pgtest: dropping %s: %v", name, err)
		}
	})
	return With(dsn, parameter, name)
}

func drop(dsn, parameter, name string) error {
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if parameter == "search_path" {
		_, err = db.ExecContext(ctx, "DROP SCHEMA IF EXISTS "+pq.QuoteIdentifier(name)+" CASCADE")
		return err
	}
	// A failed test may have left connections open.
	_, err = db.ExecContext(ctx, "DROP DATABASE IF EXISTS "+pq.QuoteIdentifier(name)+" WITH (FORCE)")
	return err
}

func freshName() string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails
	return "durable_test_" + time.Now().UTC().Format("0102_150405_") + hex.EncodeToString(b[:])
}

func code(err error) string {
	if e, ok := errors.AsType[*pq.Error](err); ok {
		return string(e.Code)
	}
	return ""
}

// With returns dsn, in either of its two forms, with one parameter set to
// value. Values may not contain quotes or backslashes.
func With(dsn, parameter, value string) string {
	if !strings.HasPrefix(dsn, "postgres://") && !strings.HasPrefix(dsn, "postgresql://") {
		return fmt.Sprintf("%s %s='%s'", dsn, parameter, value) // the last one counts
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn // sql.Open will say it better
	}
	q := u.Query()
	switch parameter {
	case "dbname":
		u.Path = "/" + value
		q.Del("dbname")
	default:
		q.Set(parameter, value)
	}
	u.RawQuery = q.Encode()
	return u.String()
}
