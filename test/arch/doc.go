// Package arch holds the tests of how the repository is built: the table of which
// package may import which, so that a new dependency between packages or on another
// module is a recorded decision, and the limits on the size of packages and types.
// Package arch/shape measures those.
package arch
