package guard

import (
	"regexp"
	"strings"
)

var frameCall = regexp.MustCompile(`\([^()]*\)$`)

// FrameName returns the function of the first line of a frame in a printed stack.
func FrameName(line string) string { return frameCall.ReplaceAllString(line, "") }

// FrameLine returns the file and line of the second line of a frame in a printed stack.
func FrameLine(line string) string {
	line, _, _ = strings.Cut(strings.TrimSpace(line), " +0x")
	return line
}

// PanickedAt returns the user's function in which a panic began, and its file and line: both are empty
// if the stack has none.
func PanickedAt(e *PanicError) (name, at string) {
	lines := strings.Split(e.Stack, "\n")
	for i := 0; i+1 < len(lines); i++ {
		name := FrameName(lines[i])
		if strings.HasPrefix(lines[i+1], "\t") && !OfGo(name) && name != "panic" && !OfLibrary(name) {
			return name, FrameLine(lines[i+1])
		}
	}
	return "", ""
}

// OfLibrary reports whether a function belongs to this library, except its tests.
func OfLibrary(name string) bool {
	rest, ours := strings.CutPrefix(name, "github.com/holdfast-dev/holdfast/")
	if !ours {
		return false
	}
	pkg, _, _ := strings.Cut(rest[strings.LastIndexByte(cutTypes(rest), '/')+1:], ".")
	return !strings.HasSuffix(pkg, "_test") && !strings.HasPrefix(rest, "examples/")
}

// cutTypes returns the name of a function without its type arguments.
func cutTypes(name string) string {
	name, _, _ = strings.Cut(name, "[")
	return name
}

// OfGo reports whether a function belongs to the standard library.
func OfGo(name string) bool {
	first, _, _ := strings.Cut(cutTypes(name), "/")
	first, _, _ = strings.Cut(first, ".")
	switch first {
	case "runtime", "internal", "time", "sync", "context", "testing", "net", "os", "io", "bufio", "reflect", "syscall", "iter", "slices", "maps", "sort", "database", "encoding", "crypto", "log", "fmt",
		"archive", "bytes", "cmp", "compress", "container", "errors", "hash", "html", "image", "math", "mime", "path", "regexp", "strconv", "strings", "text", "unicode", "unique":
		return true
	}
	return false
}
