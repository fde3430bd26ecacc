package browser_test

import (
	"testing"
)

// A browser takes some ids for directories, and one for a page.
func TestRunsWithIdsThatABrowserTakesForSomethingElseAreReachedAndAnswered(t *testing.T) {
	s, _, wf := opened(t)
	for _, id := range []string{".", "..", "~..", "history"} {
		s.start(wf, id, "waiting")
		b := s.visit("/")
		b.until(`!!document.querySelector('tr[data-key="` + id + `"] a.id')`)
		address, _ := b.eval(`document.querySelector('tr[data-key="` + id + `"] a.id').href`).(string)
		b.navigate(address)
		b.shows("Ship it to 12 Wrong Street?")
		b.until(`document.querySelector(".rid").innerText === "` + id + `"`)
		b.press("address")
		b.until(`document.querySelector("#i").innerText === "address"`)
		b.press("Approve")
		s.eventually(id, "completed")
		b.shows("Completed")
		b.notReloaded()
		b.noBreach()
	}
}
