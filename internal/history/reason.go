package history

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

// The codes that an act on a run leaves in its row, and that its history must explain.
const (
	CodeApproval  = "approval"
	CodeEdited    = "edited"
	CodeImported  = "imported"
	CodeImporting = "importing"
	CodeJump      = "jump"
	CodeRecovered = "recovered"
	CodeRepaired  = "repaired"
)

// EditedReason returns the reason of a run that was edited and not taken up since.
func EditedReason(key string) string { return "the result of " + key + " was edited" }

// JumpReason returns the reason of a failed run for which a jump was requested.
func JumpReason(to int64) string {
	return fmt.Sprintf("a jump to event %d was requested and not carried out", to)
}

// ImportedReason returns the reason of a run that had this status when it was
// exported.
func ImportedReason(s store.Status) string {
	return fmt.Sprintf("imported; where it was exported it was %s. See that nobody continues it there, then resume it", s)
}

// RepairedReason returns the reason of a run that had ended with this status and was
// repaired.
func RepairedReason(s store.Status) string {
	return "it had " + endWord(s) + " and was repaired; Resume continues it"
}

// endWord returns the end of a run for a sentence, after "it had".
func endWord(s store.Status) string {
	if s == store.Failed {
		return "failed"
	}
	return "been cancelled"
}

// PausedReason returns the reason of a run that was being executed when it was paused.
func PausedReason(reason string) string {
	if reason == "" {
		return "paused"
	}
	return "paused: " + reason
}

// Error is an error as the history keeps it: its message, and those of
// the errors it wraps.
type Error struct {
	Message  string          `json:"message"`
	Sentinel string          `json:"sentinel,omitempty"`
	Type     string          `json:"type,omitempty"`
	Value    json.RawMessage `json:"value,omitempty"`
	Within   string          `json:"within,omitempty"` // registered types in the value
	// Go is the concrete type of an error that is not registered. With the
	// message it is what errors.Is goes by.
	Go        string   `json:"go,omitempty"`
	Permanent bool     `json:"permanent,omitempty"` // of the outermost only
	Causes    []*Error `json:"causes,omitempty"`
}
