package patroni

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/lib/pq" // the driver "postgres"

	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// Cluster is three nodes. Its methods are for one goroutine at a time.
type Cluster struct {
	host     *pgtest.Host
	bin      string
	password string
	settings Settings
	nodes    []*Node
}

// Node is a machine of the cluster: a PostgreSQL server, the Patroni that runs it, and a member
// of etcd.
type Node struct {
	cluster *Cluster
	n       int
	name    string
	port    int // the server's
	rest    int // Patroni's, as the next two are etcd's
	client  int
	peer    int
	ways    ways
	cut     bool            // from the others
	patroni *pgtest.Program // nil while the node is down
	etcd    *pgtest.Program
}

const patience = 3 * time.Minute

// Start starts a cluster for t, and returns once both replicas follow the leader. Where the
// programs are missing and cannot be installed it skips t, and says so.
func Start(t testing.TB, settings Settings) *Cluster {
	t.Helper()
	switch line, err := LeftOut(); {
	case err != nil:
		t.Fatalf("patroni: %v", err)
	case line != "":
		t.Skip(line)
	}
	if err := install(); err != nil {
		t.Fatalf("patroni: %v", err)
	}
	c := &Cluster{bin: pgtest.Programs(t), host: pgtest.NewHost(t), password: rand.Text(), settings: settings}
	for i := range 3 {
		n := &Node{cluster: c, n: i, name: fmt.Sprint("n", i)}
		for _, port := range []*int{&n.port, &n.rest, &n.client, &n.peer} {
			*port = freePort(t)
		}
		c.nodes = append(c.nodes, n)
	}
	for _, n := range c.nodes {
		n.direct()
		if settings.Cuttable {
			n.wire(t)
		}
	}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			if t.Failed() {
				t.Logf("%s: %s", n.name, c.host.LogTail(n.name+"-patroni", 40))
			}
			if err := n.Kill(); err != nil {
				t.Errorf("patroni: %v", err)
			}
		}
	})
	for _, start := range []func(*Node) error{(*Node).startEtcd, (*Node).startPatroni} {
		for _, n := range c.nodes {
			if err := start(n); err != nil {
				t.Fatalf("patroni: %v", err)
			}
		}
	}
	c.Healthy(t)
	return c
}

// freePort returns a port that nobody listens on. It is none that the system gives to
// connections: they must not take it while a node is down.
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		n, err := rand.Int(rand.Reader, big.NewInt(17000))
		if err != nil {
			t.Fatalf("patroni: %v", err)
		}
		port := 15000 + int(n.Int64())
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("patroni: no free port")
	return 0
}

// Start starts the node, which Kill has ended, on its data.
func (n *Node) Start() error {
	if err := n.startEtcd(); err != nil {
		return err
	}
	return n.startPatroni()
}

func (n *Node) startEtcd() error {
	etcd, err := exec.LookPath("etcd")
	if err != nil {
		return err
	}
	n.etcd, err = n.cluster.host.Run(n.name+"-etcd", etcd, n.cluster.etcd(n)...)
	return err
}

// startPatroni waits until the members of etcd agree: Patroni ends if it comes before that.
func (n *Node) startPatroni() error {
	h := n.cluster.host
	patroni, err := exec.LookPath("patroni")
	if err != nil {
		return err
	}
	var unread error
	up := func() bool {
		var version struct{ EtcdCluster string }
		unread = get(fmt.Sprintf("http://127.0.0.1:%d/version", n.client), &version)
		return unread == nil && strings.Contains(version.EtcdCluster, ".")
	}
	if !soon(up) {
		return fmt.Errorf("etcd of %s does not come up (%v): %s", n.name, unread, h.LogTail(n.name+"-etcd", 20))
	}
	if err := h.Write(n.name+".yml", n.cluster.config(n)); err != nil {
		return err
	}
	n.patroni, err = h.Run(n.name+"-patroni", patroni, h.Path(n.name+".yml"))
	return err
}

// Kill ends everything on the node with SIGKILL, as the end of its machine does.
func (n *Node) Kill() error {
	if n.etcd == nil {
		return nil
	}
	var err error
	if n.patroni != nil {
		err = n.patroni.Kill()
	}
	err = errors.Join(err, n.KillServer(), n.etcd.Kill())
	n.patroni, n.etcd = nil, nil
	return err
}

// KillServer ends the node's PostgreSQL with SIGKILL; Patroni finds out.
func (n *Node) KillServer() error {
	b, err := os.ReadFile(filepath.Join(n.cluster.host.Path(n.name), "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil // it has none
	}
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return fmt.Errorf("the id of the server of %s: %w", n.name, err)
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Name returns the name that Patroni knows the node by.
func (n *Node) Name() string { return n.name }

// DSN returns one connection string with all servers, which leads to the one that takes writes.
func (c *Cluster) DSN() string {
	var ports []int
	for _, n := range c.nodes {
		ports = append(ports, n.port)
	}
	return c.anyOf(ports)
}

// DSN is the DSN of the cluster for a program that stands where the node does: a cut between
// the node and the others is one between the program and them.
func (n *Node) DSN() string { return n.cluster.anyOf(n.ways.servers[:]) }

func (c *Cluster) anyOf(ports []int) string {
	var hosts, list []string
	for _, port := range ports {
		hosts, list = append(hosts, "127.0.0.1"), append(list, strconv.Itoa(port))
	}
	return c.pairs(strings.Join(hosts, ","), strings.Join(list, ",")) + " connect_timeout=2 target_session_attrs=read-write"
}

// Nodes returns the three nodes.
func (c *Cluster) Nodes() []*Node { return c.nodes }

func (c *Cluster) pairs(hosts, ports string) string {
	return fmt.Sprintf("host=%s port=%s user=postgres password=%s dbname=postgres sslmode=disable", hosts, ports, c.password)
}

// member is what Patroni says of a node.
type member struct {
	Name, Role, State string
}

// members asks any Patroni that is there.
func (c *Cluster) members() ([]member, error) {
	var errs []error
	for _, n := range c.nodes {
		if n.patroni == nil || n.cut {
			continue
		}
		var all struct{ Members []member }
		if err := get(fmt.Sprintf("http://127.0.0.1:%d/cluster", n.rest), &all); err != nil {
			errs = append(errs, err)
			continue
		}
		return all.Members, nil
	}
	return nil, errors.Join(errs...)
}

func get(url string, into any) error {
	client := http.Client{Timeout: 2 * time.Second}
	r, err := client.Get(url)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	return json.NewDecoder(r.Body).Decode(into)
}

// Leader returns the node that Patroni calls the leader; nil: none.
func (c *Cluster) Leader() *Node {
	members, err := c.members()
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(members, func(m member) bool { return m.Role == "leader" || m.Role == "master" })
	if i < 0 {
		return nil
	}
	for _, n := range c.nodes {
		if n.name == members[i].Name {
			return n
		}
	}
	return nil
}

// Healthy waits until both replicas follow a leader that takes writes, and a commit waits for
// one of them if it is to, and returns the leader.
func (c *Cluster) Healthy(t testing.TB) *Node {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var why error // of the last look that had its time
	for {
		err := c.restart()
		n := c.Leader()
		if n == nil {
			err = errors.Join(err, errors.New("it has no leader"))
		} else {
			err = errors.Join(err, c.follow(ctx, n), c.mayFollow())
		}
		if err == nil {
			return n
		}
		if why == nil || ctx.Err() == nil {
			why = err
		}
		select {
		case <-ctx.Done():
			members, said := c.members()
			t.Fatalf("patroni: the cluster does not become healthy: %v; %v %v", why, members, said)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// restart starts each Patroni again that has ended by itself, as systemd does.
func (c *Cluster) restart() error {
	var errs []error
	for _, n := range c.nodes {
		if n.patroni != nil && n.patroni.Ended() {
			errs = append(errs, n.startPatroni())
		}
	}
	return errors.Join(errs...)
}

// mayFollow looks whether a replica may be promoted. In synchronous mode that is one which
// Patroni has written down as synchronous, some seconds after commits have begun to wait for it.
func (c *Cluster) mayFollow() error {
	members, err := c.members()
	if err == nil && c.settings.Synchronous && !slices.ContainsFunc(members, func(m member) bool { return m.Role == "sync_standby" }) {
		err = errors.New("no replica is written down as synchronous")
	}
	return err
}

func (c *Cluster) follow(ctx context.Context, n *Node) error {
	db, err := sql.Open("postgres", c.pairs("127.0.0.1", strconv.Itoa(n.port))+" connect_timeout=2")
	if err != nil {
		return err
	}
	defer db.Close()
	var replica bool
	var all, waited int
	err = db.QueryRowContext(ctx, `SELECT pg_is_in_recovery(), count(*), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum'))
		FROM pg_stat_replication WHERE state = 'streaming' AND application_name LIKE 'n_'`).Scan(&replica, &all, &waited)
	switch {
	case err != nil:
		return err
	case replica || all != len(c.nodes)-1 || (waited > 0) != c.settings.Synchronous:
		return fmt.Errorf("%s: in recovery %t, %d replicas, %d of them synchronous", n.name, replica, all, waited)
	}
	return nil
}

// Replaced waits until another node than n is the leader.
func (c *Cluster) Replaced(t testing.TB, n *Node) {
	t.Helper()
	c.until(t, fmt.Sprintf("%s is still the leader", n.name), func() bool {
		leader := c.Leader()
		return leader != nil && leader != n
	})
}

// Ended waits until the server of a node, which was killed, accepts no connection.
func (c *Cluster) Ended(t testing.TB, n *Node) {
	t.Helper()
	c.until(t, fmt.Sprintf("the server of %s still listens", n.name), func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", n.port))
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
}

func (c *Cluster) until(t testing.TB, otherwise string, ok func() bool) {
	t.Helper()
	if !soon(ok) {
		t.Fatalf("patroni: %s", otherwise)
	}
}

// soon reports whether ok comes true before patience ends.
func soon(ok func() bool) bool {
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// Switchover tells Patroni to make another node the leader, in order.
func (n *Node) Switchover() error {
	r, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/switchover", n.rest), "application/json", strings.NewReader(fmt.Sprintf(`{"leader": %q}`, n.name)))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(r.Body)
		return fmt.Errorf("switching over is refused: %s: %s", r.Status, said)
	}
	return nil
}
