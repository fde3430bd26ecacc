package durable_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// unheardParent leaves a run "p" that waits for its child, which is not in the store, and the
// file of that child. Its executor is alive, or gone, and keeps the parent unloaded.
func unheardParent(t *testing.T, w *world, ended, alive bool) (child []byte) {
	parents := durable.Options{Workflows: []durable.Definition{writer}, UnloadAfter: time.Nanosecond}
	w.boot(t, parents)
	start(t, w, writer, "p", durable.AutoID)
	if !alive {
		w.eventually("p", store.Waiting)
		w.crash()
		w.expire()
	}
	w.boot(t, with(letter)) // another process
	w.eventually("p/letter", store.Waiting)
	w.eventually("p", store.Waiting)
	if ended { // in another store, so that no message tells of it
		other := newWorld(t)
		other.boot(t, with(writer, letter))
		start(t, other, writer, "p", durable.AutoID)
		other.eventually("p/letter", store.Waiting)
		require.NoError(t, durable.Signal(other.ctx(), "p/letter", "end", "yes"))
		other.eventually("p", store.Completed)
		child = other.exported("p/letter")
		w.crash()
		w.expire()
		deleteRun(t, w, "p/letter")
	} else {
		child = w.exported("p/letter") // and deleted
	}
	if alive {
		w.boot(t, with(letter))
	} else {
		w.boot(t, with(writer, letter))
	}
	pass(w.lease)
	require.Equal(t, store.Waiting, w.row("p").Status)
	return child
}

func deleteRun(t *testing.T, w *world, id string) {
	t.Helper()
	n, err := w.data.Delete(context.Background(), store.Deletion{RunIDs: []string{id}, Force: true})
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

// A run that waits for a child which is not in the store, and that nobody has loaded, is
// stuck as Verify says it, and the advice works.
func TestAParentThatWillNotHearOfItsChildIsStuckAsVerifySaysAndTheAdviceWorks(t *testing.T) {
	for _, ended := range []bool{false, true} {
		for _, alive := range []bool{false, true} {
			for _, how := range []string{"import", "jump"} {
				t.Run(strings.Join([]string{how, map[bool]string{true: "child has ended"}[ended], map[bool]string{true: "owner alive"}[alive]}, " "), func(t *testing.T) {
					inWorld(t, func(t *testing.T, w *world) {
						child := unheardParent(t, w, ended, alive)
						v, err := operate.On(w.eng).Verify(w.ctx(), "p")
						require.NoError(t, err)
						require.Len(t, v.Findings, 1)
						for _, limit := range []int{0, 10} {
							stuck, err := operate.On(w.eng).Stuck(w.ctx(), limit)
							require.NoError(t, err)
							require.Len(t, stuck, 1, "limit %d", limit)
							require.Equal(t, durable.CodeChildMissing, stuck[0].Code)
							require.Equal(t, v.Findings[0].Text, stuck[0].Reason+": "+stuck[0].Next)
							require.Contains(t, stuck[0].Next, "import or restore the child")
							require.Contains(t, stuck[0].Next, "Jump")
						}
						_, err = operate.On(w.eng).Resume(w.ctx(), "p", operate.ResumeOptions{})
						require.ErrorIs(t, err, durable.ErrNotResumable)
						require.ErrorContains(t, err, "import or restore the child")

						if how == "import" {
							_, err = operate.On(w.eng).Import(w.ctx(), bytes.NewReader(child), operate.ImportOptions{})
							require.NoError(t, err)
							if !ended {
								_, err = operate.On(w.eng).Resume(w.ctx(), "p/letter", operate.ResumeOptions{})
								require.NoError(t, err)
								require.NoError(t, durable.Signal(w.ctx(), "p/letter", "end", "yes"))
							}
						} else {
							_, err = operate.On(w.eng).Jump(w.ctx(), "p", 1, operate.JumpOptions{})
							require.NoError(t, err)
							synctest.Wait()
							require.NoError(t, durable.Signal(w.ctx(), "p/letter~b1", "end", "yes"))
						}
						out, err := wait(t, w, writer, "p")
						require.NoError(t, err)
						require.Equal(t, "it said yes", out)
						stuck, err := operate.On(w.eng).Stuck(w.ctx(), 0)
						require.NoError(t, err)
						require.Empty(t, stuck)
					})
				})
			}
		}
	}
}

// Whoever boots is told of them, too.
func TestARecoveryReportsAParentThatWillNotHearOfItsChild(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		unheardParent(t, w, false, false)
		w.crash()
		w.expire()
		rep := w.boot(t, with(writer, letter))
		require.Len(t, rep.Stuck, 1)
		require.Equal(t, durable.CodeChildMissing, rep.Stuck[0].Code)
		require.Equal(t, "p", rep.Stuck[0].RunID)
	})
}

// A child that has ended, and of which no message tells, is told by Resume.
func TestResumeTellsAWaitingParentOfAChildThatHasEnded(t *testing.T) {
	for _, alive := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			child := unheardParent(t, w, true, alive)
			failing := errors.New("not now")
			w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
				if len(batch[0].Send) > 0 && batch[0].RunID == "" {
					return all(batch, failing) // the process that imports is killed before it tells
				}
				return forward()
			})
			_, err := operate.On(w.eng).Import(w.ctx(), bytes.NewReader(child), operate.ImportOptions{})
			require.NoError(t, err)
			w.disk.tamper(nil)
			pass(w.lease)
			stuck, err := operate.On(w.eng).Stuck(w.ctx(), 0)
			require.NoError(t, err)
			require.Len(t, stuck, 1)
			require.Equal(t, durable.CodeStranded, stuck[0].Code)
			require.Contains(t, stuck[0].Next, "operate.On(engine).Resume")
			dry, err := operate.On(w.eng).Resume(w.ctx(), "p", operate.ResumeOptions{DryRun: true})
			require.NoError(t, err)
			require.Equal(t, store.Waiting, w.row("p").Status)
			plan, err := operate.On(w.eng).Resume(w.ctx(), "p", operate.ResumeOptions{})
			require.NoError(t, err)
			require.Equal(t, dry, plan)
			out, err := wait(t, w, writer, "p")
			require.NoError(t, err)
			require.Equal(t, "it said yes", out)
		})
	}
}

// A parent that has heard of a child which is gone since is not stuck: it takes the
// message when it is loaded.
func TestAParentThatHasHeardOfAChildThatIsGoneIsNotStuck(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.boot(t, with(writer, letter))
		start(t, w, writer, "p", durable.AutoID)
		w.eventually("p", store.Waiting)
		w.crash()
		w.expire()
		w.boot(t, with(letter))
		require.NoError(t, durable.Signal(w.ctx(), "p/letter", "end", "yes"))
		w.eventually("p/letter", store.Completed)
		deleteRun(t, w, "p/letter")
		v, err := operate.On(w.eng).Verify(w.ctx(), "p")
		require.NoError(t, err)
		require.Empty(t, v.Findings)
		w.reboot(t, with(writer, letter))
		out, err := wait(t, w, writer, "p")
		require.NoError(t, err)
		require.Equal(t, "it said yes", out)
	})
}

// The clocks of two processes are apart, as after an answer of the store that took long. By that of the
// process where the child ends, it ends before it was started.
func TestAParentIsNotStuckWhenItsChildEndsElsewhereByAnotherClock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.boot(t, with(writer))
		start(t, w, writer, "p", durable.AutoID)
		w.eventually("p", store.Waiting)
		w.crash()
		w.expire()
		behind := offClock{now: func(now store.Time) store.Time { return now.Add(-time.Hour) }}
		_, err := openOff(t, w, &behind, with(letter)).Recover(w.ctx())
		require.NoError(t, err)
		w.eventually("p/letter", store.Waiting)
		require.NoError(t, durable.Signal(w.ctx(), "p/letter", "end", "yes"))
		w.eventually("p/letter", store.Completed)
		v, err := operate.On(w.eng).Verify(w.ctx(), "p")
		require.NoError(t, err)
		require.Empty(t, v.Findings)
		stuck, err := operate.On(w.eng).Stuck(w.ctx(), 0)
		require.NoError(t, err)
		require.Len(t, stuck, 1)
		require.Equal(t, durable.CodeNotRegistered, stuck[0].Code, "here, and that is all")
		w.reboot(t, with(writer, letter))
		out, err := wait(t, w, writer, "p")
		require.NoError(t, err)
		require.Equal(t, "it said yes", out)
	})
}
