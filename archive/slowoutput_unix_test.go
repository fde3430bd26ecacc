//go:build unix

package archive_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/archive"
)

// On a busy machine the outputs of a git that has ended stay open for a while, because a
// process that is just being started holds a copy of them.
func TestAGitWhoseOutputsAreClosedLateHasDoneItsWork(t *testing.T) {
	real, err := exec.LookPath("git")
	require.NoError(t, err)
	dir, bin := repository(t), t.TempDir()
	late := "#!/bin/sh\ncase \"$*\" in *hash-object*) sleep 2 & ;; esac\nexec " + real + " \"$@\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "git"), []byte(late), 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	g, err := archive.OpenGit(context.Background(), dir, archive.GitOptions{})
	require.NoError(t, err)
	waiting, _ := states(t, "r")
	require.NoError(t, g.Store(context.Background(), "r", waiting))
}
