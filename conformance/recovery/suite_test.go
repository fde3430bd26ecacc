package recovery_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/conformance/recovery"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func inMemory() recovery.Harness {
	return recovery.Harness{New: func(testing.TB) func() (store.Store, error) {
		data := memory.Open()
		return func() (store.Store, error) { return data.Handle(), nil }
	}}
}

func ExampleRun() {
	_ = func(t *testing.T) { recovery.Run(t, inMemory()) }
}

func TestMemory(t *testing.T) { recovery.Run(t, inMemory()) }

// In the time of a bubble, too.
func TestACaseRunsInABubble(t *testing.T) {
	for _, c := range recovery.Cases() {
		t.Run(c.Title(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.Check(t, inMemory()) })
		})
	}
}

// Each code of the catalogue has a case, those that are no inconsistency too.
func TestEveryCodeOfTheCatalogueHasACase(t *testing.T) {
	has := map[string]bool{}
	for _, c := range recovery.Cases() {
		has[c.Code] = true
		switch c.Code {
		case "A4", "B1", "B2", "C1", "C2", "D1", "E1", "F1", "F2":
			require.True(t, c.Consistent, "%s: nothing is written", c.Title())
		case "A1", "A2", "A3", "D2", "E2":
			require.False(t, c.Consistent, c.Title())
		}
	}
	for _, code := range []string{"A1", "A2", "A3", "A4", "B1", "B2", "C1", "C2", "D1", "D2", "E1", "E2", "F1", "F2"} {
		require.True(t, has[code], code)
	}
}
