package history_test

import (
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
