package show

import shown "github.com/holdfast-dev/holdfast/internal/visible"

// Escape makes untrusted text safe for one line of a terminal.
func Escape(s string) string { return shown.Line(s) }

// escapeJSON does that for a JSON text and keeps its value.
func escapeJSON(text []byte) []byte { return shown.JSON(text) }

// Clean reports whether Escape leaves a text as it is.
func Clean(s string) bool { return shown.Line(s) == s }
