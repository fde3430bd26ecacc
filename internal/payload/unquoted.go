package payload

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/guard"
)

// An UnquotedError replaces an error about a value that is stored encrypted. An error of
// a codec, or of a method that a codec calls, may quote the value (a time.ParseError
// does), and the text of an error goes into the history, the log and answers. So the
// text of an UnquotedError names only types and fields. It wraps the original error for
// errors.As, in the memory of this process.
type UnquotedError struct {
	text string
	err  error
}

// unquoted returns an error without any quotation of a value; nil for nil.
func unquoted(err error) error {
	if err == nil {
		return nil
	}
	return &UnquotedError{text: withoutValue(err), err: err}
}

func (e *UnquotedError) Error() string { return e.text }
func (e *UnquotedError) Unwrap() error { return e.err }

// withoutValue returns the part of an error's text that cannot contain a value.
func withoutValue(err error) string {
	switch e := err.(type) {
	case *json.UnmarshalTypeError:
		kind, _, _ := strings.Cut(e.Value, " ") // "number 300"
		if !slices.Contains([]string{"object", "array", "string", "number", "bool", "null"}, kind) {
			kind = "value"
		}
		of := *e
		of.Value = kind
		return of.Error()
	case *json.SyntaxError:
		return fmt.Sprintf("it is no valid JSON from byte %d on", e.Offset)
	case *json.MarshalerError:
		return fmt.Sprintf("json: the method of %s that encodes it fails: %s", e.Type, withoutValue(e.Err))
	case *json.UnsupportedTypeError, *json.UnsupportedValueError, *json.InvalidUnmarshalError: // NaN, a cycle
		return err.Error()
	case *guard.PanicError:
		return "the code that was given the value has panicked; what it said is not told, since it may quote the value"
	case *UnquotedError:
		return e.text
	}
	if err == guard.ErrGoexit || err == io.EOF || err == io.ErrUnexpectedEOF { //nolint:errorlint // the values, not what wraps them
		return err.Error()
	}
	return fmt.Sprintf("the code that was given the value returned a %T; what it said is not told, since it may quote the value", err)
}

// Unquoted returns err without any quotation of a value, if values are encrypted.
func (s *Sealer) Unquoted(err error) error {
	if !s.reader.secret {
		return err
	}
	return unquoted(err)
}

// unquoted is Sealer.Unquoted for values that are upgraded.
func (ts *Types) unquoted(err error) error {
	if !ts.secret {
		return err
	}
	return unquoted(err)
}

// unknownField begins the error of encoding/json for a field that the type lacks.
const unknownField = "json: unknown field "
