// Package cli is the terminal: a tree of cobra commands that list, show, resume,
// answer, mend and watch runs.
//
// A program mounts it in its own command, and then its workflows execute there:
//
//	root.AddCommand(cli.Command(eng))
//	if err := root.Execute(); err != nil {
//		os.Exit(cli.ExitCode(err))
//	}
//
// cmd/durable is the same tree on its own, for any store or, with --server or
// --profile, for a running program's HTTP API. No command recovers more than it was
// asked to: only the run that is named executes, and an engine without workflows
// claims nothing.
//
// Results go to standard output, messages and progress to standard error. A
// terminal sees tables, colour and one live line; a pipe sees tabs, UTC, and no
// header. With --json every result is one object; lists and streams print one per
// line. docs/terminal.md has the commands, the exit codes and the profiles.
package cli
