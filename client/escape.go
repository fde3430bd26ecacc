package client

import (
	"net/url"
	"strings"
)

// EscapeID returns a run's id as one segment of a path of the API or of a page. It is
// percent-encoded. The few ids that would not survive that get a "~" in front: "." and
// "..", which browsers and proxies take for directories however they are encoded, and
// "history", which is a page of its own; and so do ids that would then be mistaken for
// one of those, such as "~.".
func EscapeID(id string) string {
	if special(id) {
		return "~" + id
	}
	return url.PathEscape(id)
}

// UnescapeID is the inverse of EscapeID for a segment that is already percent-decoded.
// It takes a plain ".", which was "%2E" in the address, as it is.
func UnescapeID(segment string) string {
	if rest, ok := strings.CutPrefix(segment, "~"); ok && special(rest) {
		return rest
	}
	return segment
}

// special reports whether an id needs a "~", or looks like one that has it.
func special(id string) bool {
	switch strings.TrimLeft(id, "~") {
	case ".", "..", "history":
		return true
	}
	return false
}
