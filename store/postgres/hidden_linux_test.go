package postgres_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/test/pgtest"
)

const envHidden = "HOLDFAST_POSTGRES_HIDDEN"

// TestChildAmongHiddenProcesses are the two processes of the test below: the
// owner, which is the first of its name space and hides the processes of users
// from each other, and one of another user that looks for it.
func TestChildAmongHiddenProcesses(t *testing.T) {
	role, dsn, _ := strings.Cut(os.Getenv(envHidden), " ")
	switch role {
	case "":
		return
	case "owner":
		require.NoError(t, syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""))
		require.NoError(t, syscall.Mount("proc", "/proc", "proc", 0, "hidepid=2"))
		beat(t, open(t, dsn), executor("owner", time.Hour))
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestChildAmongHiddenProcesses$")
		cmd.Env = append(os.Environ(), envHidden+"=looks "+dsn)
		out, err := cmd.CombinedOutput()
		fmt.Printf("%s", out)
		require.NoError(t, err)
	case "looks":
		require.NoError(t, syscall.Setgid(65534))
		require.NoError(t, syscall.Setuid(65534))
		_, err := os.Stat(fmt.Sprintf("/proc/%d/stat", os.Getppid()))
		require.ErrorIs(t, err, os.ErrNotExist, "the owner is hidden")
		s, admin := open(t, dsn), raw(t, dsn)
		beat(t, s, executor("looks", time.Hour))
		for range 20 {
			admin.MustExec(`SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN durable_executors e ON e.id = 'owner' AND e.presence LIKE 'lock=' || l.objid || ' %'
				WHERE l.locktype = 'advisory' AND l.granted`)
			for range 5 {
				require.True(t, live(t, s, "owner"))
			}
		}
		fmt.Println("the owner lives")
	}
}

// With hidepid, /proc shows nobody the processes of other users. Their executors
// are not dead for that.
func TestAnExecutorOfAnotherUserIsNotDeadBecauseItsProcessIsHidden(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a /proc of its own")
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestChildAmongHiddenProcesses$")
	cmd.Env = append(os.Environ(), envHidden+"=owner "+pgtest.DSN(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil && strings.Contains(err.Error(), "operation not permitted") {
		t.Skipf("name spaces cannot be made here: %v", err)
	}
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "the owner lives")
}
