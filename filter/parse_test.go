package filter

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"scanode/etf"
)

// charList spells s as Erlang does in double quotes.
func charList(s string) etf.List {
	var l etf.List
	for _, c := range s {
		l = append(l, int64(c))
	}
	return l
}

func TestParseErrors(t *testing.T) {
	n := typed("n", "sint64")
	five := value1(int64(5))
	ok := expr("=", n, five)
	for _, c := range []struct {
		name   string
		filter etf.Term
		path   string
		op     string
		msg    string // a part of it
	}{
		{"no tuple", etf.List{}, "", "", "not an expression"},
		{"no operands", etf.Tuple{etf.Atom("=")}, "", "", "1 elements"},
		{"three operands", etf.Tuple{etf.Atom("and_"), ok, ok, ok}, "", "", "4 elements"},
		{"operator a binary", etf.Tuple{[]byte("="), n, five}, "1", "", "atom or a char list"},
		{"operator an empty list", etf.Tuple{etf.List{}, n, five}, "1", "", "atom or a char list"},
		{"operator unknown", expr("=:=", n, five), "1", "", "unknown operator"},
		{"operator a long list", etf.Tuple{charList(strings.Repeat("=", 256)), n, five}, "1", "", "atom or a char list"},
		{"inner", expr("and_", ok, expr("or_", int64(1), ok)), "3.2", "", "not an expression"},
		{"operand", expr("and_", ok, expr("=", n, int64(5))), "3.3", "=", "an operand is"},
		{"operand tag", expr("=", etf.Tuple{etf.Atom("konst"), int64(5)}, n), "2", "=", "an operand is"},
		{"field alone", expr("=", etf.Tuple{etf.Atom("field")}, five), "2", "=", "a field is"},
		{"field name", expr("=", etf.Tuple{etf.Atom("field"), etf.Atom("n"), etf.Atom("sint64")}, five), "2", "=", "binary"},
		{"field type no atom", expr("=", etf.Tuple{etf.Atom("field"), []byte("n"), []byte("sint64")}, five), "2", "=", "atom"},
		{"field type unknown", expr("=", typed("n", "blob"), five), "2", "=", "unknown type"},
		{"field without type", expr("=", etf.Tuple{etf.Atom("field"), []byte("n")}, n), "2", "=", "no type"},
		{"constant of no value", expr("=", n, etf.Tuple{etf.Atom("const")}), "3", "=", "a constant is"},
		{"constant of wrong type", expr("<=", n, value1([]byte("5"))), "3", "<=", "no sint64"},
		{"constant left", expr("<", value1(1.5), n), "2", "<", "no sint64"},
		{"[] for a number", expr("!=", n, value1(etf.List{})), "3", "!=", "declare the field as varchar"},
		{"char list for text", expr("=", typed("v", "varchar"), value1(charList("abc"))), "3", "=", "written as a binary"},
		{"order of text", expr("<", typed("v", "varchar"), value1([]byte("a"))), "1", "<", "only be tested"},
		{"order of booleans, mirrored", expr("=<", value1(etf.Atom("true")), typed("b", "boolean")), "1", "=<", "only be tested"},
		{"types differ", expr("=", n, typed("d", "double")), "", "=", "cannot compare sint64 with double"},
		{"text constants", expr("=", value1([]byte("a")), five), "2", "=", "doubles"},
	} {
		_, err := Parse(c.filter)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if e.Path != c.path || e.Op != c.op || !strings.Contains(e.Msg, c.msg) {
			t.Errorf("%s: path %q, operator %q, %q, want %q, %q, %q", c.name, e.Path, e.Op, e.Msg, c.path, c.op, c.msg)
		}
	}
}

func TestParseBounds(t *testing.T) {
	leaf := expr("=", typed("n", "sint64"), value1(int64(5)))
	deep := func(n int) etf.Term {
		t := leaf
		for range n - 1 {
			t = expr("or_", leaf, t)
		}
		return t
	}
	if e, err := Parse(deep(maxDepth)); err != nil {
		t.Errorf("depth %d: %v", maxDepth, err)
	} else if ok, err := NewMatcher(e, DefaultExtractors()).Match(nil, object(EncodingETF, etfRow(field{"n", int64(5)}))); !ok || err != nil {
		t.Errorf("depth %d: %t, %v", maxDepth, ok, err)
	}
	if _, err := Parse(deep(maxDepth + 1)); err == nil || !strings.Contains(err.Error(), "deeper") {
		t.Errorf("depth %d: %v", maxDepth+1, err)
	}
	wide := leaf
	for n := 1; n < maxComparisons; n *= 2 {
		wide = expr("and_", wide, wide)
	}
	if _, err := Parse(wide); err != nil {
		t.Errorf("%d comparisons: %v", maxComparisons, err)
	}
	if _, err := Parse(expr("and_", wide, leaf)); err == nil || !strings.Contains(err.Error(), "comparisons") {
		t.Errorf("%d comparisons: %v", maxComparisons+1, err)
	}
}

// TestErrorIsShort shows that an error does not repeat a large request.
func TestErrorIsShort(t *testing.T) {
	_, err := Parse(expr("=", typed("n", "sint64"), value1(make([]byte, 1<<20))))
	if err == nil || len(err.Error()) > 2*maxShownBytes+200 {
		t.Errorf("%d bytes of error", len(err.Error()))
	}
}

func TestFields(t *testing.T) {
	e, err := Parse(expr("and_",
		expr("=", typed("b", "sint64"), typed("a", "sint64")),
		expr("or_", expr("=", typed("b", "varchar"), value1(etf.List{})), expr("=", value1(int64(1)), typed("c", "any")))))
	if err == nil {
		t.Error("an integer as constant of type any")
	}
	e, err = Parse(expr("and_",
		expr("=", typed("b", "sint64"), typed("a", "sint64")),
		expr("or_", expr("=", typed("b", "varchar"), value1(etf.List{})), expr("=", value1([]byte{97, 1}), typed("c", "any")))))
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Fields(); !slices.Equal(got, []string{"b", "a", "c"}) {
		t.Errorf("Fields: %q", got)
	}
}

// TestParseKeepsNothing changes the term after Parse.
func TestParseKeepsNothing(t *testing.T) {
	text := []byte("abc")
	name := []byte("v")
	e, err := Parse(expr("=", etf.Tuple{etf.Atom("field"), name, etf.Atom("varchar")}, value1(text)))
	if err != nil {
		t.Fatal(err)
	}
	text[0], name[0] = 'x', 'x'
	ok, err := NewMatcher(e, DefaultExtractors()).Match(nil, object(EncodingETF, etfRow(field{"v", "abc"})))
	if !ok || err != nil {
		t.Errorf("%t, %v", ok, err)
	}
}
