// Package histories has clients compete for runs of a store and checks that what they saw is
// linearizable. It has no code of its own.
package histories
