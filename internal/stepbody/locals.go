package stepbody

// Locals keeps values for the packages around durable, by key. The mutex of its owner guards it.
type Locals map[any]any

// At returns the value under key; the first call makes it.
func (l *Locals) At(key any, make func() any) any {
	if v, ok := (*l)[key]; ok {
		return v
	}
	if *l == nil {
		*l = Locals{}
	}
	v := make()
	(*l)[key] = v
	return v
}
