//go:build cgo

// Package pack hands many events of SQLite to Go as one value. A row that the driver hands over
// costs two calls into C and an allocation for most of its columns, which is three times what
// SQLite needs to find it (ADR 56).
package pack

// int holdfast_pack_register(void);
import "C"

import (
	"fmt"
	"sync"

	_ "github.com/mattn/go-sqlite3" // has the SQLite that pack.c calls
)

// Register gives each connection that is opened from now on the aggregate
// holdfast_pack(column, …).
var Register = sync.OnceValue(func() error {
	if rc := C.holdfast_pack_register(); rc != 0 {
		return fmt.Errorf("sqlite3_auto_extension: code %d", int(rc))
	}
	return nil
})
