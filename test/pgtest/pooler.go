package pgtest

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lib/pq"
)

// Pooler returns a connection string that leads to the database of dsn through a
// PgBouncer of t's own, as StartPgBouncer starts it.
func Pooler(t testing.TB, dsn string, settings ...string) string {
	t.Helper()
	return StartPgBouncer(t, dsn, settings...).DSN()
}

// PgBouncer is a pooler of a test's own. Its methods are for one goroutine at a time.
type PgBouncer struct {
	host     *Host
	program  string
	port     int
	to       pq.Config
	settings []string
	life     *Program // nil while it is stopped
}

// StartPgBouncer starts a PgBouncer in front of the server of dsn, which gives each transaction
// another server session, and ends with t. settings are further lines of its configuration. It
// is installed like the server if it is missing.
func StartPgBouncer(t testing.TB, dsn string, settings ...string) *PgBouncer {
	t.Helper()
	skip(t)
	p := &PgBouncer{host: NewHost(t), settings: settings}
	var err error
	if p.program, err = pgbouncer(); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	if p.port, err = freePort(); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	if err := errors.Join(p.configure(dsn), p.Restart()); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the pooler said:\n%s", p.host.LogTail("pgbouncer", 40))
		}
		if err := p.Kill9(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return p
}

func (p *PgBouncer) configure(dsn string) (err error) {
	if p.to, err = pq.NewConfig(dsn); err != nil {
		return err
	}
	lines := append([]string{
		"[databases]",
		fmt.Sprintf("* = host=%s port=%d user=%s password='%s'", p.to.Host, p.to.Port, p.to.User, p.to.Password),
		"[pgbouncer]", "listen_addr = 127.0.0.1", fmt.Sprintf("listen_port = %d", p.port), "unix_socket_dir =",
		"auth_type = any", "pool_mode = transaction", "default_pool_size = 4", "max_client_conn = 200",
		"ignore_startup_parameters = extra_float_digits",
	}, p.settings...)
	return p.host.Write("pgbouncer.ini", strings.Join(lines, "\n")+"\n")
}

// Lead leads to the server of another dsn from now on, as a failover does that tells the pooler.
func (p *PgBouncer) Lead(dsn string) error {
	if err := p.configure(dsn); err != nil {
		return err
	}
	return p.life.Signal(reload)
}

// Restart starts the pooler, which Kill9 has ended, and returns when it accepts connections.
func (p *PgBouncer) Restart() (err error) {
	if p.life, err = p.host.Run("pgbouncer", p.program, p.host.Path("pgbouncer.ini")); err != nil {
		return err
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", p.addr())
		if err == nil {
			return c.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the pooler does not listen: %w; it said:\n%s", err, p.host.LogTail("pgbouncer", 20))
		}
	}
}

// Kill9 ends the pooler with SIGKILL.
func (p *PgBouncer) Kill9() error {
	if p.life == nil {
		return nil
	}
	life := p.life
	p.life = nil
	return life.Kill()
}

func (p *PgBouncer) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

// DSN returns a connection string that leads through the pooler.
func (p *PgBouncer) DSN() string {
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword(p.to.User, p.to.Password), Host: p.addr(), Path: "/" + p.to.Database,
		RawQuery: "sslmode=disable",
	}).String()
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
	version, err := poolerVersion(program)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return carries(version)
}

// PoolerLeftOut returns what to say where the tests of a pooler that changes sessions are left
// out, or "".
func PoolerLeftOut() (line string, err error) {
	program := findPooler()
	if os.Getenv(EnvSkip) == "skip" || program == "" {
		return "", nil // with all tests on PostgreSQL; the tests say that there is no PgBouncer
	}
	version, err := poolerVersion(program)
	if err != nil || carries(version) {
		return "", err
	}
	return fmt.Sprintf("the tests of PgBouncer in transaction mode were left out: they need 1.21 or later, and this is %s", version), nil
}

// poolerVersion returns what PgBouncer calls itself, such as "PgBouncer 1.18.0".
func poolerVersion(program string) (string, error) {
	out, err := exec.Command(program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", program, err)
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return first, nil
}

func carries(version string) bool {
	v := numbers(version)
	return len(v) > 1 && (v[0] > 1 || v[1] >= 21)
}

// findPooler returns the path of PgBouncer; empty: there is none.
func findPooler() string {
	for _, p := range []string{"pgbouncer", "/usr/sbin/pgbouncer", "/usr/local/sbin/pgbouncer", "/opt/homebrew/bin/pgbouncer"} {
		if path, err := exec.LookPath(p); err == nil {
			return path
		}
	}
	return ""
}

// pgbouncer finds the program, installing the system package if need be.
func pgbouncer() (string, error) {
	if p := findPooler(); p != "" {
		return p, nil
	}
	why := installable()
	if why == "" {
		if err := install("pgbouncer", func() bool { return findPooler() != "" }); err != nil {
			return "", fmt.Errorf("no PgBouncer found, and installing it failed: %w", err)
		}
		if p := findPooler(); p != "" {
			return p, nil
		}
		why = "the package was installed but its program is not where it is expected"
	}
	return "", fmt.Errorf("no PgBouncer found; not installed because %s; install it (Debian, Ubuntu: apt-get install pgbouncer), or set %s=skip", why, EnvSkip)
}
