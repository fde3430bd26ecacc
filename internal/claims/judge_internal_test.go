package claims

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

func TestTheFateOfAnOrphanFollowsFromRowPolicyCodeAndStrikes(t *testing.T) {
	running, paused := &store.Run{Status: store.Running}, &store.Run{Status: store.Resuming, Paused: true}
	for _, c := range []struct {
		why     string
		row     *store.Run
		policy  Policy
		served  bool
		strikes int
		limit   int
		want    fate
	}{
		{"it is continued", running, Resume, true, 0, 3, fateResume},
		{"one strike is not yet a suspicion", running, Resume, true, 1, 3, fateResume},
		{"the last try is made alone", running, Resume, true, 2, 3, fateTry},
		{"with a limit of two, the first strike is the last before the limit, and no suspicion", running, Resume, true, 1, 2, fateResume},
		{"the limit is reached", running, Resume, true, 3, 3, fateQuarantine},
		{"with a limit of one the first strike is enough", running, Resume, true, 1, 1, fateQuarantine},
		{"its policy comes before its strikes", running, Fail, true, 3, 3, fateFail},
		{"it is left, whatever it did", running, Leave, true, 3, 3, fateLeave},
		{"without its code nothing is known of its policy", running, Fail, false, 3, 3, fateStuck},
		{"a pause is ended first", paused, Fail, true, 3, 3, fateUnpause},
		{"without its code a pause is for others to end", paused, Resume, false, 0, 3, fateStuck},
		{"a run that waits is claimed when it is due", &store.Run{Status: store.Waiting}, Fail, true, 3, 3, fateNone},
		{"so is a pending one", &store.Run{Status: store.Pending}, Resume, true, 0, 3, fateNone},
	} {
		require.Equal(t, c.want, fateOf(c.row, c.policy, c.served, c.strikes, c.limit), c.why)
	}
}

func TestPlacesThatAreSetAsideOrTakenAreNotGivenOutAgain(t *testing.T) {
	p := places{max: 3}
	require.Equal(t, 2, p.reserve(2))
	require.Equal(t, 1, p.reserve(2), "what is left")
	require.Equal(t, 0, p.reserve(1))
	p.occupy()
	p.giveBack(2) // one of the two was used
	require.Equal(t, 1, p.reserve(5))
	p.giveBack(2)
	p.occupy()
	p.occupy()
	p.occupy() // a child counts, and is not held back
	require.Equal(t, 0, p.reserve(1))
	require.False(t, p.vacate(), "none is free yet")
	require.True(t, p.vacate(), "the first that is free again")
	require.False(t, p.vacate(), "one was free before")
	require.Equal(t, 2, p.reserve(5))
}

func TestAQueueKeepsItsOrderAndWhatIsNotDropped(t *testing.T) {
	var q queue
	q.add([]string{"a", "b"})
	q.addMissing([]string{"b", "c"})
	require.Equal(t, []string{"a", "b"}, q.first(2))
	require.Equal(t, []string{"a", "b", "c"}, q.first(9), "what is read stays")
	q.drop(2)
	require.Equal(t, map[string]bool{"c": true}, q.all())
	q.drop(9)
	require.False(t, q.waits())
	require.Empty(t, q.first(1))
}
