package show

import "github.com/holdfast-dev/holdfast/internal/outline"

// ToneColour is the colour of a verdict.
func ToneColour(t outline.Tone) string {
	switch t {
	case outline.ToneDone:
		return Green
	case outline.ToneFail, outline.ToneStuck:
		return Red
	case outline.ToneResume, outline.ToneWait:
		return Yellow
	}
	return ""
}
