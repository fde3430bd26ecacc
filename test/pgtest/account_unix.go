//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

const (
	killed = syscall.SIGKILL
	reload = syscall.SIGHUP
)

func (m Mode) signal() os.Signal {
	switch m {
	case Smart:
		return syscall.SIGTERM
	case Immediate:
		return syscall.SIGQUIT
	default:
		return syscall.SIGINT
	}
}

// account is a user without privileges. The nil account is the present user.
type account struct{ uid, gid uint32 }

// unprivileged returns the user that the server must run as: PostgreSQL refuses root.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		return &account{uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("PostgreSQL does not run as root, and there is neither a user postgres nor nobody; run the tests as another user, or set %s", EnvDSN)
}

// run makes cmd run as a.
func (a *account) run(cmd *exec.Cmd) {
	if a != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid}}
	}
}

// own gives a file to a.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

func ownGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

// tempDir makes a directory on disk that belongs to a and that a can reach: when
// the tests run as root, the usual directory for temporary files may be closed to
// others, and MemoryTemp may have made one in memory.
func tempDir(a *account) (string, error) {
	var errs []error
	for _, base := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if inMemory(base) {
			continue
		}
		if a != nil && !open(base) {
			errs = append(errs, fmt.Errorf("%s is closed to the server's user", base))
			continue
		}
		dir, err := os.MkdirTemp(base, "durable-pg-")
		if err != nil {
			errs = append(errs, err)
			continue
		}
		return dir, a.own(dir)
	}
	return "", fmt.Errorf("no place for the server's data: %w", errors.Join(errs...))
}

// open reports whether every user may pass through dir and all directories above it.
func open(dir string) bool {
	dir, err := filepath.Abs(dir)
	for err == nil {
		var fi os.FileInfo
		if fi, err = os.Stat(dir); err != nil || fi.Mode()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
		dir = filepath.Dir(dir)
	}
	return false
}
