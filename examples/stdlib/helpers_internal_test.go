package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// writePackage makes a package below root/src.
func writePackage(t *testing.T, root, pkg string, files map[string]string) {
	t.Helper()
	dir := filepath.Join(root, "src", filepath.FromSlash(pkg))
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}
