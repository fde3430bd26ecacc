package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// profileFile is durable.yaml.
type profileFile struct {
	Profiles map[string]profile `yaml:"profiles"`
}

// A profile names a store or a server. A value may be ${NAME}, which is taken
// from the environment.
type profile struct {
	Store  string `yaml:"store"`
	Server string `yaml:"server"`
	Token  string `yaml:"token"` // for the server: Authorization: Bearer
}

// profileFiles are where profiles are looked for, in this order.
func (c *call) profileFiles() []string {
	files := []string{"durable.yaml"}
	if dir, err := os.UserConfigDir(); err == nil {
		files = append(files, filepath.Join(dir, "durable", "durable.yaml"))
	}
	return files
}

// profile returns the place that a profile names. Without one of that name, a
// profile that was asked for is an error, and so is the default one: there is
// nothing else left to act on.
func (c *call) profile(name string, asked bool) (place, error) {
	var known []string
	for _, file := range c.profileFiles() {
		all, err := readProfiles(file)
		if err != nil {
			return place{}, &failure{code: "profile", exit: ExitUsage, message: err.Error(), next: "Mend " + quote(file) + "."}
		}
		for n := range all {
			known = append(known, n)
		}
		p, ok := all[name]
		if !ok {
			continue
		}
		if (p.Store == "") == (p.Server == "") {
			return place{}, &failure{code: "profile", exit: ExitUsage, message: fmt.Sprintf("Profile %s of %s names not exactly one of store and server.", name, file), next: "Mend " + quote(file) + "."}
		}
		return place{store: c.expand(p.Store), server: c.expand(p.Server), token: c.expand(p.Token), from: "profile " + name + " of " + file, secret: true}, nil
	}
	if !asked {
		return place{}, &failure{code: "usage", exit: ExitUsage, message: "No store and no server is named.", next: "Name one: --store DSN, --server URL, --profile NAME, DURABLE_STORE, or a default profile in durable.yaml."}
	}
	slices.Sort(known)
	have := "there is none"
	if known = slices.Compact(known); len(known) > 0 {
		have = "there are: " + strings.Join(known, ", ")
	}
	return place{}, usage("there is no profile %q in %s; %s", name, strings.Join(c.profileFiles(), " or "), have)
}

// expand replaces a value that is ${NAME} as a whole. Anything else stays as it
// is: a password may hold a dollar sign.
func (c *call) expand(v string) string {
	if strings.HasPrefix(v, "${") && strings.HasSuffix(v, "}") {
		return c.getenv(v[2 : len(v)-1])
	}
	return v
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
		return nil, fmt.Errorf("%s is no file of profiles: %w", file, err)
	}
	return f.Profiles, nil
}
