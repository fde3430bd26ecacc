package cli

import "github.com/holdfast-dev/holdfast/internal/termview"

// escape makes text that others have written safe for a terminal and for a line.
func escape(s string) string { return termview.Clean(s) }

// clean reports whether escape leaves a text as it is.
func clean(s string) bool { return termview.Clean(s) == s }
