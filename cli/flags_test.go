package cli_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/cli"
)

// Scripts say --yes everywhere: what has a dry run takes it, whether it asks or not.
func TestEveryCommandWithADryRunTakesYes(t *testing.T) {
	n := 0
	for path, cmd := range leaves(cli.Command(nil), "") {
		if cmd.Flags().Lookup("dry-run") != nil {
			n++
			require.NotNil(t, cmd.Flags().Lookup("yes"), path)
		}
	}
	require.Greater(t, n, 5)
}

// The variable of a script that is not set must not make it act on another store, on all
// workflows, or on a new run.
func TestAFlagWithoutAValueIsRefused(t *testing.T) {
	n := 0
	for path, cmd := range leaves(cli.Command(nil), "") {
		names := []string{"store", "server", "profile"}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "reason" && f.Name != "by" && slices.Contains([]string{"string", "stringSlice", "stringArray"}, f.Value.Type()) {
				names = append(names, f.Name)
			}
		})
		if !strings.Contains(path, "completion") {
			for _, name := range names {
				n++
				root := cli.Command(nil)
				var said bytes.Buffer
				root.SetOut(&said)
				root.SetErr(&said)
				root.SetArgs(append(strings.Fields(strings.ReplaceAll(wellFormed(path), "'", "")), "--"+name+"="))
				require.Equal(t, cli.ExitUsage, cli.ExitCode(root.Execute()), "%s --%s: %s", path, name, &said)
				require.Contains(t, said.String(), "--"+name+" was given without a value", path)
			}
		}
	}
	require.Greater(t, n, 100)
}

// A script whose output is gone must not read success.
func TestOutputThatCannotBeWrittenIsAFailure(t *testing.T) {
	root := cli.Command(nil)
	var said bytes.Buffer
	root.SetOut(fullDisk{})
	root.SetErr(&said)
	root.SetArgs([]string{"version"})
	require.Equal(t, cli.ExitFailed, cli.ExitCode(root.Execute()))
	require.Contains(t, said.String(), "The output could not be written: no space left")
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// A profile whose variable is not set names nothing: least of all the program's own store.
func TestAProfileWhoseVariableIsNotSetIsRefused(t *testing.T) {
	d := newDesk(t)
	d.ok("shop many 1 held")
	profileOf(d, "profiles:\n  s: {store: \"${DURABLE_WHERE}\"}\n  u: {server: \"${DURABLE_WHERE}\"}\n  t: {server: \"http://127.0.0.1:9\", token: \"${DURABLE_WHERE}\"}\n")
	for _, program := range []string{"shop durable", "durable"} {
		for _, profile := range []string{"s", "u", "t"} {
			a := d.sh(program + " cancel held --profile " + profile)
			require.Equal(t, 2, a.code, "%s%s", a.out, a.err)
			require.Contains(t, a.err, "DURABLE_WHERE, which is not set.\nSet DURABLE_WHERE.\n")
		}
	}
	require.Contains(t, d.ok("durable --store shop.db ls").out, "\tpending\t")
}
