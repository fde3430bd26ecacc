package archive

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// How a run id becomes the name of a ref or a file.
//
// Letters, digits, '_', '-' and dots between letters or digits stay; every other
// byte becomes %XX. So do a leading dash and the dot of a final ".lock". Names
// longer than maxPart bytes are cut into parts of that length, joined with "+/",
// and their dots and dashes become %XX, too:
//
//	order-42        order-42
//	order-42/ship   order-42%2Fship
//	../../HEAD      %2E%2E%2F%2E%2E%2FHEAD
//	a.lock          a%2Elock
//	名              %E5%90%8D
//
// A name therefore never has a part that begins with a dot or a dash. Because '+'
// has no other use, the folder of one run is never the file of another. Each id
// has one name and each name one id.

// maxPart bounds a part of a name, so that it fits a file name with a suffix.
const maxPart = 180

const more = "+/"

// nameOf returns the name of a run's entry.
func nameOf(runID string) (string, error) {
	if err := store.CheckRunID(runID); err != nil {
		return "", err
	}
	name := escape(runID, true)
	if len(name) <= maxPart {
		return name, nil
	}
	name = escape(runID, false)
	var b strings.Builder
	for len(name) > maxPart {
		b.WriteString(name[:maxPart])
		b.WriteString(more)
		name = name[maxPart:]
	}
	b.WriteString(name)
	return b.String(), nil
}

// escape returns id with the bytes that a name must not contain replaced; marks
// says whether dots and dashes may stay.
func escape(id string, marks bool) string {
	var b strings.Builder
	for i := range len(id) {
		c := id[i]
		keep := isAlnum(c) || c == '_' ||
			c == '-' && marks && i > 0 ||
			c == '.' && marks && i > 0 && i+1 < len(id) && isAlnum(id[i-1]) && isAlnum(id[i+1]) && !strings.EqualFold(id[i:], ".lock")
		if keep {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

var errName = errors.New("the name is not one that this program gives to a run")

// idOf is the inverse of nameOf. It accepts only names that nameOf makes.
func idOf(name string) (string, error) {
	joined := strings.ReplaceAll(name, more, "")
	var b strings.Builder
	for i := 0; i < len(joined); i++ {
		if joined[i] != '%' {
			b.WriteByte(joined[i])
			continue
		}
		if i+2 >= len(joined) {
			return "", errName
		}
		hi, lo := hexDigit(joined[i+1]), hexDigit(joined[i+2])
		if hi < 0 || lo < 0 {
			return "", errName
		}
		b.WriteByte(byte(hi<<4 | lo))
		i += 2
	}
	id := b.String()
	if back, err := nameOf(id); err != nil || back != name {
		return "", errName
	}
	return id, nil
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
