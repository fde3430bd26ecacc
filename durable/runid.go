package durable

import (
	"crypto/rand"
	"strings"
	"time"
)

// generateID returns a readable run id: workflow, day, and a suffix that grows
// with the number of collisions, of letters and digits that are not mistaken
// for one another.
func generateID(workflow string, day time.Time, collisions int) string {
	const alphabet = "23456789abcdefghjkmnpqrstuvwxyz"
	suffix := make([]byte, 4+2*collisions)
	_, _ = rand.Read(suffix) // never fails, says its documentation
	for i, b := range suffix {
		suffix[i] = alphabet[int(b)%len(alphabet)]
	}
	return strings.Join([]string{workflow, day.Format(time.DateOnly), string(suffix)}, "-")
}
