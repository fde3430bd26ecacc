package retry

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

func TestPausesGrowUpToTheirBoundLessTheJitter(t *testing.T) {
	p := &Policy{Initial: time.Second, Multiplier: 2, Max: 5 * time.Second, Jitter: -1}
	for n, want := range []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
		require.Equal(t, want, p.pause(n+1, 0.5), "attempt %d", n+1)
	}
	p.Jitter = 0.2
	require.Equal(t, time.Second, p.pause(1, 0))
	require.Equal(t, 900*time.Millisecond, p.pause(1, 0.5))
	require.Equal(t, 5*time.Second, (&Policy{Initial: time.Hour, Multiplier: 1e300, Max: 5 * time.Second}).pause(1000, 0), "beyond any float")
}

func TestAPolicyGetsItsDefaultsAndIsNotChanged(t *testing.T) {
	given := &Policy{Max: time.Second}
	p, err := given.WithDefaults()
	require.NoError(t, err)
	require.Equal(t, Policy{Max: time.Second}, *given)
	require.Equal(t, Policy{MaxAttempts: 5, Initial: 200 * time.Millisecond, Max: time.Second, Multiplier: 2, Jitter: 0.2}, *p)

	p, err = Once.WithDefaults()
	require.NoError(t, err)
	require.Same(t, &Once, p)
	complete, err := (&Policy{MaxAttempts: 1}).WithDefaults()
	require.NoError(t, err)
	require.Equal(t, *complete, Once)

	for _, bad := range []Policy{{Initial: -1}, {Max: -1}, {Timeout: -1}, {Deadline: -1}, {Multiplier: 0.5}, {Jitter: 1.5}} {
		_, err := bad.WithDefaults()
		require.ErrorIs(t, err, store.ErrInvalid, "%+v", bad)
	}
}

var (
	errPlain     = errors.New("plain")
	errPermanent = errors.New("permanent")
	errMisuse    = errors.New("misuse")
	errLater     = errors.New("later")
)

func TestWhatFollowsAFailedAttempt(t *testing.T) {
	marks := &Marks{
		Permanent: func(err error) bool { return err == errPermanent },
		Misuse:    func(err error) bool { return err == errMisuse },
		After:     func(err error) (time.Duration, bool) { return time.Hour, err == errLater },
	}
	start := store.Time(0)
	steady := Policy{MaxAttempts: 3, Initial: time.Second, Max: time.Minute, Multiplier: 1, Jitter: -1}
	with := func(change func(p *Policy)) Policy {
		p := steady
		change(&p)
		return p
	}
	for name, c := range map[string]struct {
		policy Policy
		n      int
		err    error
		want   Verdict
	}{
		"another attempt":                    {steady, 1, errPlain, Verdict{Pause: time.Second}},
		"the last attempt":                   {steady, 3, errPlain, Verdict{Final: true}},
		"no limit":                           {with(func(p *Policy) { p.MaxAttempts = -1 }), 1000, errPlain, Verdict{Pause: time.Second}},
		"permanent":                          {steady, 1, errPermanent, Verdict{Final: true}},
		"permanent, whatever RetryIf says":   {with(func(p *Policy) { p.RetryIf = func(error) bool { return true } }), 1, errPermanent, Verdict{Final: true}},
		"the code is wrong":                  {steady, 1, errMisuse, Verdict{Final: true, Reason: "the code is to be mended: no further attempt can help"}},
		"RetryIf says no":                    {with(func(p *Policy) { p.RetryIf = func(error) bool { return false } }), 1, errPlain, Verdict{Final: true}},
		"the error asks for a time":          {steady, 1, errLater, Verdict{Pause: time.Hour}},
		"the error asks, no attempt is left": {steady, 3, errLater, Verdict{Final: true}},
		"in time":                            {with(func(p *Policy) { p.Deadline = 12 * time.Second }), 1, errPlain, Verdict{Pause: time.Second}},
		"too late": {with(func(p *Policy) { p.Deadline = 11 * time.Second }), 1, errPlain,
			Verdict{Final: true, Reason: "no time for another attempt within the deadline of 11s"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, c.policy.Judge(c.n, c.err, marks, start, start.Add(10*time.Second), 0.5))
		})
	}

	p := with(func(p *Policy) { p.RetryIf = func(error) bool { panic("no answer") } })
	v := p.Judge(1, errPlain, marks, start, start, 0)
	require.True(t, v.Final)
	require.ErrorContains(t, v.Fault, "no answer")
}
