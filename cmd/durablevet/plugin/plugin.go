// Package plugin registers durablevet with the module plugin system of
// golangci-lint. A linter that is built with it, by `golangci-lint custom`, has
// the linter "durablevet"; it takes no settings. docs/durablevet.md has the files.
package plugin

import (
	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/holdfast-dev/holdfast/cmd/durablevet/vet"
)

// Name is that of the linter.
const Name = "durablevet"

func init() { register.Plugin(Name, New) }

// New returns the linter. It refuses settings, since there are none.
func New(settings any) (register.LinterPlugin, error) {
	if settings != nil {
		if _, err := register.DecodeSettings[struct{}](settings); err != nil {
			return nil, err
		}
	}
	return linter{}, nil
}

type linter struct{}

// BuildAnalyzers returns the one analyzer.
func (linter) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	return []*analysis.Analyzer{vet.Analyzer}, nil
}

// GetLoadMode says that the analyzer needs types.
func (linter) GetLoadMode() string { return register.LoadModeTypesInfo }
