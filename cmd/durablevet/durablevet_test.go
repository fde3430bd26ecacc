package main_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/golangci/plugin-module-register/register"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/cmd/durablevet/plugin"
	"github.com/holdfast-dev/holdfast/cmd/durablevet/vet"
)

func build(t *testing.T) string {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "durablevet.exe")
	out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return tool
}

// Both ways say the same, and end as go vet does. That a function of another package
// reads the clock is known by its facts.
func TestItIsAToolOfGoVetAndACommandOfItsOwn(t *testing.T) {
	tool := build(t)
	for name, command := range map[string][]string{
		"go vet": {"go", "vet", "-vettool=" + tool},
		"alone":  {tool},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := exec.Command(command[0], append(command[1:], "./vet/testdata/ignores", "./vet/testdata/bad")...).CombinedOutput()
			var ended *exec.ExitError
			require.ErrorAs(t, err, &ended, "%s", out)
			require.Equal(t, 1, ended.ExitCode(), "%s", out)
			require.Regexp(t, regexp.MustCompile(`bad\.go:\d+:\d+: clock: time\.Now in workflow code outside of a step`), string(out))
			require.Contains(t, string(out), "clock: Indirect, which leads to time.Now (other.go:")
			require.Contains(t, string(out), "ignore: this suppresses nothing")

			out, err = exec.Command(command[0], append(command[1:], "./vet/testdata/good", "./vet/testdata/other")...).CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Empty(t, string(out))
		})
	}
}

// The workflows of this repository that people read: the examples, and the programs of
// the docs, of which one shows on purpose what not to do.
func TestNothingIsFoundInWhatPeopleRead(t *testing.T) {
	tool := build(t)
	cmd := exec.Command("go", "vet", "-vettool="+tool, "./examples/...", "./shell")
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out))

	cmd = exec.Command("go", "vet", "-vettool="+tool, "./durable")
	cmd.Dir = "../.."
	out, err = cmd.CombinedOutput()
	require.Error(t, err, "the tests of the engine make all mistakes there are")
	found := regexp.MustCompile(`(?m)^durable[/\\]example_.*$`).FindAllString(string(out), -1)
	require.Len(t, found, 1)
	require.Regexp(t, `example_state_test\.go:\d+:\d+: capture: current is set here`, found[0], "billWrong of docs/rules.md")
}

func TestGolangciLintFindsTheLinter(t *testing.T) {
	create, err := register.GetPlugin(plugin.Name)
	require.NoError(t, err)
	linter, err := create(nil)
	require.NoError(t, err)
	require.Equal(t, register.LoadModeTypesInfo, linter.GetLoadMode())
	analyzers, err := linter.BuildAnalyzers()
	require.NoError(t, err)
	require.Len(t, analyzers, 1)
	require.Same(t, vet.Analyzer, analyzers[0])

	_, err = create(map[string]any{"rules": "all"})
	require.Error(t, err, "it has no settings")
}
