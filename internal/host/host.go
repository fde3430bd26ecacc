// Package host identifies machines and their boots, and how this process was built.
package host

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
)

// BootID identifies the current boot of this machine, so that a process id or a lock
// of an earlier boot is not taken for a live one. It is empty if the system does not
// reveal it.
var BootID = sync.OnceValue(func() string {
	// Linux: a random id made at boot, see proc(5).
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})

// Name is the host name of this machine, empty if it has none. The system is asked once.
var Name = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	return name
})

// goRun matches where "go run" puts what it has built: in a temporary folder, or in
// the build cache.
var goRun = regexp.MustCompile(`/go-build[0-9]+/b[0-9]+/exe/[^/]+$|/[0-9a-f]{2}/[0-9a-f]{64}-d/[^/]+$`)

// GoRun returns the import path of the package from which "go run" has built this
// program; empty for a program that was started otherwise, or built from single
// files.
var GoRun = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Path == "command-line-arguments" || !goRun.MatchString(filepath.ToSlash(os.Args[0])) {
		return ""
	}
	return info.Path
})
