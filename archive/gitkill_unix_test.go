//go:build unix

package archive_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/archive"
)

// The group of processes is killed, git with the writer; Windows has no such thing.
func TestAWriterThatIsKilledLeavesAWholeCopyOrNone(t *testing.T) {
	base := t.TempDir()
	dir := base + "/repo.git"
	require.NoError(t, os.Mkdir(dir, 0o700))
	git(t, dir, "init", "-q", "--bare")
	waiting, completed := states(t, "r")
	require.NoError(t, os.WriteFile(base+"/waiting", waiting, 0o600))
	require.NoError(t, os.WriteFile(base+"/completed", completed, 0o600))
	whole := [][]byte{waiting, completed}
	found := 0
	for i := range 12 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "ARCHIVE_WRITER="+dir+":"+base+"/waiting:"+base+"/completed")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		require.NoError(t, cmd.Start())
		time.Sleep(time.Duration(40+17*i) * time.Millisecond)
		require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)) // git, too
		_ = cmd.Wait()

		git(t, dir, "fsck", "--strict", "--no-dangling")
		d, err := archive.OpenDir(dir + "-dir")
		require.NoError(t, err)
		for _, a := range []archive.Archive{openGit(t, dir), d} {
			e, err := a.Get(t.Context(), "r")
			if err != nil {
				require.ErrorIs(t, err, archive.ErrNotFound, "kill %d", i)
				continue
			}
			found++
			require.Contains(t, whole, e.File, "kill %d", i)
		}
		require.NoError(t, d.Close())
		_ = os.Remove(dir + "/refs/durable/runs/r.lock") // young ones are not broken
	}
	require.Positive(t, found)
	require.NoError(t, openGit(t, dir).Store(t.Context(), "r", completed))
	require.Equal(t, []string{"r"}, listed(t, openGit(t, dir)))
}
