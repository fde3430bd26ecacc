package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The demonstration's verdict must be able to be "no".
func TestCheckFindsWhatWentWrong(t *testing.T) {
	const acts = "build shop:1.4.2\ninstall shop:1.4.2 staging\ninstall shop:1.4.2 production\n" +
		"build shop:1.5.0\ninstall shop:1.5.0 staging\nremove shop staging\n"
	verdict := func(acts, production string) error {
		s := &stage{dir: t.TempDir()}
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, actsName), []byte(acts), 0o600))
		require.NoError(t, os.Mkdir(filepath.Join(s.dir, "production"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, "production", "shop"), []byte(production), 0o600))
		return s.check()
	}
	require.NoError(t, verdict(acts, "shop:1.4.2"))
	require.ErrorContains(t, verdict("build shop:1.4.2\n"+acts, "shop:1.4.2"), "book reads")
	require.ErrorContains(t, verdict(acts, "shop:1.5.0"), "production runs shop:1.5.0")
}
