package outline

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// Tone selects the colour and symbol of a verdict.
type Tone string

// The tones, by what a person should do: for ToneDone and ToneOff, nothing.
const (
	ToneDone    Tone = "done"
	ToneRun     Tone = "run"
	ToneResume  Tone = "resume"
	ToneWait    Tone = "wait" // for a person
	ToneIdle    Tone = "idle" // for time, a signal, a child
	ToneFail    Tone = "fail"
	ToneStuck   Tone = "stuck"
	ToneOff     Tone = "off"
	TonePending Tone = "pending"
)

// A Verdict answers "what is wrong with this run?" in a sentence derived from events.
type Verdict struct {
	Tone  Tone
	Head  Text
	Error string // in full, if one ended the run or holds it up
	More  []Text // sentences about how that happened
	Row   *Row   // that it is about; nil: about none
}

// Text returns all its sentences on one line, with only the first line of the error.
func (v Verdict) Text() string { return v.text(Text.String) }

// Guarded is Text without the words of errors and people, which may hold secrets.
func (v Verdict) Guarded() string { return v.text(Text.guarded) }

func (v Verdict) text(of func(Text) string) string {
	s := sentence(of(v.Head))
	for _, m := range v.More {
		s += " " + sentence(of(m))
	}
	return s
}

// sentence ends s as one, unless it ends already or was cut.
func sentence(s string) string {
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "…") {
		return s
	}
	return s + "."
}

// Damaged says first that the events do not follow one another.
func (o *Outline) Damaged(d *history.Damage) {
	o.Damage = d
	v := &o.Verdict
	v.More = append([]Text{say("Nothing after it is believed; the run stays as it is until it is repaired."), v.Head}, v.More...)
	v.Head = say(fmt.Sprintf("Event %d is damaged: %v", d.Seq, d.Err))
}

func (b *Builder) verdict(o *Outline) Verdict {
	v := Verdict{Row: o.Current}
	switch row := &o.Run; {
	case row.Status == store.Failed:
		b.failedVerdict(o, &v)
	case row.Paused:
		v.Tone = ToneOff
		v.Head = say("Paused")
		if b.stop.typ == store.WorkflowPaused && b.stop.reason != "" {
			v.Head = say("Paused: ", quote(b.stop.reason))
		}
		if !row.CancelAsked {
			v.More = append(v.More, say("Nobody executes it, and no signal or timer wakes it until it is unpaused."))
		}
	case row.Status == store.Completed:
		v.Tone, v.Row = ToneDone, nil
		v.Head = say("Completed in ", strong(Duration(o.RunTook())), ": ", count.Of(o.Steps, "step"))
		if o.FailedAttempts > 0 {
			v.Head = append(v.Head, say(", ", count.Of(o.FailedAttempts, "failed attempt"))...)
		}
	case row.Status == store.Cancelled:
		v.Tone, v.Row = ToneOff, nil
		v.Head = say("Cancelled ", o.ago(orTime(row.EndedAt, b.stop.at)))
		if reason := orElse(b.stop.reason, row.Reason); reason != "" && reason != "cancelled" {
			v.Head = append(v.Head, say(": ", quote(reason))...)
		}
		b.undone(o, &v)
	case row.Status == store.Pending:
		v.Tone, v.Row = TonePending, nil
		b.pendingVerdict(o, &v)
	case row.Status == store.Interrupted:
		b.interruptedVerdict(o, &v)
	case row.Status == store.Waiting:
		b.waitingVerdict(o, &v)
	default:
		b.runningVerdict(o, &v)
	}
	b.cancelling(o, &v)
	b.history(o, &v)
	return v
}

// failedVerdict describes a run that has failed.
func (b *Builder) failedVerdict(o *Outline, v *Verdict) {
	v.Tone = ToneFail
	v.Error = orElse(b.failure.message, o.Run.Reason)
	r := o.Current
	switch {
	case r == nil && b.failure.goexit:
		v.Row = nil
		v.Head = say("The function did not return: it ended its goroutine with runtime.Goexit")
		v.More = append(v.More, say("The methods FailNow, Fatal and SkipNow of package testing do so, too."))
	case r == nil && b.failure.message != "" && (b.failure.code == "error" || b.failure.code == ""):
		v.Row = nil
		v.Head = say("The function returned an error: ", quote(v.Error))
	case r == nil && b.failure.code == "panic":
		v.Row = nil
		v.Head = say("The function panicked: ", quote(v.Error))
	case r == nil:
		v.Row = nil
		v.Head = say("Failed: ", said(OneLine(v.Error, 200)))
	case len(r.Attempts) > 0 && r.Kind != Map:
		failed, same := 0, true
		for _, a := range r.Attempts {
			if a.State == AttemptFailed && !a.Reset {
				failed++
				same = same && a.Error == r.Error
			}
		}
		v.Head = say(code(r.Key), " failed", times(failed), "; the last error was ", quote(r.Error))
		if failed == 1 {
			v.Head = say(code(r.Key), " failed: ", quote(r.Error))
		} else if same {
			v.More = append(v.More, say("All ", count.Of(failed, "attempt"), " ended alike."))
		}
		v.Error = r.Error
	case r.Kind == Map:
		v.Head = say(code(r.Key), " failed: ", count.Number(r.ItemsFailed), " of ", count.Of(max(r.Items, r.ItemsDone+r.ItemsFailed), "item"), " failed, ", count.Number(r.ItemsDone), " are done")
		v.Error = orElse(r.Error, b.failure.message)
		for _, item := range r.Rows {
			if item.State == Failed {
				v.More = append(v.More, say("The first of them, ", code(item.Key), ", failed: ", quote(item.Error)))
				break
			}
		}
	case r.Kind == Child && r.ChildStatus != "":
		v.Head = say("Its child run ", code(r.ChildID), " ended as ", string(r.ChildStatus), ": ", quote(r.Error))
		v.Error = r.Error
	default:
		v.Head = say(code(r.Key), " failed: ", quote(r.Error))
		v.Error = r.Error
	}
	if c := b.caught; c != nil && r == nil && c.Error != "" {
		v.More = append(v.More, say("It had gone on after ", code(c.Key), " failed: ", quote(c.Error), "."))
	}
	if b.failure.message != "" && r != nil && v.Row != nil && r.Kind != Map && !strings.Contains(b.failure.message, OneLine(v.Error, 1<<16)) {
		v.More = append(v.More, say("The function returned ", quote(b.failure.message)))
	}
	if !o.Run.Recoverable {
		v.More = append(v.More, say(strong("It is final"), ": pages do not offer to resume it; the terminal and the API do."))
	}
	b.undone(o, v)
}

func (b *Builder) undone(o *Outline, v *Verdict) {
	u := b.rows[undoScope]
	if u == nil {
		return
	}
	done := 0
	var failed Text
	for _, r := range u.Rows {
		switch {
		case r.State == Done:
			done++
		case r.State == Failed && failed == nil:
			failed = say("; ", code(r.Name), " failed: ", quote(r.Error))
		}
	}
	v.More = append(v.More, append(say(fmt.Sprintf("%d of %s done", done, count.Of(len(u.Rows), "compensation"))), append(failed, Span{Text: "."})...))
}

// served names what a process must serve to execute the run.
func (o *Outline) served() Text {
	t := say(code(o.Run.Workflow))
	if o.Run.Version != "" { // "order 1" would read like the id of a run
		t = append(t, say(" v", strings.TrimPrefix(o.Run.Version, "v"))...)
	}
	if o.coded && !o.Served {
		t = append(t, say(" from queue ", code(o.Run.Queue))...)
	}
	return t
}

func (b *Builder) pendingVerdict(o *Outline, v *Verdict) {
	line := b.in.Line
	switch {
	case o.Run.WakeAt > o.Now && o.Run.Queue != "":
		v.Head = say("Not begun: it gets in line of ", code(o.Run.Queue), " ", o.clock(o.Run.WakeAt))
	case o.Run.WakeAt > o.Now:
		v.Head = say("Not begun: it starts ", o.clock(o.Run.WakeAt))
	case o.KnowExecutors && !o.Served:
		v.Tone = ToneStuck
		v.Head = say("Not begun: no live process serves ", o.served())
		if line != nil {
			v.More = append(v.More, say("It is ", line.Text(o.Now, o.zone), "."))
		}
	case line != nil:
		v.Head = line.Text(o.Now, o.zone)
	case o.Run.Queue != "": // a list does not read where each of its runs stands
		v.Head = say("Not begun: in line of ", code(o.Run.Queue))
	default:
		v.Head = say("Not begun: it waits for a process that takes it")
	}
}

// tried reports whether durable.Recover tries a run that is parked with this code (ADR 73).
func tried(code string) bool {
	return code == "definition_changed" || code == "undecodable" || code == "child_not_registered"
}

func (b *Builder) interruptedVerdict(o *Outline, v *Verdict) {
	row := &o.Run
	v.Tone = ToneOff
	switch {
	case row.Code == store.CodeNotRegistered:
		// What the process that parked the run has registered does not matter.
		v.Tone = ToneStuck
		v.Head = say("Parked: no process that was there serves ", o.served())
		v.More = append(v.More, say("It goes on once a process that does is started."))
		if o.KnowExecutors && o.Served {
			v.More = []Text{say("One does now, and takes it up.")}
		}
	case row.Code != "":
		v.Tone = ToneStuck
		v.Head = say("Parked: ", said(OneLine(orElse(row.Reason, row.Code), 240)))
		if row.Reason != OneLine(row.Reason, 240) {
			v.Error = row.Reason
		}
		more := say("It goes on when somebody resumes it.")
		switch {
		case history.UnreadInput(row.Code, row.Reason):
			more = say("It goes on when a program that can read it calls durable.Recover: a resume alone does not help.")
		case row.Code == "unrecorded":
			more = say("It goes on when another build calls durable.Recover, or when somebody resumes it.")
		case tried(row.Code):
			more = say("It goes on when a program whose code fits calls durable.Recover, or when somebody resumes it.")
		}
		v.More = append(v.More, more)
	case b.stop.reason == "resume requested":
		v.Head = say("Asked to go on ", o.ago(b.stop.at), "; no process has taken it yet")
	case o.ForkedFrom != "" && len(o.Lives) == 0:
		v.Head = say("Not executed yet")
		if o.Current != nil {
			v.Head = append(v.Head, append(say(": it goes on"), b.where(o)...)...)
		}
	default:
		v.Head = say("Stopped in good order ", o.ago(orTime(b.stop.at, row.UpdatedAt)), b.where(o))
	}
	if row.Code == "" && o.KnowExecutors && !o.Served {
		v.Tone = ToneStuck
		v.More = append(v.More, say("No live process serves ", o.served(), "."))
	} else if row.Code == "" {
		v.More = append(v.More, say("Any process that serves it takes it up."))
	}
	if l := b.in.Line; l != nil {
		v.More = append(v.More, say("It is ", l.Text(o.Now, o.zone), "."))
	}
}

// where names the call that a run had reached.
func (b *Builder) where(o *Outline) Text {
	switch r := o.Current; {
	case r == nil:
		if n := len(o.Lives); n > 0 && o.Lives[n-1].After != "" {
			return say(" after ", code(o.Lives[n-1].After))
		}
		return say(", with nothing recorded")
	case r.State == Expected:
		return say(" before ", code(r.Key))
	case len(r.Attempts) > 0:
		return say(" before attempt ", ofMax(r.next(), r.Max), " of ", code(r.Key))
	default:
		return say(" in ", code(r.Key))
	}
}

// next returns the number of the next attempt.
func (r *Row) next() int {
	n := 1
	for _, a := range r.Attempts {
		if a.State == AttemptFailed && !a.Reset {
			n = max(n, a.N+1)
		}
	}
	return n
}

func (b *Builder) waitingVerdict(o *Outline, v *Verdict) {
	v.Tone = ToneIdle
	r := o.Current
	if r == nil {
		v.Head = say("Waiting")
		return
	}
	switch r.Kind {
	case Approval:
		v.Tone = ToneWait
		v.Head = say("Waiting for a person: ", quote(r.Prompt))
		t := say("Asked ", o.ago(r.Begin), " in ", code(r.Key))
		if r.Until != 0 {
			t = append(t, say("; without an answer it times out ", o.clock(r.Until))...)
		}
		v.More = append(v.More, append(t, Span{Text: "."}))
	case Timer:
		v.Head = say("Sleeping in ", code(r.Key), " until ", o.clock(r.Until))
		if d := o.Now.Sub(r.Until); d > 5*time.Second {
			v.Head = say("Its sleep ", code(r.Key), " ended ", About(d), " ago and nobody has woken it")
			v.Tone = ToneStuck
		}
	case Child:
		v.Head = say("Waiting for the child run ", code(r.ChildID), ", started ", o.ago(r.Begin))
	default:
		v.Head = say("Waiting for the signal ", code(orElse(r.Signal, r.Key)), ", since ", o.clock(r.Begin))
		if r.Until != 0 {
			v.Head = append(v.Head, say("; it times out ", o.clock(r.Until))...)
		}
	}
	if besides := o.besides(r); besides != nil {
		v.More = append(v.More, besides)
	}
}

// besidesShown is how many other waits a verdict names.
const besidesShown = 3

// besides says what else a run waits for besides r; nil: nothing.
func (o *Outline) besides(r *Row) Text {
	others := slices.DeleteFunc(slices.Clone(o.Waits), func(w *Row) bool { return w == r })
	if len(others) == 0 {
		return nil
	}
	t := say("It waits besides for ")
	shown := others[:min(len(others), besidesShown)]
	for i, w := range shown {
		switch {
		case i > 0 && i == len(others)-1:
			t = append(t, say(" and ")...)
		case i > 0:
			t = append(t, say(", ")...)
		}
		t = append(t, awaited(w)...)
	}
	if more := len(others) - len(shown); more > 0 {
		t = append(t, say(" and ", count.Of(more, "other thing"))...)
	}
	return append(t, Span{Text: "."})
}

// awaited names what a call waits for.
func awaited(w *Row) Text {
	switch w.Kind {
	case Approval:
		return say("a person, in ", code(w.Key))
	case Timer:
		return say("the sleep ", code(w.Key))
	case Child:
		return say("the child run ", code(w.ChildID))
	}
	return say("the signal ", code(orElse(w.Signal, w.Key)))
}

func (b *Builder) runningVerdict(o *Outline, v *Verdict) {
	v.Tone = ToneRun
	if o.KnowExecutors && !o.Attended {
		b.abandoned(o, v)
		return
	}
	if o.Run.Status == store.Resuming {
		v.Tone = ToneResume
		v.Head = say("Going on: ", count.Of(o.Replayed, "step"), " taken from history")
		return
	}
	r := o.Current
	switch {
	case r != nil && r.State == Expected, r == nil && o.LastSeq > 0:
		// Plain steps are only recorded once their bodies are over.
		v.Row = nil
		v.Head = say("Running; the last thing recorded was ", o.ago(o.LastAt))
		if n := len(o.Lives); n > 0 && o.Lives[n-1].After != "" {
			v.Head = say("Running; ", code(o.Lives[n-1].After), " was recorded ", o.ago(o.LastAt))
		}
		if r != nil {
			v.Head = append(v.Head, say(", ", code(r.Key), " comes next")...)
		}
		v.More = append(v.More, say("What it does at this moment is known to its process alone."))
	case r == nil:
		v.Head = say("Running")
	case r.State == Backoff:
		v.Head = say(code(r.Key), " failed", times(r.next()-1), "; attempt ", ofMax(r.next(), r.Max), " begins in ", strong(About(r.NextAt.Sub(o.Now)+time.Second)))
		v.Error = lastError(r)
	case len(r.Attempts) > 0:
		v.Head = append(say("Running ", code(r.Key), ", attempt ", strong(ofMax(r.next(), r.Max))), o.begun(r)...)
		v.Error = lastError(r)
	case r.Kind == Map:
		v.Head = say("Running ", code(r.Key), ": ", count.Of(r.ItemsDone, "item"), " done")
		if r.ItemsFailed > 0 {
			v.Head = append(v.Head, say(", ", fmt.Sprint(r.ItemsFailed), " failed")...)
		}
	case r.State == Waiting:
		v.Head = say("Running, and waiting in ", code(r.Key))
	default:
		v.Head = say("Running ", code(r.Key))
		if r.Begin != 0 {
			v.Head = append(v.Head, say(" since ", o.clock(r.Begin))...)
		}
	}
}

// begun says when the current attempt began: by the record of its beginning, or by
// the time it was due. For a first attempt with neither, nothing is known.
func (o *Outline) begun(r *Row) Text {
	switch n := len(o.Lives); {
	case r.startedN == r.next():
		return say(" since ", o.clock(r.startedAt))
	case r.NextAt == 0:
		return nil
	case n > 0:
		return say(", due since ", o.clock(max(r.NextAt, o.Lives[n-1].Begin)))
	}
	return say(", due since ", o.clock(r.NextAt))
}

// abandoned describes a run that is executing according to its row, but whose owner
// is not live.
func (b *Builder) abandoned(o *Outline, v *Verdict) {
	v.Tone = ToneStuck
	v.Head = say("Nobody executes this run")
	if n := len(o.Lives); n > 0 {
		l := &o.Lives[n-1]
		v.Head = say("Nobody executes this run: ", code(l.Name), " was lost; its last sign is ", o.ago(l.End), b.where(o))
		since := "Nothing is recorded since: what it was doing may have happened."
		if o.Current == nil && l.After == "" {
			since = "What it was doing may have happened." // the head says that nothing is recorded
		}
		v.More = append(v.More, say(since))
	}
	if o.Served {
		v.More = append(v.More, say("A live process serves it, and takes it up when the lease has run out if it has called durable.Recover."))
	} else {
		v.More = append(v.More, say("No live process serves ", o.served(), "."))
	}
}

// history adds what happened to the run before: which executors were lost, which
// continued it, and what people did to it.
func (b *Builder) history(o *Outline, v *Verdict) {
	var lost, last *Life
	n := 0
	for i := range o.Lives[:max(len(o.Lives)-1, 0)] {
		if o.Lives[i].How == Lost {
			lost, last = &o.Lives[i], &o.Lives[i+1]
			n++
		}
	}
	if lost != nil {
		t := say("Before that ")
		if n > 1 {
			t = say("Its process was lost ", strong(times(n)[1:]), "; the last time ")
		}
		t = append(t, say(code(lost.Name), " was lost")...)
		if r, a := o.cutIn(lost); a != nil {
			t = append(t, say(" about ", strong("attempt "+ofMax(a.N, r.Max)), " of ", code(r.Key))...)
		} else if lost.After != "" {
			t = append(t, say(" after ", code(lost.After))...)
		}
		t = append(t, say("; ", code(last.Name), " went on ", strong(About(last.Begin.Sub(lost.End))), " later.")...)
		v.More = append(v.More, t)
	}
	for _, a := range b.acts[max(0, len(b.acts)-3):] {
		v.More = append(v.More, o.actText(a)...)
	}
	if o.ForkedFrom != "" {
		v.More = append(v.More, say("Forked from ", code(o.ForkedFrom), "."))
		v.More = append(v.More, b.editedInFork()...)
	}
}

// editedInFork names the results of a fork that differ from its source.
func (b *Builder) editedInFork() []Text {
	keys := slices.Sorted(maps.Keys(b.edited))
	if len(keys) == 0 {
		return nil
	}
	t := say("It has another result than its source of ", code(keys[0]))
	for _, key := range keys[1:] {
		t = append(t, say(", ", code(key))...)
	}
	e := b.edited[keys[0]] // one person has edited all
	if e.By != "" {
		t = append(t, say(", by ", strong(e.By))...)
	}
	if e.Reason != "" {
		t = append(t, say(" (", quote(e.Reason), ")")...)
	}
	return []Text{append(t, say(".")...)}
}

func (o *Outline) actText(a act) []Text {
	by := Text{}
	if a.by != "" {
		by = say(" by ", strong(a.by))
	}
	if a.reason != "" && a.typ != store.WorkflowRecovered && a.typ != store.FailuresReset {
		by = append(by, say(" (", quote(a.reason), ")")...)
	}
	at := o.clock(a.at)
	switch a.typ {
	case store.Edited:
		return []Text{say("The result of ", code(a.key), " was edited", by, ", ", at, ".")}
	case store.JumpActivated:
		return []Text{say("It was taken back", by, ", ", at, ".")}
	case store.WorkflowRecovered:
		return []Text{say("Its history was mended ", at, ": ", OneLine(a.reason, 160), ".")}
	case store.FailuresReset:
		return []Text{say("Its failures were reset ", at, ".")}
	}
	return nil
}

// cutIn returns the attempt that may have been in progress when a life was lost.
func (o *Outline) cutIn(l *Life) (row *Row, cut *Attempt) {
	for _, lane := range o.Lanes {
		Each(lane.Rows, func(r *Row) bool {
			for i := range r.Attempts {
				if a := &r.Attempts[i]; a.State == AttemptCut && &o.Lives[a.Life] == l {
					row, cut = r, a
				}
			}
			return cut == nil
		})
	}
	return row, cut
}

func lastError(r *Row) string {
	for i := len(r.Attempts) - 1; i >= 0; i-- {
		if r.Attempts[i].State == AttemptFailed {
			return r.Attempts[i].Error
		}
	}
	return ""
}

func times(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " once"
	case 2:
		return " twice"
	}
	return fmt.Sprintf(" %d times", n)
}

func orTime(a, b store.Time) store.Time {
	if a != 0 {
		return a
	}
	return b
}
