package guard

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON returns an error if a decoder would replace a part of a JSON text instead of refusing it:
// bytes that are not UTF-8, and \ud83d without the half that follows it. Two ids, or two inputs,
// would become one. The error continues a sentence about the text.
func JSON(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("is not valid UTF-8")
	}
	for i := 0; i+1 < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		r := escaped(data[i:])
		i++ // what follows a backslash begins nothing
		if !utf16.IsSurrogate(r) {
			continue
		}
		if i+5 > len(data) || utf16.DecodeRune(r, escaped(data[i+5:])) == utf8.RuneError {
			return fmt.Errorf("has \\u%04x, which is half of a character", r)
		}
		i += 10
	}
	return nil
}

// escaped returns the code unit that a text begins with, written as \ud83d; -1 if it begins otherwise.
func escaped(data []byte) rune {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}
