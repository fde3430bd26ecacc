// Package syscalls makes the system calls fail by which SQLite keeps its data, one after the
// other, in real processes under strace. It has no code of its own.
package syscalls
