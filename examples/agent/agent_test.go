package main_test

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheConversationGoesOnThoughTheAgentIsKilledWhateverItDoes(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "agent")
	if runtime.GOOS == "windows" {
		bin += ".exe"
	}
	built, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, string(built))
	cmd := exec.CommandContext(t.Context(), bin)
	cmd.Env = append(cmd.Environ(), "TMPDIR="+t.TempDir())
	b, err := cmd.CombinedOutput()
	out := string(b)
	require.NoError(t, err, out)
	require.Regexp(t, `(?s)kill -9.*agent 2  durable.Recover goes on with ada in mid-conversation.*\(asks\) May I refund 40 EUR for order 7\?.*kill -9.*yes`+
		`.*refund 40 EUR for order 7.*kill -9.*refund 40 EUR for order 7.*\(to ada\) Your order 7 was lost. You have your money back: 40 EUR.`, out)
	require.Regexp(t, `(?s)grace +no: .*\(to bob\) I am sorry`, out)
	require.Contains(t, out, "(to cy) Your order 8: on its way, it arrives tomorrow.")
	require.Contains(t, out, "nothing lost, nothing done twice")
}
