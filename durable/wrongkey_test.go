package durable_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Another key under a known id damages nothing: whoever looks says that it is the key,
// nobody repairs the run away, and with the right key it goes on where it was.
func TestAWrongKeyUnderAKnownIDIsToldFromDamage(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		wf := threeSteps(&h)
		w.boot(t, encrypted(keysOf("k1"), wf))
		start(t, w, wf, "r", "in")
		synctest.Wait()
		wrong := durable.StaticKeys("k1", map[string][]byte{"k1": key("zz")})

		w.reboot(t, encrypted(wrong, wf))
		row := w.eventually("r", store.Interrupted)
		require.Equal(t, durable.CodeUndecodable, row.Code)
		require.Contains(t, row.Reason, `another key under the id "k1"`)
		_, err := wait(t, w, wf, "r")
		require.ErrorIs(t, err, durable.ErrWrongKey)
		require.NotErrorIs(t, err, durable.ErrDecrypt)
		requireWrongKey(t, w, "r")
		require.ErrorIs(t, resume(w.eng, w.ctx(), "r"), durable.ErrWrongKey)

		w.reboot(t, encrypted(keysOf("k1"), wf))
		goesOn(t, w, "r")
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, threeDone, out)
	})
}

// requireWrongKey: Verify and Repair say that a run cannot be opened, and change nothing.
func requireWrongKey(t *testing.T, w *world, id string) {
	t.Helper()
	story := w.story(id)
	v, err := operate.On(w.eng).Verify(w.ctx(), id)
	require.NoError(t, err)
	require.False(t, v.Corrupt(), "%+v", v.Findings)
	require.True(t, v.Incompatible())
	require.Contains(t, v.Findings[0].Text, "it cannot be opened")
	for _, force := range []bool{false, true} {
		_, err = operate.On(w.eng).Repair(w.ctx(), id, operate.RepairOptions{Force: force})
		require.ErrorIs(t, err, operate.ErrUnrepairable)
		require.ErrorContains(t, err, "it is not damaged")
	}
	require.Equal(t, story, w.story(id))
}

// What earlier programs wrote has no check of its key, and is not called damaged either.
func TestAWrongKeyForWhatEarlierVersionsWroteIsToldFromDamage(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		readGoldenHistory(t, w, "history-sealed.jsonl")
		x := newEverywhere(&hold{open: true}, v4Of)
		ids := map[string]bool{}
		right := goldenKeys()
		w.boot(t, encrypted(right))
		for _, ev := range w.events("r") {
			if p, err := operate.On(w.eng).Payload("r", ev); err == nil && p.KeyID != "" {
				ids[p.KeyID] = true
			}
		}
		wrong := map[string][]byte{}
		for id := range ids {
			wrong[id] = key("zz")
		}
		w.crash()
		w.expire()
		o := typed(4)
		o.Encrypt = durable.StaticKeys(right.Current(), wrong)
		w.boot(t, o)
		for _, ev := range w.events("r") {
			if len(ev.Payload) > 0 {
				_, err := operate.On(w.eng).Payload("r", ev)
				require.ErrorIs(t, err, durable.ErrWrongKey)
				require.NotErrorIs(t, err, durable.ErrDecrypt)
			}
		}
		w.crash()
		w.expire()
		o = typed(4, x.defs()...)
		o.Encrypt = right
		w.boot(t, o)
		x.values(t, w)
	})
}

// The key is the right one, so a payload that was moved is still found to be damaged.
func TestAMovedPayloadIsDamageAndNotAWrongKey(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := threeSteps(&hold{open: true})
		w.boot(t, encrypted(keysOf("k1"), wf))
		_, err := run(t, w, wf, "r", "in")
		require.NoError(t, err)
		moved := 0
		for _, ev := range w.events("r") {
			if len(ev.Payload) > 0 {
				ev.Attempt += 7
				_, err := operate.On(w.eng).Payload("r", ev)
				require.ErrorIs(t, err, durable.ErrDecrypt)
				require.False(t, errors.Is(err, durable.ErrWrongKey))
				moved++
			}
		}
		require.NotZero(t, moved)
	})
}
