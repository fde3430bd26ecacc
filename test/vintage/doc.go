// Package vintage holds the tests that open what earlier versions have written, and continue
// its runs: a store of each schema version, in the backends' testdata, and of each release
// what a process of it left behind when it was killed (stores, exports, an archive), in
// testdata/RELEASE. It has no code of its own.
//
//	vintage_test   stores of each schema version; the cellar of a backend
//	fill_test      what is in them
//	release_test   stores, exports and archives of each release
//	leave_test     the process that leaves them behind
//	market_test    its program
//	kept_test      no file that was kept is changed or taken away
//	steps_test     no released step of a schema is changed
package vintage
