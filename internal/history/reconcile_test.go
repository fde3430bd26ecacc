package history_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// lineageOf makes events of words: "created" and "started" stand for those of the
// workflow, "completed a" for step_completed of a, "wait w", "beside w" for one
// asked for while others went on, "jump 3" for a request to turn to branch 3,
// "declares a,b" for a creation with declared steps.
func lineageOf(words ...string) []store.Event {
	types := map[string]store.Type{
		"created": store.WorkflowCreated, "declares": store.WorkflowCreated, "started": store.WorkflowStarted, "resumed": store.RunResumed,
		"claimed": store.RunClaimed, "recovered": store.WorkflowRecovered, "ended": store.WorkflowCompleted, "interrupted": store.WorkflowInterrupted,
		"completed": store.StepCompleted, "step": store.StepStarted, "attempt": store.AttemptFailed, "failed": store.StepFailed,
		"wait": store.WaitRequested, "beside": store.WaitRequested, "answer": store.SignalReceived, "late": store.WaitTimedOut,
		"timer": store.TimerSet, "fired": store.TimerFired, "child": store.ChildStarted, "finished": store.ChildFinished,
		"item": store.ItemCompleted, "published": store.Published, "jump": store.JumpRequested, "attributes": store.AttributesSet,
	}
	var events []store.Event
	steps := int32(0)
	for i, line := range words {
		word, rest, _ := strings.Cut(line, " ")
		e := store.Event{Seq: int64(i + 1), Type: types[word], Ordinal: 1}
		if e.Type == "" {
			panic(word)
		}
		switch word {
		case "declares":
			e.Data = history.Encode(&history.Beginning{Declared: strings.Split(rest, ",")})
		case "jump":
			var d history.Act
			_, _ = fmt.Sscan(rest, &d.ToBranch)
			e.Data = history.Encode(&d)
		case "attributes":
			e.Data = history.Encode(&history.AttributeSet{Attributes: map[string]string{"a": rest}})
		case "wait", "beside":
			e.Key = rest
			e.Data = history.Encode(&history.WaitBegun{Name: rest, Beside: word == "beside"})
		case "child":
			e.Key = rest
			e.Data = history.Encode(&history.ChildBegun{Child: "r/" + rest})
		default:
			e.Key = rest
		}
		if e.Type == store.StepCompleted {
			steps++
		}
		e.Steps = steps
		events = append(events, e)
	}
	return events
}

func TestTheCatalogue(t *testing.T) {
	here := history.CodeAtHand{Workflow: true, Pinned: true, Initial: true}
	for _, c := range []struct {
		name   string
		status store.Status
		events []string
		code   string
		after  int64
		steps  int32
		error  string
	}{
		{"A1 behind a step", store.Waiting, []string{"created", "started", "completed a", "published p"}, history.CodeA1, 3, 1, ""},
		{"A1 behind an answer", store.Waiting, []string{"created", "started", "completed a", "wait w", "answer w", "attempt b"}, history.CodeA1, 5, 1, ""},
		{"A1 behind a step that follows the answer", store.Waiting, []string{"created", "started", "wait w", "answer w", "completed w/b"}, history.CodeA1, 5, 1, ""},
		{"A1 keeps an effect that has begun", store.Waiting, []string{"created", "started", "completed a", "step pay"}, history.CodeA1, 4, 1, ""},
		{"A1 keeps what became of an effect", store.Waiting, []string{"created", "step pay", "completed a", "failed pay"}, history.CodeA1, 4, 1, ""},
		{"A1 keeps compensations", store.Waiting, []string{"created", "completed a", "failed b", "attempt ~undo/a", "claimed"}, history.CodeA1, 4, 1, ""},
		{"A1 with nothing stable", store.Waiting, []string{"created", "started", "attempt a"}, history.CodeA1, 0, 0, history.NoStableEvent},
		{"A1 with an effect and nothing stable", store.Waiting, []string{"created", "started", "step a"}, history.CodeA1, 0, 0, history.NoStableEvent},
		{"A1 goes back to before a wait that was open", store.Waiting, []string{"created", "completed a", "wait w", "completed b", "late w"}, history.CodeA1, 2, 1, ""},
		{"a timer is a wait", store.Waiting, []string{"created", "started", "timer sleep", "claimed"}, "", 0, 0, ""},
		{"a child is a wait", store.Waiting, []string{"created", "started", "child kid", "completed b"}, "", 0, 0, ""},
		{"A2 cuts before the wait", store.Running, []string{"created", "started", "completed a", "wait w"}, history.CodeA2, 3, 1, ""},
		{"A2 on a first step", store.Running, []string{"created", "started", "wait w"}, history.CodeA2, 2, 0, ""},
		{"A2 while resuming", store.Resuming, []string{"created", "started", "wait w"}, history.CodeA2, 2, 0, ""},
		{"A2 cuts at the start of the step that asks", store.Running, []string{"created", "started", "step ask", "published p", "wait ask/w"}, history.CodeA2, 3, 0, ""},
		{"A2 does not leave behind an effect of that step", store.Running, []string{"created", "started", "step ask", "step ask/pay", "completed ask/pay", "wait ask/w"}, history.CodeA2, 5, 1, ""},
		{"others went on beside the wait", store.Running, []string{"created", "started", "beside w"}, "", 0, 0, ""},
		{"another step has begun", store.Running, []string{"created", "started", "attempt b", "wait w"}, "", 0, 0, ""},
		{"another wait is open", store.Running, []string{"created", "started", "timer b/sleep", "wait w"}, "", 0, 0, ""},
		{"it was resumed since", store.Resuming, []string{"created", "started", "wait w", "interrupted", "resumed"}, "", 0, 0, ""},
		{"A3", store.Running, []string{"declares a,b", "started", "completed a", "completed b"}, history.CodeA3, 4, 2, ""},
		{"A3 behind claims", store.Resuming, []string{"declares a,b", "started", "completed a", "completed b", "resumed"}, history.CodeA3, 4, 2, ""},
		{"A3 with one name twice", store.Running, []string{"declares a,a", "started", "completed a", "completed a#2"}, history.CodeA3, 4, 2, ""},
		{"A3 takes escaped names", store.Running, []string{"declares a/b", "started", "completed a%2Fb"}, history.CodeA3, 3, 1, ""},
		{"one name once of twice", store.Running, []string{"declares a,a", "started", "completed a"}, "", 0, 0, ""},
		{"one is missing", store.Running, []string{"declares a,b", "started", "completed a"}, "", 0, 0, ""},
		{"a step of an item is not the step", store.Running, []string{"declares a", "started", "completed m[0]/a"}, "", 0, 0, ""},
		{"nothing is declared", store.Running, []string{"created", "started", "completed a"}, "", 0, 0, ""},
		{"all is done and it went on", store.Running, []string{"declares a", "started", "completed a", "attempt more"}, "", 0, 0, ""},
		{"A3 once", store.Resuming, []string{"declares a", "started", "completed a", "recovered", "resumed"}, "", 0, 0, ""},
		{"A4: the error is the function's business", store.Running, []string{"created", "started", "completed a", "failed b"}, "", 0, 0, ""},
		{"B1", store.Waiting, []string{"created", "started", "wait w"}, "", 0, 0, ""},
		{"C1", store.Running, []string{"created", "started", "completed a", "step b"}, "", 0, 0, ""},
		{"C2", store.Running, []string{"created", "started", "step b", "completed b/x", "item m[0]"}, "", 0, 0, ""},
		{"D2", store.Interrupted, []string{"created", "started", "completed a", "completed b", "jump 1"}, history.CodeD2, 4, 2, ""},
		{"D2 of a failed run", store.Failed, []string{"created", "started", "completed a", "failed b", "jump 1"}, history.CodeD2, 4, 1, ""},
		{"D2 before the first of two", store.Interrupted, []string{"created", "jump 1", "jump 2"}, history.CodeD2, 1, 0, ""},
		{"D2 has nothing before it", store.Interrupted, []string{"jump 1"}, history.CodeD2, 0, 0, history.NoStableEvent},
		{"D2 over an effect", store.Running, []string{"created", "jump 1", "step pay"}, history.CodeD2, 1, 0, "run r cannot be taken back to before the jump that was requested by event 2: event 3 records an effect which would happen again; resume it from a checkpoint of your choice, with Force"},
		{"A1 comes before D2", store.Waiting, []string{"created", "completed a", "jump 1"}, history.CodeA1, 2, 1, ""},
		{"ended runs are sound", store.Completed, []string{"created", "started", "jump 1"}, "", 0, 0, ""},
		{"pending runs are sound", store.Pending, []string{"created"}, "", 0, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := history.NewSurvey("r")
			events := lineageOf(c.events...)
			for i := range events {
				require.NoError(t, s.Add(&events[i]))
			}
			f := history.Reconcile(&store.Run{ID: "r", Status: c.status}, s, here)
			require.Equal(t, c.code, f.Code)
			require.Equal(t, c.error, f.Refused)
			if c.code != "" && c.error == "" {
				require.True(t, f.Cut)
				require.Equal(t, []any{c.after, c.steps}, []any{f.After, f.Steps})
				require.True(t, strings.HasPrefix(f.Reason(), c.code+": "))
			}
		})
	}
}

func TestAnAnswerInTheInboxIsNotTakenFromItsWait(t *testing.T) {
	s := history.NewSurvey("r")
	for _, e := range lineageOf("created", "started", "wait w") {
		require.NoError(t, s.Add(&e))
	}
	w := s.WaitsAlone()
	require.NotNil(t, w)
	for name, want := range map[string]bool{"w": true, "w@0": true, "w@1": false, "v": false} {
		require.Equal(t, want, s.IsAnswer(&store.Message{Kind: store.KindSignal, Name: name}, w, 0) && want, name)
	}
	s.Answered = true
	require.Empty(t, history.Reconcile(&store.Run{Status: store.Running}, s, history.CodeAtHand{}).Code)
}

// Only a request on the branch the run is on counts: those before it were carried
// out, however many there were.
func TestJumpsThatWereCarriedOutAreNotFlagged(t *testing.T) {
	events := lineageOf("created", "started", "jump 1", "completed a", "jump 2", "completed b")
	for i := 3; i < 5; i++ {
		events[i].Branch = 1
	}
	events[5].Branch = 2
	s := history.NewSurvey("r")
	for i := range events {
		require.NoError(t, s.Add(&events[i]))
	}
	here := history.CodeAtHand{Workflow: true, Pinned: true}
	require.Equal(t, history.Finding{}, history.Reconcile(&store.Run{Status: store.Interrupted, Branch: 2}, s, here))
	torn := history.Reconcile(&store.Run{Status: store.Interrupted, Branch: 1}, s, here)
	require.Equal(t, []any{history.CodeD2, int64(4)}, []any{torn.Code, torn.After})
}

func TestGlance(t *testing.T) {
	for _, c := range []struct {
		status   store.Status
		last     string
		declared int
		want     history.Look
	}{
		{store.Waiting, "wait w", 0, history.LookNone},
		{store.Waiting, "timer s", 0, history.LookNone},
		{store.Waiting, "child k", 0, history.LookNone},
		{store.Waiting, "claimed", 0, history.LookTail},
		{store.Waiting, "completed a", 0, history.LookTail},
		{store.Running, "wait w", 0, history.LookFull},
		{store.Running, "completed a", 0, history.LookNone},
		{store.Running, "completed a", 2, history.LookNone},
		{store.Running, "completed a", 1, history.LookFull},
		{store.Resuming, "resumed", 0, history.LookTail},
		{store.Interrupted, "interrupted", 0, history.LookTail},
		{store.Interrupted, "jump 1", 0, history.LookFull},
		{store.Completed, "ended", 0, history.LookNone},
		{store.Failed, "jump 1", 0, history.LookNone},
	} {
		e := lineageOf(c.last)[0]
		require.Equal(t, c.want, history.Glance(&store.Run{Status: c.status, Last: &e}, c.declared), "%s %s %d", c.status, c.last, c.declared)
	}
	require.Equal(t, history.LookFull, history.Glance(&store.Run{Status: store.Running}, 0), "a run without an event")
	for _, c := range []struct {
		status store.Status
		tail   []string
		whole  bool
		want   history.Look
	}{
		{store.Waiting, []string{"wait w", "completed b", "claimed"}, false, history.LookNone},
		{store.Waiting, []string{"wait w", "answer w", "claimed"}, false, history.LookFull},
		{store.Waiting, []string{"completed a", "claimed"}, true, history.LookFull},
		{store.Running, []string{"completed a", "resumed"}, false, history.LookNone},
		{store.Running, []string{"resumed", "resumed"}, false, history.LookTail},
		{store.Running, []string{"jump 1", "resumed"}, true, history.LookFull},
	} {
		require.Equal(t, c.want, history.GlanceTail(&store.Run{Status: c.status}, lineageOf(c.tail...), c.whole), "%v", c.tail)
	}
}

func TestAVersionThatIsNotThere(t *testing.T) {
	s := history.NewSurvey("r")
	row := &store.Run{ID: "r", Workflow: "w", Status: store.Failed, Version: "2", InitialVersion: "1"}
	require.Equal(t, history.Finding{Code: history.CodeE2, Version: "1"}, history.Reconcile(row, s, history.CodeAtHand{Workflow: true, Initial: true}))
	require.Contains(t, history.Reconcile(row, s, history.CodeAtHand{Workflow: true}).Refused, "neither its version 2 nor its initial version 1")
	require.Empty(t, history.Reconcile(row, s, history.CodeAtHand{}).Code, "a workflow that is nowhere here is not ours to judge")
	require.Empty(t, history.Reconcile(row, s, history.CodeAtHand{Workflow: true, Pinned: true}).Code)
	row.Version = "1"
	require.NotEmpty(t, history.Reconcile(row, s, history.CodeAtHand{Workflow: true}).Refused)
}

// Whatever the events are: a repair cuts within the lineage, and what it leaves
// needs no second one for the same reason.
func FuzzReconcile(f *testing.F) {
	words := []string{"created", "declares a", "started", "resumed", "claimed", "recovered", "completed a", "completed m[0]/b", "step a", "attempt a", "failed a", "wait w", "wait a/v", "beside w", "answer w", "late w", "timer s", "fired s", "child k", "finished k", "published p", "jump 1", "jump 2", "attributes x", "attempt ~undo/a"}
	f.Add([]byte{1, 2, 6, 11}, uint8(1))
	f.Add([]byte{0, 2, 6, 11, 14, 6, 20, 21}, uint8(3))
	f.Add([]byte{1, 2, 6}, uint8(1))
	f.Add([]byte{11}, uint8(1)) // a wait without a beginning
	f.Fuzz(func(t *testing.T, list []byte, status uint8) {
		var story []string
		for _, b := range list {
			story = append(story, words[int(b)%len(words)])
		}
		row := &store.Run{ID: "r", Status: store.Statuses()[int(status)%len(store.Statuses())]}
		judge := func(events []store.Event) history.Finding {
			s := history.NewSurvey("r")
			for i := range events {
				require.NoError(t, s.Add(&events[i]))
			}
			return history.Reconcile(row, s, history.CodeAtHand{Workflow: true, Pinned: true, Initial: true})
		}
		events := lineageOf(story...)
		for n := 0; ; n++ {
			require.Less(t, n, 5, "%v", story)
			f := judge(events)
			if f.Code == "" || f.Refused != "" {
				return
			}
			require.True(t, f.Cut)
			require.Positive(t, f.After, "%v", story)
			require.LessOrEqual(t, f.After, events[len(events)-1].Seq, "%v", story)
			kept := events[:0:0]
			for _, e := range events {
				if e.Seq <= f.After {
					kept = append(kept, e)
				}
			}
			row.Branch++
			events = append(kept, store.Event{Seq: events[len(events)-1].Seq + 1, Branch: row.Branch, Type: store.WorkflowRecovered})
			if row.Status != store.Failed {
				row.Status = store.Interrupted
			}
		}
	})
}
