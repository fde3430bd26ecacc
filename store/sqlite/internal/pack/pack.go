//go:build cgo

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
