package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/host"
)

// built is what a program was built with.
type built struct {
	Release string `json:"release"` // of Holdfast
	Go      string `json:"go"`
	Build   string `json:"build,omitempty"` // the revision or the version of the program
}

func builtWith() built {
	return built{Release: durable.Release(), Go: runtime.Version(), Build: host.StampedBuild("-modified")}
}

func (b built) String() string {
	if b.Build == "" {
		return fmt.Sprintf("holdfast %s, %s", b.Release, b.Go)
	}
	return fmt.Sprintf("holdfast %s, %s, build %s", b.Release, b.Go, b.Build)
}

func versionCommand(a *app) *cobra.Command {
	return a.command(spec{
		use: "version", short: "Show the release of Holdfast in this program",
		example: `  durable version
  durable version --json`,
		do: func(c *invocation, _ []string) error {
			if c.flags.json {
				return c.out.JSON(builtWith())
			}
			c.out.Printf("%s\n", builtWith())
			return nil
		},
	})
}
