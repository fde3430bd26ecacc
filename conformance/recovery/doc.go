// Package recovery proves that runs are recovered from a store in whatever state a
// crash, or a store that cannot write a row and its events in one change, has left
// them: the catalogue of docs/recovery.md, code by code, with real engines on the
// store under test.
//
// Package conformance proves the store on its own and comes first. A backend's test
// then calls Run:
//
//	func TestRecovery(t *testing.T) {
//		recovery.Run(t, recovery.Harness{
//			New: func(t testing.TB) func() (store.Store, error) {
//				path := filepath.Join(t.TempDir(), "app.db")
//				return func() (store.Store, error) { return mystore.Open(path) }
//			},
//		})
//	}
//
// A case writes through the store's own interface: it writes the recorded history of a
// run again up to some event, under a row that the case chooses and an owner that is
// gone. An operator's engine, which has none of the workflow code, recovers the run,
// and a program that has the code carries it to its end. If the state is not an
// inconsistency, the case also checks that nothing is written.
package recovery
