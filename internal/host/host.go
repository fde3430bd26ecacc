// Package host tells machines and their boots apart.
package host

import (
	"os"
	"strings"
	"sync"
)

// BootID identifies the present boot of this machine, so that a process id or a
// lock of an earlier boot is not taken for a live one. It is empty where the
// system does not say.
var BootID = sync.OnceValue(func() string {
	// Linux: a random id made at boot, see proc(5).
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})
