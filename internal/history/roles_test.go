package history_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// What a claim says is stored byte for byte as it always was, and read again as it was
// said.
func TestTheBytesOfAClaimStayAsTheyAre(t *testing.T) {
	whole := history.Claim{Executor: "e1", Build: "b2", Segment: "s3", Resumed: true, Name: "n4", Version: "v5", Force: true, Host: "h6", PID: 7}
	for want, c := range map[string]history.Claim{
		"": {},
		`{"executor":"e1","build":"b2","segment":"s3","resumed":true,"name":"n4","version":"v5","force":true,"host":"h6","pid":7}`: whole,
		`{"executor":"e1","build":"b2","name":"n4","host":"h6","pid":7}`:                                                           {Executor: "e1", Build: "b2", Name: "n4", Host: "h6", PID: 7},
	} {
		require.Equal(t, want, string(history.Encode(&c)))
		for _, typ := range []store.Type{store.WorkflowStarted, store.RunResumed, store.RunClaimed} {
			again, err := history.Of[history.Claim](&store.Event{Type: typ, Data: history.Encode(&c)})
			require.NoError(t, err)
			require.Equal(t, c, again)
		}
	}
}

// Fields that a claim does not have, of the beginning of a generation or of another
// version, are passed over.
func TestAClaimIsReadBesideFieldsThatItDoesNotHave(t *testing.T) {
	c, err := history.Of[history.Claim](&store.Event{Type: store.WorkflowStarted, Data: []byte(`{"seed":"0102030405060708","executor":"e1","generation":2,"sum":9,"later":{"a":1},"host":"h6"}`)})
	require.NoError(t, err)
	require.Equal(t, history.Claim{Executor: "e1", Host: "h6"}, c)
	_, err = history.Of[history.Claim](&store.Event{Type: store.RunClaimed, Data: []byte(`{"executor":`)})
	require.Error(t, err)
}

// What a marker and the end of a race say is stored byte for byte as it always was.
func TestTheBytesOfMarkersAndWinnersStayAsTheyAre(t *testing.T) {
	for want, m := range map[string]history.Marker{"": {}, `{"name":"fees"}`: {Name: "fees"}, `{"name":"fees","deprecated":true}`: {Name: "fees", Deprecated: true}} {
		require.Equal(t, want, string(history.Encode(&m)))
		again, err := history.Of[history.Marker](&store.Event{Type: store.Patched, Data: history.Encode(&m)})
		require.NoError(t, err)
		require.Equal(t, m, again)
	}
	for want, w := range map[string]history.Won{"": {}, `{"winner":3}`: {Winner: 3}} {
		require.Equal(t, want, string(history.Encode(&w)))
		again, err := history.Of[history.Won](&store.Event{Type: store.FirstWon, Data: history.Encode(&w)})
		require.NoError(t, err)
		require.Equal(t, w, again)
	}
	_, err := history.Of[history.Won](&store.Event{Type: store.FirstWon, Data: []byte(`{"item":"0a","winner":1,"later":[]}`)})
	require.NoError(t, err, "fields of the scope and of other versions are passed over")
}

// What the other events say is stored byte for byte as it always was: the names and the order
// of all fields.
func TestTheBytesOfWhatEventsSayStayAsTheyAre(t *testing.T) {
	yes, n := true, int32(3)
	failed := &history.Error{Message: "no"}
	raw := json.RawMessage("1")
	reopened := history.Reopened{Reset: []string{"a"}, Anew: map[string]int32{"b": 2}, Lifted: 5}
	preface := history.Preface{Stopped: map[string]int32{"": 1}, StoppedWaits: map[string]int32{"": 2}, Undoes: []string{"a"}, Late: &yes, Item: "0a"}
	const (
		ofPreface = `"stopped":{"":1},"stopped_waits":{"":2},"undoes":["a"],"late":true,"item":"0a"}`
		ofCut     = `"cut":{"parent":1,"generation":2,"cutoff":3,"scope":"s","sum":4}`
	)
	cut := &history.Cut{Parent: 1, Generation: 2, Cutoff: 3, Scope: "s", Sum: 4}

	stays(t, history.Beginning{Seed: "01", MaxPayload: 2, Declared: []string{"a"}, Executor: "e", Build: "b", Segment: "s", Name: "n", Headers: map[string]string{"h": "1"}, Deadline: 3, Exclusive: []string{"k"}, Attributes: map[string]string{"a": "1"}, Around: "r", BeganAt: 4, Linked: "l", Baggage: "g", Generation: 5, Inbox: 6, Pending: []int64{1}, Sum: 7, Environment: raw, Fork: &history.Fork{From: "f", At: 8}, Run: &history.Identity{Workflow: "w", CreatedAt: 9}, Host: "h", PID: 10},
		`{"seed":"01","max_payload":2,"declared":["a"],"executor":"e","build":"b","segment":"s","name":"n","headers":{"h":"1"},"deadline":3,"exclusive":["k"],"attributes":{"a":"1"},"around":"r","began_at":4,"linked":"l","baggage":"g","generation":5,"inbox":6,"pending":[1],"sum":7,"environment":1,"fork":{"from":"f","at":8},"run":{"workflow":"w","created_at":9},"host":"h","pid":10}`,
		store.WorkflowCreated, store.WorkflowStarted)
	stays(t, history.Continued{Generation: 1}, `{"generation":1}`, store.WorkflowContinued)
	stays(t, history.End{Error: failed, Executor: "e", Code: "c", Reason: "r", Recoverable: &yes, Uncalled: []string{"a"}},
		`{"error":{"message":"no"},"executor":"e","code":"c","reason":"r","recoverable":true,"uncalled":["a"]}`, store.WorkflowCompleted, store.WorkflowFailed, store.WorkflowCancelled)
	stays(t, history.Stop{Error: failed, Executor: "e", Code: "c", Reason: "r", Message: 4, Reopened: reopened, Force: true},
		`{"error":{"message":"no"},"executor":"e","code":"c","reason":"r","message":4,"reset":["a"],"anew":{"b":2},"lifted":5,"force":true}`, store.WorkflowInterrupted, store.WorkflowPaused, store.WorkflowUnpaused)
	stays(t, history.Act{Executor: "e", Reason: "r", Message: 1, FromBranch: 2, ToBranch: 3, Cutoff: 4, By: "b", Reopened: reopened, Cut: cut, Force: true},
		`{"executor":"e","reason":"r","message":1,"from_branch":2,"to_branch":3,"cutoff":4,"by":"b","reset":["a"],"anew":{"b":2},"lifted":5,`+ofCut+`,"force":true}`, store.FailuresReset, store.JumpRequested, store.JumpActivated, store.Edited)
	stays(t, history.Recovery{Executor: "e", Code: "c", Reason: "r", Message: 1, Reopened: reopened, Version: "v", Cut: cut, PreviousBranch: &n, NewBranch: &n, CutoffEvent: 6, Force: true},
		`{"executor":"e","code":"c","reason":"r","message":1,"reset":["a"],"anew":{"b":2},"lifted":5,"version":"v",`+ofCut+`,"previous_branch":3,"new_branch":3,"cutoff_event":6,"force":true}`, store.WorkflowRecovered)
	stays(t, history.Cancelling{Reason: "r", Message: 1}, `{"reason":"r","message":1}`, store.CancelReceived)

	stays(t, history.Begun{Input: "i", Kind: history.CallMap, Span: "s", Once: true, Probation: true, Preface: preface},
		`{"input":"i","kind":"map","span":"s","once":true,"probation":true,`+ofPreface, store.StepStarted)
	stays(t, history.StepEnd{Error: failed, NextAt: 1, Max: 2, Notes: map[string]json.RawMessage{"n": raw}, Input: "i", Reason: "r", Kind: history.CallGo, Items: 3, Again: true, Preface: preface},
		`{"error":{"message":"no"},"next_at":1,"max":2,"notes":{"n":1},"input":"i","reason":"r","kind":"branch","items":3,"again":true,`+ofPreface, store.AttemptFailed, store.StepFailed, store.StepCompleted)
	stays(t, history.Progress{Input: "i", Slot: "s", Preface: preface}, `{"input":"i","slot":"s",`+ofPreface, store.ProgressSaved)
	stays(t, history.ItemEnd{Error: failed, Input: "i", Items: 1, Attempts: 2, Again: true}, `{"error":{"message":"no"},"input":"i","items":1,"attempts":2,"again":true}`, store.ItemCompleted, store.ItemFailed)
	stays(t, history.Timer{Until: 1, Preface: preface}, `{"until":1,`+ofPreface, store.TimerSet, store.TimerFired)
	stays(t, history.WaitBegun{Kind: history.CallRequest, Name: "n", Prompt: "p", Until: 1, Beside: true, Sample: raw, Preface: preface},
		`{"kind":"wait for a request","name":"n","prompt":"p","until":1,"beside":true,"sample":1,`+ofPreface, store.WaitRequested)
	stays(t, history.WaitEnd{Error: failed, Kind: history.CallRequest, Message: 1, Request: "q", Preface: preface},
		`{"error":{"message":"no"},"kind":"wait for a request","message":1,"request":"q",`+ofPreface, store.SignalReceived, store.WaitTimedOut, store.WaitClosed)
	stays(t, history.ChildBegun{Child: "c", Chosen: true, Evaded: true, Abandon: true, Preface: preface}, `{"child":"c","chosen":true,"evaded":true,"abandon":true,`+ofPreface, store.ChildStarted)
	stays(t, history.ChildEnd{Error: failed, Reason: "r", Status: store.Failed, Name: "w", Message: 1, Recoverable: &yes, Preface: preface},
		`{"error":{"message":"no"},"reason":"r","status":"failed","name":"w","message":1,"recoverable":true,`+ofPreface, store.ChildFinished)
	stays(t, history.Won{Winner: 1, Preface: preface}, `{"winner":1,`+ofPreface, store.FirstWon)
	stays(t, history.Publication{Error: failed, Kind: history.CallReply, Name: "n", Reply: "q", Preface: preface},
		`{"error":{"message":"no"},"kind":"answer to a request","name":"n","reply":"q",`+ofPreface, store.Published)
	stays(t, history.AttributeSet{Error: failed, Attributes: map[string]string{"a": "1"}, Preface: preface}, `{"error":{"message":"no"},"attributes":{"a":"1"},`+ofPreface, store.AttributesSet)
}

// stays checks that d is stored as want, and read again as it was by each of these events and by
// no other; and that a value that says nothing is not stored.
func stays[T history.Said](t *testing.T, d T, want string, types ...store.Type) {
	t.Helper()
	require.Equal(t, want, string(history.Encode(&d)))
	require.Nil(t, history.Encode(new(T)))
	for _, typ := range append(store.Types(), "of_a_later_version") {
		again, err := history.Of[T](&store.Event{Type: typ, Data: []byte(want)})
		require.Equal(t, slices.Contains(types, typ), err == nil, "%T of %s", d, typ)
		if err == nil {
			require.Equal(t, d, again)
		}
	}
}

// Whoever takes events of any type is given what their type, and for workflow_started their
// generation, tells.
func TestEventsOfAnyTypeAreDecodedToWhatTheySay(t *testing.T) {
	said, err := history.Decode(&store.Event{Type: store.WorkflowStarted, Data: []byte(`{"executor":"e","version":"v"}`)})
	require.NoError(t, err)
	require.Equal(t, &history.Claim{Executor: "e", Version: "v"}, said)
	said, err = history.Decode(&store.Event{Type: store.WorkflowStarted, Data: []byte(`{"executor":"e","generation":1}`)})
	require.NoError(t, err)
	require.Equal(t, &history.Beginning{Executor: "e", Generation: 1}, said)
	said, err = history.Decode(&store.Event{Type: store.WorkflowCreated, Data: []byte(`{"declared":["a"],"fork":{"from":"r","edits":"redacted"}}`)})
	require.Error(t, err)
	require.Equal(t, []string{"a"}, said.(*history.Beginning).Declared, "what could be read")
	for _, typ := range store.Types() {
		said, err = history.Decode(&store.Event{Type: typ})
		require.NoError(t, err)
		require.Equal(t, typ == store.Compensated, said == nil, "%s", typ)
	}
	why, err := history.WhyOf(&store.Event{Type: "of_a_later_version", Data: []byte(`{"reason":"r","error":{"message":"no"}}`)})
	require.NoError(t, err)
	require.Equal(t, history.Why{Error: &history.Error{Message: "no"}, Reason: "r"}, why)
}

// Nobody reads from an event what events of its type do not say.
func TestAnEventSaysNoMoreThanItsRole(t *testing.T) {
	for _, typ := range append(store.Types(), "of_a_later_version") {
		_, err := history.Of[history.Claim](&store.Event{Type: typ, Data: []byte(`{"executor":"e1"}`)})
		require.Equal(t, typ.Claims(), err == nil, "%s", typ)
		_, err = history.Of[history.Marker](&store.Event{Type: typ})
		require.Equal(t, typ == store.Patched, err == nil, "%s", typ)
		_, err = history.Of[history.Won](&store.Event{Type: typ})
		require.Equal(t, typ == store.FirstWon, err == nil, "%s", typ)
	}
}
