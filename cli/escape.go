package cli

import shown "github.com/holdfast-dev/holdfast/internal/visible"

// escape makes text that others have written safe for a terminal and for a line.
func escape(s string) string { return shown.Line(s) }

// escapeJSON does that to a JSON text and keeps its value.
func escapeJSON(text []byte) []byte { return shown.JSON(text) }

// clean reports whether escape leaves a text as it is.
func clean(s string) bool { return shown.Line(s) == s }
