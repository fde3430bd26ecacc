// Package chaos runs processes of one program that uses the whole API, and kills, stops, cuts
// off and restarts them and their database, until each run has ended. Every process keeps a
// ledger of its own outside of the store; afterwards the store is asked from outside whether it
// holds what the ledgers say. `make chaos` runs it; it has no code of its own.
package chaos
