package patroni

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/syspackage"
)

// packages are Debian's packages, by their programs.
var packages = map[string]string{"patroni": "patroni", "etcd": "etcd-server"}

const leftOut = "the failovers under Patroni and etcd are left out of make soak: "

// LeftOut returns what to say where there are no programs, and none can be installed, or "".
func LeftOut() (line string, err error) {
	if os.Getenv(pgtest.EnvSkip) == "skip" {
		return "", nil // with all tests on PostgreSQL
	}
	missing, why := missing(), refused()
	if missing == "" || why == "" {
		return "", nil
	}
	return fmt.Sprintf("%sthere is no %s in the PATH, and it is not installed because %s. Install the packages patroni and etcd-server to run them", leftOut, missing, why), nil
}

// refused returns why the packages cannot be installed here, or "". Their services, which Debian
// starts with them, are kept from that in the images of containers alone.
func refused() string {
	if why := syspackage.Refused(pgtest.EnvInstall); why != "" {
		return why
	}
	if _, err := os.Stat("/usr/sbin/policy-rc.d"); err != nil {
		return "their services would be started"
	}
	return ""
}

// missing names a program that is not in the PATH; empty: none.
func missing() string {
	for program := range packages {
		if _, err := exec.LookPath(program); err != nil {
			return program
		}
	}
	return ""
}

// install installs what is missing.
func install() error {
	var errs []error
	for program, name := range packages {
		there := func() bool { _, err := exec.LookPath(program); return err == nil }
		if !there() {
			errs = append(errs, syspackage.Install("patroni", name, pgtest.EnvInstall, there))
		}
	}
	return errors.Join(errs...)
}
