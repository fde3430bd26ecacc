package browsertest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/test/browsertest"
)

// On a machine without a browser the tests of the pages are left out with a line
// that says so, and with an error where they are required.
func TestWithoutABrowserItsTestsAreLeftOutUnlessTheyAreRequired(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	t.Setenv(browsertest.EnvInstall, "0")
	t.Setenv(browsertest.Env, "")
	path, line, err := browsertest.Chromium()
	require.NoError(t, err)
	require.Empty(t, path)
	require.Contains(t, line, "were left out: there is no Chromium in the PATH")

	t.Setenv(browsertest.Env, "required")
	_, _, err = browsertest.Chromium()
	require.ErrorContains(t, err, "HOLDFAST_BROWSER=required, and there is no Chromium")

	program := filepath.Join(bin, "chromium")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755))
	path, line, err = browsertest.Chromium()
	require.NoError(t, err)
	require.Equal(t, program, path)
	require.Empty(t, line)

	t.Setenv(browsertest.Env, "off")
	path, line, err = browsertest.Chromium()
	require.NoError(t, err)
	require.Empty(t, path)
	require.Contains(t, line, "HOLDFAST_BROWSER=off")
}
