package arch

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A folder that holds nothing but tests makes `go build` with a list of packages fail.
func TestEveryPackageHasAFileThatIsNotATest(t *testing.T) {
	cmd := exec.Command("go", "list", "-f", "{{if and (not .GoFiles) (not .CgoFiles)}}{{.ImportPath}}{{end}}", "./...")
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, strings.TrimSpace(string(out)), "give these packages a doc.go")
}
