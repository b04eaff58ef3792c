package filter

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"scanode/etf"
)

// FuzzMatch claims that Match answers any object under any usable filter as the
// naive evaluator does, twice in a row, and leaves the object alone.
func FuzzMatch(f *testing.F) {
	for i, c := range readLines[recordedCase](f, "filter_cases.jsonl.gz") {
		if i%40 == 0 {
			f.Add(unbase64(f, c.Term), unbase64(f, c.Record))
		}
	}
	f.Fuzz(func(t *testing.T, filter, object []byte) {
		term, e := parseBytes(filter)
		if e == nil {
			return
		}
		before := slices.Clone(object)
		m := NewMatcher(e, DefaultExtractors())
		sameVerdict(t, m, term, object)
		sameVerdict(t, m, term, object)
		if !slices.Equal(before, object) {
			t.Fatal("Match changed the object")
		}
	})
}

// parseBytes parses an encoded filter, nil if it is none.
func parseBytes(b []byte) (etf.Term, *Expr) {
	b, err := etf.SkipVersion(b)
	if err != nil {
		return nil, nil
	}
	t, _, err := etf.Decode(b, etf.DefaultLimits)
	if err != nil {
		return nil, nil
	}
	e, err := Parse(t)
	if err != nil {
		return t, nil
	}
	return t, e
}

// FuzzParse claims: the path of an error leads to a term inside the filter; a
// filter that is accepted names each field once and only fields it contains,
// answers an empty row without error, and means the same when its operators are
// spelt as char lists and its operands are given types throughout.
func FuzzParse(f *testing.F) {
	seen := make(map[string]bool)
	for i, c := range readLines[recordedCase](f, "filter_cases.jsonl.gz") {
		if !seen[c.Term] && (c.Strict == "start_error" || i%40 == 0) {
			seen[c.Term] = true
			f.Add(unbase64(f, c.Term))
		}
	}
	empty := object(EncodingMsgpack, msgpackRow())
	f.Fuzz(func(t *testing.T, filter []byte) {
		b, err := etf.SkipVersion(filter)
		if err != nil {
			return
		}
		term, _, err := etf.Decode(b, etf.DefaultLimits)
		if err != nil {
			return
		}
		e, err := Parse(term)
		if err != nil {
			checkError(t, term, err)
			return
		}
		types := make(naiveTypes)
		types.collect(term, make(map[string]string))
		if fields := e.Fields(); len(fields) != len(types) {
			t.Fatalf("Fields: %q, the filter has %v", fields, types)
		}
		for _, name := range e.Fields() {
			if types[name] == nil {
				t.Fatalf("field %q is not in the filter", name)
			}
		}
		sameVerdict(t, NewMatcher(e, DefaultExtractors()), term, empty)
		spelt := respell(term, make(map[string]etf.Term))
		again, err := Parse(spelt)
		if err != nil {
			t.Fatalf("%v, but not %v: %v", term, spelt, err)
		}
		if !reflect.DeepEqual(e, again) {
			t.Fatalf("%v and %v differ", term, spelt)
		}
	})
}

// checkError checks that err is an *Error whose path leads somewhere in t.
func checkError(t *testing.T, term etf.Term, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Msg == "" {
		t.Fatalf("%#v is no *Error with a text", err)
	}
	if e.Path == "" {
		return
	}
	for _, s := range strings.Split(e.Path, ".") {
		i, err := strconv.Atoi(s)
		tuple, ok := term.(etf.Tuple)
		if err != nil || !ok || i < 1 || i > len(tuple) {
			t.Fatalf("path %q leads nowhere: %v", e.Path, e)
		}
		term = tuple[i-1]
	}
}

// respell writes operators as char lists and gives every field its type.
func respell(t etf.Term, types map[string]etf.Term) etf.Term {
	tuple, ok := t.(etf.Tuple)
	if !ok { // key, a list of constants
		return t
	}
	switch tuple[0] {
	case etf.Atom("field"):
		name := string(tuple[1].([]byte))
		if len(tuple) == 3 {
			types[name] = tuple[2]
		}
		return etf.Tuple{tuple[0], tuple[1], types[name]}
	case etf.Atom("const"):
		return etf.Tuple{tuple[0], tuple[1]}
	}
	var op etf.List
	for _, c := range []byte(naiveOp(tuple[0])) {
		op = append(op, int64(c))
	}
	spelt := etf.Tuple{op}
	for _, part := range tuple[1:] {
		spelt = append(spelt, respell(part, types))
	}
	return spelt
}
