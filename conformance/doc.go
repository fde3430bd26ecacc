// Package conformance proves that a store keeps the contract of package store.
//
// A backend's test calls Run with a Harness that says how to make empty data
// and open handles on it:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, conformance.Harness{
//			New: func(t testing.TB) conformance.Data {
//				path := filepath.Join(t.TempDir(), "app.db")
//				return conformance.Data{Open: func() (store.Store, error) { return mystore.Open(path) }}
//			},
//			Has: []conformance.Capability{conformance.Meter},
//		})
//	}
//
// S4 is a promise about processes that die: call Main in TestMain and set Data.Place,
// and the suite kills some. Package conformance/recovery continues with engines, and checks how
// they recover runs from a store in whatever state it was left.
//
// Each case is a subtest that names the clauses (S1, S2, ...) it checks, so that a
// failure says which promise is broken; docs/internals/store-clauses.md lists them. After every
// case an invariant checker reads everything that the case has left behind. Nothing is skipped
// silently: what cannot be checked, because a capability is not declared or the harness has no hook
// for it, is printed with the report.
package conformance
