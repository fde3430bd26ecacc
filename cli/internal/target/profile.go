package target

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"go.yaml.in/yaml/v3"
)

// profileFile is durable.yaml.
type profileFile struct {
	Profiles map[string]profile `yaml:"profiles"`
}

// A profile names a store or a server. A value may be ${NAME}, which is taken from the
// environment; see placeOf for what the file of a directory gets.
type profile struct {
	Store  string `yaml:"store"`
	Server string `yaml:"server"`
	Token  string `yaml:"token"` // for the server: Authorization: Bearer
}

// ownPrefix is the prefix of the variables that the file of a directory gets.
const ownPrefix = "DURABLE_"

// fileOfDirectory is the first of the files: the one in the current directory, which a
// stranger may have written.
const fileOfDirectory = "durable.yaml"

// profileFiles are where profiles are looked for, in this order.
func profileFiles() []string {
	files := []string{fileOfDirectory}
	if own := userFile(); own != "" {
		files = append(files, own)
	}
	return files
}

// userFile is the user's own file of profiles; empty if there is no place for one.
func userFile() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "durable", "durable.yaml")
}

// profilePlace returns the place that a profile names. If there is no profile of that
// name, that is an error, for the default one too: there is nothing else left to act
// on.
func profilePlace(name string, asked bool, getenv func(string) string) (Place, error) {
	var known []string
	for _, file := range profileFiles() {
		all, err := readProfiles(file)
		if err != nil {
			return Place{}, &show.Failure{Code: "profile", Exit: show.ExitUsage, Message: err.Error(), Next: "Mend " + show.Quote(file) + "."}
		}
		for n := range all {
			known = append(known, n)
		}
		p, ok := all[name]
		if !ok {
			continue
		}
		if (p.Store == "") == (p.Server == "") {
			return Place{}, &show.Failure{Code: "profile", Exit: show.ExitUsage, Message: fmt.Sprintf("Profile %s of %s must name either a store or a server.", name, file), Next: "Mend " + show.Quote(file) + "."}
		}
		return placeOf(p, name, file, asked, getenv)
	}
	if !asked {
		return Place{}, &show.Failure{Code: "usage", Exit: show.ExitUsage, Message: "No store or server is named.", Next: "Name one: --store DSN, --server URL, --profile NAME, DURABLE_STORE, or a default profile in durable.yaml."}
	}
	slices.Sort(known)
	have := "there is none"
	if known = slices.Compact(known); len(known) > 0 {
		have = "there are: " + strings.Join(known, ", ")
	}
	return Place{}, show.Usage("there is no profile %q in %s; %s", name, strings.Join(profileFiles(), " or "), have)
}

// placeOf returns the place of a profile, with the values of its variables.
//
// The file of a directory may be a stranger's, and it decides where the values are
// sent. So it gets only variables that are meant for durable, and a token only if the
// user has asked for the profile. Otherwise a command run in an unpacked archive could
// send any secret of the environment to any server.
func placeOf(p profile, name, file string, asked bool, getenv func(string) string) (Place, error) {
	at := Place{Store: p.Store, Server: p.Server, Token: p.Token, From: "profile " + name + " of " + file, secret: true}
	for _, v := range []struct {
		what  string
		value *string
	}{{"store", &at.Store}, {"server", &at.Server}, {"token", &at.Token}} {
		variable, ok := variableOf(*v.value)
		if !ok {
			continue
		}
		refused := func(why, next string) (Place, error) {
			return Place{}, &show.Failure{Code: "profile", Exit: show.ExitUsage, Next: next, Message: fmt.Sprintf(
				"Profile %s of %s takes its %s from the variable %s, %s.", name, file, v.what, variable, why)}
		}
		switch {
		case file != fileOfDirectory:
		case !strings.HasPrefix(variable, ownPrefix):
			next := "Name the variable " + ownPrefix + variable + ", and set that"
			if own := userFile(); own != "" {
				next += "; or put the profile into " + show.Quote(own)
			}
			return refused("and a file in the working directory gets only those whose names begin with "+ownPrefix, next+".")
		case v.what == "token" && !asked:
			return refused("which is not sent unless you ask for the profile", "If you trust the file, say so: --profile "+show.Quote(name)+".")
		}
		if *v.value = getenv(variable); *v.value == "" {
			return refused("which is not set", "Set "+variable+".")
		}
	}
	return at, nil
}

// variableOf returns the name in a value that is ${NAME} as a whole. Anything else is a
// literal value: a password may contain a dollar sign.
func variableOf(v string) (name string, ok bool) {
	if name, ok = strings.CutPrefix(v, "${"); !ok {
		return "", false
	}
	return strings.CutSuffix(name, "}")
}

func readProfiles(file string) (map[string]profile, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the profiles cannot be read: %w", err)
	}
	var f profileFile
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(&f); err != nil && len(bytes.TrimSpace(b)) > 0 {
		return nil, fmt.Errorf("%s is not a file of profiles: %w", file, err)
	}
	return f.Profiles, nil
}
