// Package browser tests the pages of the dashboard in a real Chromium, as people
// see them: what moves without a reload, what a button does, what a screen reader
// and a phone get, and that no content of a run is ever executed.
//
// It needs chromium (or google-chrome) in the PATH, and installs it where that is
// possible; see test/browsertest for when the tests are left out.
package browser
