package patroni

import (
	"fmt"
	"strings"
)

// Settings are what differs between the clusters of tests.
type Settings struct {
	// Synchronous is Patroni's synchronous_mode: a commit waits for one replica, and only
	// that one is promoted.
	Synchronous bool
	// Restart is Patroni's primary_start_timeout in seconds: how long a leader whose server has
	// ended alone may take to start it again, before another one is promoted.
	Restart int
	// Cuttable says that nodes can be cut off from each other.
	Cuttable bool
}

// The times of the clusters, shorter than Patroni's defaults: 30, 10 and 10.
const (
	TTL      = 20 // seconds until a leader that says nothing is replaced
	LoopWait = 5
	Retry    = 5
)

// config is the configuration of a node. A server that is to stop waits for its replicas to
// receive everything, for wal_sender_timeout if it hears nothing of them. A leader that is cut off
// must not wait for longer than retry_timeout: Patroni then stops it a second time beside the
// first, starts it twice, and keeps an eye on the one of the two that could not start
// (github.com/patroni/patroni/issues/3649). The other holds the port, and the node never comes back.
func (c *Cluster) config(n *Node) string {
	var etcd []string
	for _, port := range n.ways.etcd {
		etcd = append(etcd, fmt.Sprintf("'127.0.0.1:%d'", port))
	}
	return fmt.Sprintf(`
scope: holdfast
name: %[1]s
restapi:
  listen: 127.0.0.1:%[2]d
  connect_address: 127.0.0.1:%[14]d
etcd3:
  hosts: [%[3]s]
  use_proxies: true
bootstrap:
  dcs:
    ttl: %[4]d
    loop_wait: %[5]d
    retry_timeout: %[6]d
    synchronous_mode: %[7]t
    master_start_timeout: %[8]d
    postgresql:
      use_pg_rewind: true
      parameters:
        max_connections: 200
        wal_keep_size: 256MB
        wal_sender_timeout: %[6]ds
  initdb: [{encoding: UTF8}, {locale: C}, {auth: password}, data-checksums, no-sync]
postgresql:
  listen: 127.0.0.1:%[9]d
  connect_address: 127.0.0.1:%[10]d
  data_dir: %[11]s
  bin_dir: %[12]s
  pgpass: %[11]s.pgpass
  basebackup: [{checkpoint: fast}]
  remove_data_directory_on_rewind_failure: true
  remove_data_directory_on_diverged_timelines: true
  pg_hba: [host all all 127.0.0.1/32 password, host replication all 127.0.0.1/32 password]
  authentication:
    superuser: {username: postgres, password: %[13]s}
    replication: {username: replicator, password: %[13]s}
  parameters: {unix_socket_directories: '', shared_buffers: 32MB, password_encryption: md5}
`, n.name, n.rest, strings.Join(etcd, ", "), TTL, LoopWait, Retry, c.settings.Synchronous, c.settings.Restart,
		n.port, n.ways.reached, c.host.Path(n.name), c.bin, c.password, n.ways.asked)
}

// etcd are the arguments of a node's etcd. Its files are worth nothing after a failure of the
// machine, but its members are killed, and come back with what they have acknowledged.
func (c *Cluster) etcd(n *Node) []string {
	var members []string
	for _, e := range c.nodes {
		members = append(members, fmt.Sprintf("%s=http://127.0.0.1:%d", e.name, e.peer))
	}
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", n.client), fmt.Sprintf("http://127.0.0.1:%d", n.peer)
	return []string{
		"--name", n.name, "--data-dir", c.host.Path(n.name + ".etcd"), "--log-level", "warn",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", strings.Join(members, ","), "--initial-cluster-token", c.password,
	}
}
