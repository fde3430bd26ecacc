// Package shell runs commands as durable steps: the exit code, the output and
// where the command ran are recorded, a replay does not run it again, and
// attempts that failed are kept with what they wrote.
//
//	ws := &shell.Workspace{Dir: "/src/app", Output: os.Stdout}
//	if _, err := ws.Retry(ctx, "test", durable.Policy{MaxAttempts: 5}, "go", "test", "./..."); err != nil {
//		return err
//	}
//
// A command is started in its own process group, which is ended as a whole when its step is
// stopped: by a cancel, a time limit, a shutdown. A command that was running when the process died
// is never reattached: it is ended, if it still runs on this machine, and run again. So a command
// must tolerate being run twice, or find out on its own what its first run has done.
//
// Where a command ran is recorded with its step: directory, arguments, the named variables, and
// HEAD, branch and dirty flag of the git work tree. When a run is resumed, that is compared with
// the current state; see Workspace.OnMismatch. Nothing is ever reset or cleaned.
package shell
