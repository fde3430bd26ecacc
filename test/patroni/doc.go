// Package patroni gives tests a cluster of three PostgreSQL servers as operators run it: each
// under Patroni, which keeps its state in an etcd of three members and promotes a replica when
// the leader is gone. Everything runs in one directory, on free ports of the loopback
// interface, as the user of pgtest's servers, and ends with the test.
//
// The programs are those of Debian's packages patroni and etcd-server, which root gets installed.
package patroni
