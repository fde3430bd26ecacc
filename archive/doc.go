// Package archive keeps copies of runs outside the store: in a git repository, one
// ref per run (Git), or in a directory, one file per run (Dir). A copy is written
// when a run ends and whenever it waits, and the next one replaces it. It can be read
// without this program, with git or any JSON reader, and is enough to continue the
// run when the store is lost (Restore).
//
//	git, err := archive.OpenGit(ctx, "/srv/history.git", archive.GitOptions{})
//	history := archive.Hydrate(ctx, git, nil)       // what earlier processes archived
//	eng, err := durable.Open(ctx, st, durable.Options{Archive: history})
//
// The store stays the truth: a run never waits for its copy, unless
// durable.Options.ArchiveSync asks for that, and never fails for it. What
// could not be written is logged, and tried again by the next process.
package archive
