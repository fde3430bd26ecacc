package everystore_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// How a function that takes a context is covered. An act by its name is in the table of
// whole acts.
const (
	isRead   = "reads"             // it writes nothing
	inRun    = "in a run"          // a durable call: the shapes of this package are killed at every write
	oneFile  = "one file, one ref" // its one write is killed by the tests of package archive
	commands = "a command"         // the tests of package shell kill its processes
	onePut   = "one put"           // its one write is a compare-and-set, and what was put is looked at first
	inTx     = "in a transaction"  // test/transactions kills processes at each of its points
	isLife   = "of the process"    // it begins or ends one, or says which is meant
)

// howCovered says of every exported function and method of durable, operate, archive and shell that
// takes a context, and so may read or write, how it is covered when a process dies in it.
var howCovered = map[string]string{
	"durable.Await": inRun, "durable.AwaitRequest": inRun, "durable.Checkpoint": inRun, "durable.Compensate": inRun, "durable.Continue": "Continue",
	"durable.DeprecatePatch": inRun, "durable.Do": inRun, "durable.First": inRun, "durable.Go": inRun, "durable.Map": inRun, "durable.MapSeq": inRun,
	"durable.NewGroup": inRun, "durable.NewID": inRun, "durable.Note": inRun, "durable.Now": inRun, "durable.Once": inRun, "durable.Patched": inRun,
	"durable.Publish": inRun, "durable.Rand": inRun, "durable.Retry": inRun, "durable.RetryDo": inRun, "durable.RetryFailed": "RetryFailed", "durable.SaveNamedProgress": inRun,
	"durable.SaveProgress": inRun, "durable.Seek": inRun, "durable.SetAttributes": inRun, "durable.Sleep": inRun, "durable.SleepUntil": inRun,
	"durable.Step": inRun, "durable.Future.Wait": inRun,

	"durable.Transact": inTx, "durable.RetryTransact": inTx,

	"durable.Attempt": isRead, "durable.Headers": isRead, "durable.IdempotencyKey": isRead, "durable.Logger": isRead, "durable.NamedProgress": isRead,
	"durable.Progress": isRead, "durable.Published": isRead, "durable.RunID": isRead, "durable.RunVersion": isRead, "durable.WaitPublished": isRead,
	"durable.Run.Result": isRead, "durable.Run.Status": isRead, "durable.Run.Wait": isRead, "durable.ScheduledAt": isRead, "operate.Operator.Schedules": isRead, "durable.SpanIDs.NewIDs": isRead, "durable.SpanIDs.NewSpanID": isRead, "durable.WorkflowName": isRead,

	"durable.NewContext": isLife, "durable.Open": isLife, "durable.Recover": "Start", "durable.Engine.Recover": "Start", // every trial boots anew

	"durable.Request": "Request", "durable.Signal": "Signal",

	"durable.Engine.Adopt": "Adopt", "operate.Operator.Answer": "Answer", "durable.Engine.Cancel": "Cancel with children", "operate.Operator.Clean": "Clean of a family",
	"operate.Operator.Edit": "Edit", "operate.Operator.Fork": "Fork with an edit", "operate.Operator.Import": "Import of a child that has ended", "operate.Operator.Jump": "Jump",
	"durable.Engine.Pause": "Pause", "durable.Engine.RecoverRun": "RecoverRun", "operate.Operator.Repair": "Repair", "operate.Operator.Resume": "Resume from a checkpoint",
	"operate.Operator.ResumeAll": "ResumeAll", "durable.Engine.Signal": "Signal", "operate.Operator.StartJSON": "StartJSON", "operate.Operator.EnqueueJSON": "StartJSON", "durable.Engine.Unpause": "Unpause",

	"operate.Operator.Approvals": isRead, "operate.Operator.ApprovalsOf": isRead, "operate.Operator.Branches": isRead, "operate.Operator.CheckpointOf": isRead,
	"operate.Operator.Export": isRead, "operate.Operator.Form": isRead, "operate.Operator.Generations": isRead, "durable.Engine.Get": isRead, "durable.Engine.Health": isRead,
	"durable.Engine.History": isRead, "operate.Operator.HistoryOf": isRead, "operate.Operator.KeysInUse": isRead, "operate.Operator.LastInterrupted": isRead,
	"operate.Operator.LeftBehind": isRead, "operate.Operator.Lineage": isRead, "durable.Engine.List": isRead, "operate.Operator.ListResumable": isRead,
	"operate.Operator.PlanFork": isRead, "operate.Operator.ResumePoint": isRead, "operate.Operator.Skipped": isRead, "operate.Operator.Standing": isRead,
	"operate.Operator.Standings": isRead, "operate.Operator.Stuck": isRead, "operate.Operator.Verify": isRead, "operate.Operator.VerifyAll": isRead, "durable.Engine.Watch": isRead,

	"operate.Operator.PauseSchedule": onePut, "operate.Operator.ResumeSchedule": onePut, "operate.Operator.DeleteSchedule": onePut,
	"operate.Operator.TriggerSchedule": "TriggerSchedule", "operate.Operator.BackfillSchedule": "BackfillSchedule",

	"operate.Operator.DeadLetters": isRead, "operate.Operator.Line": isRead, "operate.Operator.PlanBackfill": isRead, "operate.Operator.Queues": isRead,
	"operate.Operator.PauseQueue": onePut, "operate.Operator.ResumeQueue": onePut,
	"operate.Operator.RetryDeadLetter": "Resume", "operate.Operator.RetryDeadLetters": "ResumeAll", // each run is resumed

	"durable.Workflow.Enqueue": "Start", "durable.Workflow.Handle": isRead, "durable.Workflow.Run": "Start", "durable.Workflow.Start": "Start with a signal, keys and a delay", "durable.Workflow.StartAll": "StartAll",

	"archive.Dir.Get": isRead, "archive.Dir.List": isRead, "archive.Dir.Trace": isRead, "archive.Git.Get": isRead, "archive.Git.List": isRead,
	"archive.Git.Trace": isRead, "archive.History.Beside": isRead, "archive.History.Get": isRead, "archive.History.List": isRead, "archive.History.Refresh": isRead,
	"archive.History.Trace": isRead, "archive.Hydrate": isRead, "archive.OpenGit": oneFile, "archive.Dir.Store": "archiving", "archive.Git.Store": oneFile,
	"archive.History.Store": "archiving", "archive.Restore": "Restore", "archive.RestoreWaiting": "RestoreWaiting",

	"shell.Workspace.Exec": commands, "shell.Workspace.Retry": commands, "shell.Workspace.Run": commands, "shell.Workspace.Seek": commands, "shell.RunIn": isRead,
}

// takeContext lists the exported functions and methods of a package whose first parameter
// is a context.
func takeContext(t *testing.T, pkg string) (names []string) {
	files, err := filepath.Glob("../../" + pkg + "/*.go")
	require.NoError(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !fn.Name.IsExported() || fn.Type.Params.NumFields() == 0 {
				continue
			}
			sel, ok := fn.Type.Params.List[0].Type.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Context" {
				continue
			}
			if x, named := sel.X.(*ast.Ident); !named || x.Name != "context" {
				continue
			}
			name := pkg + "." + fn.Name.Name
			if fn.Recv != nil {
				of := receiverOf(fn.Recv.List[0].Type)
				if !ast.IsExported(of) {
					continue
				}
				name = pkg + "." + of + "." + fn.Name.Name
			}
			names = append(names, name)
		}
	}
	return names
}

func receiverOf(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiverOf(x.X)
	case *ast.IndexExpr:
		return receiverOf(x.X)
	case *ast.IndexListExpr:
		return receiverOf(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// A new act cannot be forgotten: whatever takes a context is in the list above, with the way
// in which a death in the middle of it is tried.
func TestEveryPublicActIsTriedWithADeathInTheMiddle(t *testing.T) {
	var all []string
	for _, pkg := range []string{"durable", "operate", "archive", "shell"} {
		all = append(all, takeContext(t, pkg)...)
	}
	require.Greater(t, len(all), 80)
	for _, name := range all {
		how, listed := howCovered[name]
		if !listed {
			t.Errorf("%s is not in howCovered: if it writes, add an act to wholeActs", name)
			continue
		}
		act := !slices.Contains([]string{isRead, inRun, oneFile, onePut, commands, inTx, isLife}, how)
		if act && !slices.ContainsFunc(wholeActs, func(a wholeAct) bool { return a.name == how }) {
			t.Errorf("%s is said to be tried by the act %q, which there is not", name, how)
		}
	}
	for name := range howCovered {
		if !slices.Contains(all, name) {
			t.Errorf("%s is in howCovered, and there is no such function", name)
		}
	}
}
