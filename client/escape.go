package client

import (
	"net/url"
	"strings"
)

// EscapeID returns a run's id as one segment of a path of the API or of a page. It
// is percent-encoded, and the few ids that would not arrive like that get a "~" in
// front: "." and "..", which browsers and proxies take for directories however
// they are encoded, and "history", which is a page of its own. So do ids that
// would be taken for one of those, such as "~.".
func EscapeID(id string) string {
	if special(id) {
		return "~" + id
	}
	return url.PathEscape(id)
}

// UnescapeID is the other direction, for a segment that is percent-decoded. A
// plain ".", "%2E" on its way, is taken as it is.
func UnescapeID(segment string) string {
	if rest, ok := strings.CutPrefix(segment, "~"); ok && special(rest) {
		return rest
	}
	return segment
}

// special reports whether an id is one that gets a "~", or looks like one.
func special(id string) bool {
	switch strings.TrimLeft(id, "~") {
	case ".", "..", "history":
		return true
	}
	return false
}
