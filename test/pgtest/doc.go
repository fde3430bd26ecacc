// Package pgtest gives tests a real PostgreSQL server.
//
// DSN returns a fresh database, dropped when the test ends. It lives on the
// server that DURABLE_POSTGRES_DSN names or, without it, on a throw-away
// cluster that the first caller in the process starts. Start returns a cluster
// of the test's own, for tests that stop and kill it.
//
// A throw-away cluster runs with fsync on, listens on a free port of the
// loopback interface alone, never runs as root and never outlives the process
// that started it: a watchdog holds the read end of a pipe, and when the pipe
// closes, whatever the reason, it stops the server and removes the data. On
// Linux the data are in memory where 6 GiB are free and TMPDIR names no other
// place. Where 12 GiB are free, cmd/withpostgres makes the tests' temporary
// files there too. Servers for tests neither vacuum nor analyze on their own.
//
// The server binaries are looked for on PATH, where pg_config points, and in
// the directories of the usual packages. Where there are none, a root user of a
// Debian-like system gets the package installed, unless
// DURABLE_POSTGRES_INSTALL=0. Elsewhere the tests that need a server are left out,
// and LeftOut says so; DURABLE_POSTGRES=required makes that an error, and
// DURABLE_POSTGRES=skip always leaves them out. A server that is there and does
// not work is an error.
package pgtest
