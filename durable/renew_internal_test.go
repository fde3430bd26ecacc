package durable

import (
	"reflect"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// A field that renew forgets would reach the next step. Those that each call sets are not cleared, and
// neither is the end of an attempt, which is forgotten once it is recorded.
func TestAStepThatIsUsedAgainHasNothingOfTheLastOne(t *testing.T) {
	set := map[string]bool{"call.key": true, "call.name": true, "policy": true, "ended": true, "write": true, "code": true}
	var names []string
	var mark func(v reflect.Value, path string, only string)
	mark = func(v reflect.Value, path, only string) {
		for i := range v.NumField() {
			name := path + v.Type().Field(i).Name
			if name == "call" {
				mark(v.Field(i), name+".", only)
				continue
			}
			names = append(names, name)
			if only != name {
				continue
			}
			f := reflect.NewAt(v.Field(i).Type(), unsafe.Pointer(v.Field(i).UnsafeAddr())).Elem()
			switch f.Kind() {
			case reflect.Bool:
				f.SetBool(true)
			case reflect.Int32, reflect.Int64:
				f.SetInt(1)
			case reflect.Uint32:
				f.SetUint(1)
			case reflect.Pointer:
				f.Set(reflect.New(f.Type().Elem()))
			case reflect.Map:
				f.Set(reflect.MakeMap(f.Type()))
			case reflect.Slice:
				f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			case reflect.Struct:
				f.Addr().Interface().(*atomic.Pointer[map[string][]byte]).Store(&map[string][]byte{})
			case reflect.Interface:
				if name == "call.codeless" {
					f.Set(reflect.ValueOf(ErrClosed))
				} else {
					f.Set(reflect.ValueOf(1))
				}
			default:
				t.Fatalf("%s is a %s: say here how it is set", name, f.Kind())
			}
		}
	}
	mark(reflect.ValueOf(&step{}).Elem(), "", "")
	for _, name := range append([]string{}, names...) {
		if set[name] {
			continue
		}
		st := &step{code: &bodyOf[int]{}}
		code := st.code
		mark(reflect.ValueOf(st).Elem(), "", name)
		require.NotEqual(t, &step{code: code}, st, name)
		st.renew()
		require.Equal(t, &step{code: code}, st, name)
	}
}
