// Command withpostgres runs a command with one throw-away PostgreSQL server for
// all test processes it starts, and with their temporary files in memory where there
// is plenty (TMPDIR names another place):
//
//	go run ./test/pgtest/cmd/withpostgres go test ./...
//
// With DURABLE_POSTGRES_DSN set, or DURABLE_POSTGRES=skip, it just runs the
// command. Where there is no PostgreSQL and none can be installed, it sets
// DURABLE_POSTGRES=skip for the command, unless it is "required".
//
// No test cuts the power, so none tells a disk from memory, but for the milliseconds
// that each fsync of SQLite takes.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"

	_ "github.com/lib/pq"

	"github.com/holdfast-dev/holdfast/test/pgtest"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: withpostgres command [argument ...]")
		os.Exit(2)
	}
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "withpostgres: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

func run(args []string) (code int, err error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = os.Environ()
	if dir, remove := pgtest.MemoryTemp(); dir != "" {
		defer func() { err = errors.Join(err, remove()) }()
		cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	}
	line, err := pgtest.LeftOut()
	switch {
	case err != nil:
		return 1, err
	case line != "":
		fmt.Fprintln(os.Stderr, line)
		cmd.Env = append(cmd.Env, pgtest.EnvSkip+"=skip")
	case os.Getenv(pgtest.EnvDSN) == "":
		c, err := pgtest.NewForTests()
		if err != nil {
			return 1, err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		cmd.Env = append(cmd.Env, pgtest.EnvDSN+"="+c.DSN())
	}
	// An interrupt from the terminal reaches the command too, and ends it; the
	// server must be stopped after that. (To ignore the signal would make the
	// command ignore it as well.)
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}
