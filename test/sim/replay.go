package sim

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
)

// Code is a world as one word: what -world takes to play it again. The world of a seed depends
// on the worlds before it, because what was seen before steers what is made next. The code
// depends on nothing.
func (w World) Code() string {
	text, err := json.Marshal(w)
	if err != nil {
		panic("sim: " + err.Error()) // a world is plain data
	}
	var b bytes.Buffer
	z, _ := flate.NewWriter(&b, flate.BestCompression)
	_, _ = z.Write(text)
	_ = z.Close()
	return base64.RawURLEncoding.EncodeToString(b.Bytes())
}

// Decode returns the world of a code.
func Decode(code string) (w World, err error) {
	packed, err := base64.RawURLEncoding.DecodeString(code)
	if err != nil {
		return w, fmt.Errorf("sim: %q is not the code of a world: %w", code, err)
	}
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err == nil {
		err = json.Unmarshal(text, &w)
	}
	if err != nil {
		return w, fmt.Errorf("sim: %q is not the code of a world: %w", code, err)
	}
	return w, nil
}
