// Package failover kills the primary of a PostgreSQL with a replica under load, promotes the
// replica, and asks what became of the runs. The program reaches both servers by one connection
// string. It has no code of its own.
package failover
