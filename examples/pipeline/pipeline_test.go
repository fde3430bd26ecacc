package main_test

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAReleaseThatIsInterruptedGoesOnByThePrintedCommandAndIsPublishedOnceApproved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGINT to send to another process on Windows")
	}
	bin := filepath.Join(t.TempDir(), "pipeline")
	built, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, string(built))
	cmd := exec.CommandContext(t.Context(), bin)
	cmd.Env = append(cmd.Environ(), "TMPDIR="+t.TempDir())
	b, err := cmd.CombinedOutput()
	out := string(b)
	require.NoError(t, err, out)
	require.Regexp(t, `(?s)✗ attempt 1 of 5.*✗ attempt 2 of 5.*\^C.*Session interrupted. Resume with: pipeline durable run release --resume greeter-1`+
		`.*\$ pipeline durable run release --resume greeter-1.*Resuming from step 2 of 6: test, attempt 3 of 5\n  skipped      vet\n  re-executed  test`+
		`.*✓ attempt 3 of 5.*\? Publish greeter v1.0.0.*in the browser.*✓ approved.*Workflow greeter-1 completed`+
		`.*Hello, world!\nThe test ran 3 times in all`, out)
}
