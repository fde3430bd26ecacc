// Package failover does to a program under load what its PostgreSQL may: the primary is killed
// and its replica promoted, by hand or by Patroni; the pooler between is killed; the server runs
// out of connections or disk, or takes no writes; the network is cut. It asks what became of the
// runs, and how long nothing was acknowledged. It has no code of its own.
package failover
