package server

import (
	"math"
	"sort"
	"strings"

	"scanode/etf"
	"scanode/etf/etftext"
)

// options is a request's map of options. Each is taken by name; the first wrong
// one is remembered, and done reports it, or an option that nobody took.
type options struct {
	values map[string]etf.Term
	err    *reason
}

// newOptions reads an encoded map whose keys are atoms.
func newOptions(b []byte) *options {
	o := &options{values: map[string]etf.Term{}}
	t, rest, err := etf.Decode(b, etf.DefaultLimits)
	if err != nil {
		o.err = reasonf(tagBadRequest, "options: %v", err)
		return o
	}
	m, ok := t.(etf.Map)
	if !ok || len(rest) > 0 {
		o.err = reasonf(tagBadRequest, "options must be a map, got %s", etftext.Format(t))
		return o
	}
	for _, p := range m {
		name, ok := p.Key.(etf.Atom)
		if !ok {
			o.err = reasonf(tagBadOption, "an option's name must be an atom, got %s", etftext.Format(p.Key))
			return o
		}
		o.values[string(name)] = p.Value
	}
	return o
}

func (o *options) take(name string) (etf.Term, bool) {
	t, ok := o.values[name]
	delete(o.values, name)
	return t, ok
}

func (o *options) fail(name, want string, got etf.Term) {
	if o.err == nil {
		o.err = reasonf(tagBadOption, "%s must be %s, got %s", name, want, etftext.Format(got))
	}
}

func (o *options) bool(name string, def bool) bool {
	t, ok := o.take(name)
	if !ok {
		return def
	}
	switch t {
	case etf.Atom("true"):
		return true
	case etf.Atom("false"):
		return false
	}
	o.fail(name, "true or false", t)
	return def
}

func (o *options) int(name string, def, lo, hi int64, want string) int64 {
	t, ok := o.take(name)
	if !ok {
		return def
	}
	if n, ok := t.(int64); ok && n >= lo && n <= hi {
		return n
	}
	o.fail(name, want, t)
	return def
}

// bytes returns nil when the option is absent and never nil when it is there.
func (o *options) bytes(name string) []byte {
	t, ok := o.take(name)
	if !ok {
		return nil
	}
	if b, ok := t.([]byte); ok {
		return append([]byte{}, b...)
	}
	o.fail(name, "a binary", t)
	return nil
}

// atom returns one of the names in allowed.
func (o *options) atom(name, def string, allowed ...string) string {
	t, ok := o.take(name)
	if !ok {
		return def
	}
	if a, ok := t.(etf.Atom); ok {
		for _, name := range allowed {
			if string(a) == name {
				return name
			}
		}
	}
	o.fail(name, "one of "+strings.Join(allowed, ", "), t)
	return def
}

// millis returns a number of milliseconds; infinity is a negative one.
func (o *options) millis(name string, def int64) int64 {
	if o.values[name] == etf.Atom("infinity") {
		delete(o.values, name)
		return -1
	}
	return o.int(name, def, 0, math.MaxInt32, "milliseconds or infinity")
}

// engine takes all that is left as options of the engine.
func (o *options) engine() map[string]any {
	left := map[string]any{}
	for name, t := range o.values {
		switch v := t.(type) {
		case int64:
			left[name] = v
		case []byte:
			left[name] = string(v)
		case etf.Atom:
			switch v {
			case "true", "false":
				left[name] = v == "true"
			default:
				left[name] = string(v)
			}
		default:
			o.fail(name, "an integer, an atom or a binary", t)
		}
	}
	clear(o.values)
	return left
}

// done returns the first fault of the options.
func (o *options) done() error {
	if o.err == nil && len(o.values) > 0 {
		names := make([]string, 0, len(o.values))
		for name := range o.values {
			names = append(names, etftext.Format(etf.Atom(name)))
		}
		sort.Strings(names)
		o.err = reasonf(tagBadOption, "unknown: %s", strings.Join(names, ", "))
	}
	if o.err == nil {
		return nil
	}
	return o.err
}
