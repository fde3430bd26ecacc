// Package browsertest finds the browser that tests of the pages use, and installs it
// where that is possible. Elsewhere those tests are left out: a machine with Go, a C
// compiler and make runs all others. HOLDFAST_BROWSER=required makes that an error, and
// HOLDFAST_BROWSER=off always leaves them out.
package browsertest

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/holdfast-dev/holdfast/test/syspackage"
)

// The environment variables.
const (
	Env        = "HOLDFAST_BROWSER"         // "off", "required", or neither
	EnvInstall = "HOLDFAST_BROWSER_INSTALL" // "0" forbids to install the system package
)

// names are the names of the program.
var names = []string{"chromium", "chromium-browser", "google-chrome", "chrome"}

// Chromium returns the path of the browser, and what to say where there is none: a
// line, which is an error if the tests are required.
func Chromium() (path, leftOut string, err error) {
	if os.Getenv(Env) == "off" {
		return "", "the tests of the pages in a browser were left out: " + Env + "=off", nil
	}
	if path = find(); path != "" {
		return path, "", nil
	}
	why := syspackage.Refused(EnvInstall)
	if why == "" {
		switch err := syspackage.Install("browsertest", "chromium", EnvInstall, func() bool { return find() != "" }); {
		case err != nil:
			why = err.Error()
		case find() != "":
			return find(), "", nil
		default:
			why = "the package was installed but has no such program"
		}
	}
	leftOut = fmt.Sprintf("the tests of the pages in a browser were left out: there is no Chromium in the PATH, and it was not installed (%s). Install chromium to run them; %s=required makes this an error", why, Env)
	if os.Getenv(Env) == "required" {
		return "", "", fmt.Errorf("%s=required, and there is no Chromium in the PATH, and it was not installed (%s)", Env, why)
	}
	return "", leftOut, nil
}

func find() string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
