package durable_test

import (
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// jumpedBack leaves a run "r" behind that went back twice, and waits on branch 2.
func jumpedBack(t *testing.T, w *world, p *rowProgram) {
	rowStates()["other branch"](t, w, p)
	w.boot(t, with(p.defs...))
	synctest.Wait()
	at, err := operate.On(w.eng).CheckpointOf(w.ctx(), "r", "a")
	require.NoError(t, err)
	require.NoError(t, second(operate.On(w.eng).Jump(w.ctx(), "r", at, operate.JumpOptions{})))
	synctest.Wait()
	w.crash()
	w.expire()
}

// What a branch is cut from, and where, decides what the history of a run is: its
// record is compared with the event that begins the branch.
func TestARecordOfABranchThatIsAnotherOneIsFoundAndNotBelieved(t *testing.T) {
	for i := range reflect.TypeFor[store.Branch]().NumField() {
		field := reflect.TypeFor[store.Branch]().Field(i).Name
		if field == "CreatedAt" {
			continue // for people: nothing is decided by it
		}
		inWorld(t, func(t *testing.T, w *world) {
			p := newRowProgram()
			jumpedBack(t, w, p)
			w.open(t, durable.Options{})
			require.Empty(t, verify(t, w, "r").Findings)
			ran := p.bodies.Load()
			w.rotting(t, rot{run: "r", branch: func(list []store.Branch) []store.Branch {
				list = slices.Clone(list)
				v := reflect.ValueOf(&list[1]).Elem().Field(i)
				if v.Kind() == reflect.String {
					v.SetString(v.String() + "x")
				} else {
					v.SetInt(v.Int() + 1)
				}
				return list
			}}, with(p.defs...))
			v := verify(t, w, "r")
			require.True(t, v.Corrupt(), "%s: %v", field, v.Findings)
			goOn(w)
			require.Equal(t, ran, p.bodies.Load(), "%s: a body was run: %s", field, w.log)
			require.Equal(t, durable.CodeDamaged, w.row("r").Code, "%s", field)
		})
	}
}

// The event before the first one of a branch is left behind, so that no sum of the
// history would tell that the first one was changed: it says itself what that sum was.
func TestTheFirstEventOfABranchThatIsAnotherOneIsFoundAndNotBelieved(t *testing.T) {
	for name, damage := range bitFlips() {
		inWorld(t, func(t *testing.T, w *world) {
			p := newRowProgram()
			jumpedBack(t, w, p)
			first := int64(0)
			for _, e := range w.whole("r") {
				if e.Type == store.JumpActivated {
					first = e.Seq
				}
			}
			ran := p.bodies.Load()
			w.rotting(t, rot{run: "r", event: at(first, damage)}, with(p.defs...))
			v := verify(t, w, "r")
			require.True(t, v.Corrupt(), "%s: %v", name, v.Findings)
			_, _ = w.eng.Recover(w.ctx())
			_ = durable.Signal(w.ctx(), "r", "go", "yes")
			pass(time.Hour)
			require.Equal(t, ran, p.bodies.Load(), "%s: a body was run: %s", name, w.log)
			require.NotEqual(t, store.Completed, w.row("r").Status, name)
		})
	}
}
