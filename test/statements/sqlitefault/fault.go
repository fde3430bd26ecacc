//go:build linux && cgo

package sqlitefault

// #cgo LDFLAGS: -Wl,--wrap=sqlite3_open_v2 -Wl,--wrap=sqlite3_exec -Wl,--wrap=sqlite3_prepare_v2 -Wl,--wrap=sqlite3_step -Wl,--wrap=sqlite3_reset -Wl,--wrap=sqlite3_finalize
// void holdfast_fault_arm(int at, int code, int how);
// int holdfast_fault_disarm(void);
// const char *holdfast_fault_what(void);
import "C"

import (
	_ "github.com/mattn/go-sqlite3" // has the SQLite that fault.c calls
)

// A Way is what becomes of the call that fails.
type Way int

const (
	// Refused: nothing happens. In a transaction, it goes on.
	Refused Way = iota
	// RolledBack: nothing happens, and SQLite has rolled the transaction back, as it may after
	// an I/O error, a full disk, a lack of memory and an interrupt.
	RolledBack
	// Committed: it is carried out. Only calls that commit are counted.
	Committed
)

// Arm has a call fail with a result code of SQLite: the one of this number, from 1, from now on.
// Calls that open a connection, prepare a statement, begin to execute one, and fetch a row are
// counted, of all connections of the process.
func Arm(at, code int, how Way) { C.holdfast_fault_arm(C.int(at), C.int(code), C.int(how)) }

// Disarm returns the call that has failed; empty: none. None fails any more.
func Disarm() string {
	if C.holdfast_fault_disarm() == 0 {
		return ""
	}
	return C.GoString(C.holdfast_fault_what())
}
