package show

import shown "github.com/holdfast-dev/holdfast/internal/visible"

// Escape makes text that others have written safe for a terminal and for a line.
func Escape(s string) string { return shown.Line(s) }

// escapeJSON does that to a JSON text and keeps its value.
func escapeJSON(text []byte) []byte { return shown.JSON(text) }

// Clean reports whether Escape leaves a text as it is.
func Clean(s string) bool { return shown.Line(s) == s }
