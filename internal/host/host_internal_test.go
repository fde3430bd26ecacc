package host

import "testing"

func TestWhatGoRunHasBuiltIsKnownByItsPlace(t *testing.T) {
	const hash = "079b15d7c01232f5b9aa7289aff556e343232950d590cc1991c10c855e167125"
	for path, want := range map[string]bool{
		"/tmp/go-build4146133446/b001/exe/shop":            true,
		"/root/.cache/go-build/07/" + hash + "-d/shop":     true,
		"/srv/cache/07/" + hash + "-d/shop":                true,
		"./shop":                                           false,
		"shop":                                             false,
		"/usr/local/bin/shop":                              false,
		"/tmp/go-build4146133446/b001/shop.test":           false,
		"/home/ada/go-build/shop":                          false,
		"/tmp/go-build1/b001/exe/shop/deeper":              false,
		"/root/.cache/go-build/07/" + hash + "-d/shop/sub": false,
	} {
		if got := goRun.MatchString(path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
