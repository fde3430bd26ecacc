package pgtest

import (
	"bufio"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lib/pq"
)

// Cluster is a throw-away PostgreSQL server. Its methods are for one goroutine
// at a time.
type Cluster struct {
	bin, dir string
	port     int
	password string
	as       *account // the user that the server runs as; nil: the current user
	server   *server  // nil while stopped
	settings []string // beyond those of start, name=value
}

// server is one life of the server process, with its watchdog.
type server struct {
	pid  int
	pipe io.Closer     // the watchdog ends the server when this closes
	done chan struct{} // closed when the server and its watchdog have ended
}

// Mode says how Stop ends the server.
type Mode int

// The shutdown modes of PostgreSQL.
const (
	Fast      Mode = iota // ends sessions, writes a checkpoint
	Smart                 // waits for sessions to end
	Immediate             // stops at once; the next start recovers from the log
)

// startTimeout bounds initdb and every start, crash recovery included.
const startTimeout = 90 * time.Second

// New makes and starts a cluster with its data on disk, for measurements and
// demonstrations. The caller must Close it; if the process ends before, the
// watchdog does.
func New() (*Cluster, error) { return newCluster(tempDir) }

// NewForTests is New with the data in memory where there is room: the tests make
// databases and schemas by the hundred, and their files cost more than the tests.
// A killed server finds its data again, as that of New does. It does not analyze tables
// on its own: each time it does, every session plans its statements anew.
func NewForTests() (*Cluster, error) { return newCluster(memoryDir, "autovacuum=off") }

func newCluster(makeDir func(*account) (string, error), settings ...string) (*Cluster, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	as, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := makeDir(as)
	if err != nil {
		return nil, err
	}
	c := &Cluster{bin: bin, dir: dir, as: as, password: rand.Text(), settings: settings}
	if err := c.init(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	// A free port may be taken by another process before the server has it.
	for range 5 {
		if c.port, err = freePort(); err != nil {
			break
		}
		if err = c.start(); err == nil {
			c.prepare()
			return c, nil
		}
	}
	_ = os.RemoveAll(dir)
	return nil, err
}

// prepare stores the password as MD5 instead of SCRAM, whose thousands of
// hashes made up half the processor time of a connection. A server that refuses
// MD5 keeps what it has, and is slower. The connection is to the template, which
// has caches from then on: see fresh.
func (c *Cluster) prepare() {
	db, err := sql.Open("postgres", With(With(c.DSN(), "password_encryption", "md5"), "dbname", "template1"))
	if err != nil {
		return
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	_, _ = db.ExecContext(ctx, "ALTER ROLE postgres PASSWORD "+pq.QuoteLiteral(c.password))
}

func (c *Cluster) log() string { return filepath.Join(c.dir, "log") }

func (c *Cluster) init() error {
	pw := filepath.Join(c.dir, "pw")
	if err := os.WriteFile(pw, []byte(c.password), 0o600); err != nil {
		return err
	}
	if err := c.as.own(pw); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	// Plain passwords, because connections are many and short, and never leave the
	// machine. No sync: the directory is worth nothing if the machine fails now.
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "initdb"), "-D", c.Data(), "-U", "postgres",
		"-A", "password", "--pwfile", pw, "-E", "UTF8", "--locale", "C", "--no-sync")
	cmd.Dir = c.dir
	c.as.run(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb in %s: %w\n%s", c.dir, err, out)
	}
	return os.Remove(pw)
}

// supervise runs the server ("$@") and a watchdog that waits for the end of standard
// input. The watchdog must end the server before it removes the directory, and must not
// remove it when the server was stopped on purpose.
const supervise = `
dir=$1; shift
exec 3<&0 </dev/null
"$@" >>"$dir/log" 2>&1 3<&- &
server=$!
( while read -r line; do :; done; : >"$dir/orphan"; kill -QUIT $server ) <&3 2>/dev/null >/dev/null &
watchdog=$!
exec 3<&-
echo $server
exec >/dev/null
wait $server
if [ -e "$dir/orphan" ]; then rm -rf "$dir"; else kill -KILL $watchdog 2>/dev/null; fi
`

// Restart starts the server again after Stop or Kill9, on the same port and
// data, and returns when it accepts connections.
func (c *Cluster) Restart() error {
	if c.server != nil {
		return errors.New("the server is running")
	}
	deadline := time.Now().Add(startTimeout)
	for {
		err := c.start()
		// The sessions of a server that was killed take a moment to notice, and
		// the next server refuses to start before they are gone. Each says in the log that it ends.
		if err == nil || time.Now().After(deadline) || !strings.Contains(c.LogTail(1000), "shared memory block") {
			return err
		}
	}
}

// Set gives the server further settings, name=value, at its next start.
func (c *Cluster) Set(settings ...string) { c.settings = append(c.settings, settings...) }

// Data returns the directory of the server's data.
func (c *Cluster) Data() string { return filepath.Join(c.dir, "data") }

func (c *Cluster) start() error {
	// The view of all locks, which each heartbeat reads, costs as much as the tables behind it
	// are large, and they are as large as the connections and the locks of each allow.
	args := []string{"-c", supervise, "sh", c.dir, filepath.Join(c.bin, "postgres"), "-D", c.Data(), "-p", strconv.Itoa(c.port),
		"-h", "127.0.0.1", "-k", "", "-c", "fsync=on", "-c", "shared_buffers=64MB",
		"-c", "max_connections=1000", "-c", "max_locks_per_transaction=10", "-c", "max_pred_locks_per_transaction=10"}
	for _, setting := range c.settings {
		args = append(args, "-c", setting)
	}
	cmd := exec.Command("/bin/sh", args...)
	cmd.Dir = c.dir
	// Of its own group, so that Ctrl-C reaches it only through the pipe.
	c.as.run(cmd)
	ownGroup(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the server: %w", err)
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	s := &server{pipe: stdin, done: make(chan struct{})}
	s.pid, _ = strconv.Atoi(strings.TrimSpace(line))
	go func() { defer close(s.done); _ = cmd.Wait() }()
	if err := c.ready(s); err != nil {
		_ = s.pipe.Close()
		<-s.done
		return err
	}
	c.server = s
	return nil
}

// ready waits until the server answers a query.
func (c *Cluster) ready(s *server) error {
	db, err := sql.Open("postgres", c.DSN())
	if err != nil {
		return err
	}
	defer db.Close()
	deadline := time.Now().Add(startTimeout)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_, err := db.ExecContext(ctx, "SELECT 1")
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-s.done:
			return fmt.Errorf("the server in %s ended while starting; end of its log:\n%s", c.dir, c.LogTail(20))
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the server in %s does not answer: %w; end of its log:\n%s", c.dir, err, c.LogTail(20))
		}
	}
}

// DSN returns the connection string of the cluster's first database.
func (c *Cluster) DSN() string {
	return fmt.Sprintf("postgres://postgres:%s@%s/postgres?sslmode=disable", c.password, c.Addr())
}

// Addr returns the host and port the server listens on.
func (c *Cluster) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)) }

// Password returns the password of the DSN, for tests that it does not leak.
func (c *Cluster) Password() string { return c.password }

// PID returns the process id of the server, 0 while it is stopped.
func (c *Cluster) PID() int {
	if c.server == nil {
		return 0
	}
	return c.server.pid
}

// Stop ends the server and returns when it has ended. The data stay.
func (c *Cluster) Stop(m Mode) error { return c.signal(m.signal()) }

// Kill9 ends the server's first process with SIGKILL, as the out-of-memory
// killer would. Its sessions notice, and end, a moment later.
func (c *Cluster) Kill9() error { return c.signal(killed) }

func (c *Cluster) signal(sig os.Signal) error {
	if c.server == nil {
		return nil
	}
	s := c.server
	p, err := os.FindProcess(s.pid)
	if err != nil {
		return err
	}
	if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.done:
	case <-time.After(startTimeout):
		return fmt.Errorf("the server does not end on %v", sig)
	}
	_ = s.pipe.Close()
	c.server = nil
	return nil
}

// Close stops the server and removes its data.
func (c *Cluster) Close() error {
	err := c.Stop(Immediate)
	return errors.Join(err, os.RemoveAll(c.dir))
}

// LogTail returns the last n lines of the server's log.
func (c *Cluster) LogTail(n int) string {
	return tailOf(c.log(), n)
}

func tailOf(file string, n int) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
