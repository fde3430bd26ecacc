// Durable is the terminal for runs: it lists, shows, resumes, answers and mends them,
// in a SQLite file, in PostgreSQL, or through the HTTP API of a running program. It has
// no workflow code and executes nothing; a program that mounts package cli does both.
//
//	durable --store app.db sessions ls
package main

import (
	"context"
	"os"

	"github.com/holdfast-dev/holdfast/cli"
)

func main() {
	cmd := cli.Command(nil, cli.Stores(backends()...))
	os.Exit(cli.ExitCode(cmd.ExecuteContext(context.Background())))
}
