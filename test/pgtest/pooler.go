package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lib/pq"
)

// Pooler returns a connection string that leads to the database of dsn through a
// PgBouncer of t's own, which gives each transaction another server session. settings
// are further lines of its configuration. PgBouncer is installed like the server if it
// is missing.
func Pooler(t testing.TB, dsn string, settings ...string) string {
	t.Helper()
	skip(t)
	program, err := pgbouncer()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	cfg, err := pq.NewConfig(dsn)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	as, err := unprivileged()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	dir, err := tempDir(as)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	port, err := freePort()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	lines := append([]string{
		"[databases]",
		fmt.Sprintf("* = host=%s port=%d user=%s password='%s'", cfg.Host, cfg.Port, cfg.User, cfg.Password),
		"[pgbouncer]", "listen_addr = 127.0.0.1", fmt.Sprintf("listen_port = %d", port), "unix_socket_dir =",
		"auth_type = any", "pool_mode = transaction", "default_pool_size = 4", "max_client_conn = 200",
		"ignore_startup_parameters = extra_float_digits",
	}, settings...)
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := errors.Join(os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600), as.own(file)); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	var said strings.Builder
	cmd := exec.Command(program, file)
	cmd.Stdout, cmd.Stderr = &said, &said
	as.run(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the pooler said:\n%s", said.String())
		}
	})
	through := (&url.URL{
		Scheme: "postgres", User: url.UserPassword(cfg.User, cfg.Password), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Path: "/" + cfg.Database,
		RawQuery: "sslmode=disable",
	}).String()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			_ = c.Close()
			return through
		}
		select {
		case <-ctx.Done():
			t.Fatalf("pgtest: the pooler does not listen: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// PoolerCarriesStatements reports whether the PgBouncer of Pooler can carry
// prepared statements from session to session, as 1.21 and later do when
// max_prepared_statements is set.
func PoolerCarriesStatements(t testing.TB) bool {
	t.Helper()
	skip(t)
	program, err := pgbouncer()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	out, err := exec.Command(program, "--version").Output()
	if err != nil {
		t.Fatalf("pgtest: %s --version: %v", program, err)
	}
	v := numbers(strings.SplitN(string(out), "\n", 2)[0])
	return len(v) > 1 && (v[0] > 1 || v[1] >= 21)
}

// pgbouncer finds the program, installing the system package if need be.
func pgbouncer() (string, error) {
	find := func() string {
		for _, p := range []string{"pgbouncer", "/usr/sbin/pgbouncer", "/usr/local/sbin/pgbouncer", "/opt/homebrew/bin/pgbouncer"} {
			if path, err := exec.LookPath(p); err == nil {
				return path
			}
		}
		return ""
	}
	if p := find(); p != "" {
		return p, nil
	}
	why := installable()
	if why == "" {
		if err := install("pgbouncer", func() bool { return find() != "" }); err != nil {
			return "", fmt.Errorf("no PgBouncer found, and installing it failed: %w", err)
		}
		if p := find(); p != "" {
			return p, nil
		}
		why = "the package was installed but its program is not where it is expected"
	}
	return "", fmt.Errorf("no PgBouncer found; not installed because %s; install it (Debian, Ubuntu: apt-get install pgbouncer), or set %s=skip", why, EnvSkip)
}
