package cli

import (
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// interactive reports whether there is a person to ask: standard error and standard
// input are a terminal.
func (c *invocation) interactive() bool {
	f, ok := c.cmd.InOrStdin().(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && c.err.TTY && !c.flags.json
}

// asksNothing gives --yes to a command that has nothing to confirm: scripts say it everywhere.
func asksNothing(cmd *cobra.Command) {
	cmd.Flags().Bool("yes", false, cmd.Name()+" asks nothing; for scripts that say it everywhere")
}

// readLine reads one line and not a byte more.
func readLine(r io.Reader) (string, error) {
	var line []byte
	var b [1]byte
	for len(line) < 1024 {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return string(line), err
		}
		if b[0] == '\n' {
			break
		}
		line = append(line, b[0])
	}
	return string(line), nil
}
