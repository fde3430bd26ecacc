package vet_test

import (
	"go/types"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis/analysistest"
	"golang.org/x/tools/go/packages"

	"github.com/holdfast-dev/holdfast/cmd/durablevet/vet"
)

// The root of the module: the packages below testdata are checked as a part of it, with
// the real package durable.
const module = "../../.."

func TestEachRuleFindsWhatItIsForAndNothingInGoodCode(t *testing.T) {
	var dirs []string
	for _, dir := range []string{"other", "bad", "good", "ignores"} {
		dirs = append(dirs, "./cmd/durablevet/vet/testdata/"+dir)
	}
	results := analysistest.Run(t, module, vet.Analyzer, dirs...)
	require.Len(t, results, len(dirs))
	found := map[string]bool{}
	for _, r := range results {
		for _, f := range r.Result.([]vet.Finding) {
			found[f.Rule] = true
		}
	}
	for _, rule := range vet.Rules() {
		require.True(t, found[rule], "package bad has nothing for %s", rule)
	}
}

// A function of package durable that takes a function, and that the analyzer does not
// know, would have its bodies taken for workflow code.
func TestTheAnalyzerKnowsTheAPI(t *testing.T) {
	pkgs, err := packages.Load(&packages.Config{Mode: packages.NeedTypes | packages.NeedName, Dir: module}, "./durable")
	require.NoError(t, err)
	exported := map[string]*types.Func{}
	scope := pkgs[0].Types.Scope()
	for _, name := range scope.Names() {
		switch obj := scope.Lookup(name).(type) {
		case *types.Func:
			exported[name] = obj
		case *types.TypeName:
			for sel := range types.NewMethodSet(types.NewPointer(obj.Type())).Methods() {
				exported[name+"."+sel.Obj().Name()] = sel.Obj().(*types.Func)
			}
		}
	}
	for _, name := range vet.Calls() {
		require.Contains(t, exported, name, "the analyzer knows a function that package durable does not have")
	}
	takesBody := func(fn *types.Func) bool {
		for p := range fn.Signature().Params().Variables() {
			sig, ok := p.Type().Underlying().(*types.Signature)
			if ok && sig.Params().Len() > 0 && sig.Params().At(0).Type().String() == "context.Context" {
				return true
			}
		}
		return false
	}
	for name, fn := range exported {
		if fn.Exported() && takesBody(fn) {
			require.Contains(t, vet.Calls(), name, "it takes a function with a context: say in api.go whether that is a body")
		}
	}
}
