// Package syspackage installs system packages that tests need and a bare machine lacks:
// the database server, the browser.
package syspackage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gofrs/flock"
)

// Refused returns why no package can be installed here, or "". env names the
// variable that forbids it with any value but 1.
func Refused(env string) string {
	switch _, err := exec.LookPath("apt-get"); {
	case os.Getenv(env) != "" && os.Getenv(env) != "1":
		return env + " forbids it"
	case runtime.GOOS != "linux" || err != nil:
		return "this is no system with apt-get"
	case os.Geteuid() != 0:
		return "that needs root"
	}
	return ""
}

// Install installs a package for who, and says so. Test processes run concurrently, so
// it holds a lock, and does nothing if there says that another one was faster.
func Install(who, name, env string, there func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	lock := flock.New(filepath.Join(os.TempDir(), "durable-pgtest-install.lock"))
	if _, err := lock.TryLockContext(ctx, 200*time.Millisecond); err != nil {
		return fmt.Errorf("waiting for another installation: %w", err)
	}
	defer func() { _ = lock.Unlock() }()
	if there() {
		return nil
	}
	fmt.Fprintf(os.Stderr, "%s: installing the system package %s (%s=0 forbids it)\n", who, name, env)
	for _, args := range [][]string{{"update"}, {"install", "-y", "--no-install-recommends", name}} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, out)
		}
	}
	return nil
}
