package filter

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"scanode/etf"
)

func not(f etf.Term) etf.Term    { return etf.Tuple{etf.Atom("not_"), f} }
func isNull(f etf.Term) etf.Term { return etf.Tuple{etf.Atom("is_null"), f} }

// consts is a list for in.
func consts(values ...etf.Term) etf.List {
	l := etf.List{}
	for _, v := range values {
		l = append(l, value1(v))
	}
	return l
}

// TestTruthTables holds the tables of docs/filters.md: a test of a field that is
// true, false or NULL under every operator of three-valued logic.
func TestTruthTables(t *testing.T) {
	row := []field{{"yes", int64(1)}, {"no", int64(0)}, {"null", null{}}}
	operands := []string{"yes", "no", "null"}
	is := func(name string) etf.Term { return expr("=", typed(name, "sint64"), value1(int64(1))) }
	// Of every outcome: whether the expression is true, and whether its negation is.
	const (
		yes     = "true false"
		no      = "false true"
		unknown = "false false"
	)
	check := func(f etf.Term, want string) {
		t.Helper()
		for _, o := range [][]byte{object(EncodingETF, etfRow(row...)), object(EncodingMsgpack, msgpackRow(row...))} {
			plain, err := matcher(t, f).Match(nil, o)
			negated, err2 := matcher(t, not(f)).Match(nil, o)
			twice, err3 := matcher(t, not(not(f))).Match(nil, o)
			if err != nil || err2 != nil || err3 != nil || twice != plain {
				t.Fatalf("%v: %v, %v, %v; negated twice %t", f, err, err2, err3, twice)
			}
			got := unknown
			if plain {
				got = yes
			}
			if negated {
				got = no
			}
			if got != want || plain && negated {
				t.Errorf("%v: true and negation: %t %t, want %s", f, plain, negated, want)
			}
		}
	}
	and := []string{yes, no, unknown, no, no, no, unknown, no, unknown}
	or := []string{yes, yes, yes, yes, no, unknown, yes, unknown, unknown}
	for i, a := range operands {
		check(is(a), []string{yes, no, unknown}[i])
		for j, b := range operands {
			check(expr("and_", is(a), is(b)), and[3*i+j])
			check(expr("or_", is(a), is(b)), or[3*i+j])
		}
	}
	null := typed("null", "sint64")
	check(isNull(null), yes)
	check(isNull(typed("yes", "sint64")), no)
	check(isNull(typed("missing", "sint64")), yes)
	check(expr("=", typed("null", "varchar"), value1(etf.List{})), yes)
	check(expr("!=", typed("null", "varchar"), value1(etf.List{})), no)
	check(expr("!=", null, value1(int64(1))), unknown)
	check(expr("<", null, null), unknown)
	check(expr("in", null, consts(int64(1))), unknown)
	check(expr("in", null, consts()), no)
	check(etf.Tuple{etf.Atom("between"), null, value1(int64(0)), value1(int64(1))}, unknown)
	check(expr("prefix", typed("null", "varchar"), value1([]byte{})), unknown)
	check(expr("match", typed("null", "varchar"), value1([]byte{})), unknown)
	check(expr("match", typed("yes", "varchar"), value1([]byte{})), no) // no text
	check(expr("=", value1(int64(1)), value1(int64(1))), yes)
	check(expr("<", value1(int64(1)), value1(int64(1))), no)
}

// TestNotEqualIsNotOfEqual: not_({'=', x, 3}) and {'!=', x, 3} are one filter.
func TestNotEqualIsNotOfEqual(t *testing.T) {
	x, k := typed("x", "double"), value1(int64(3))
	negated, plain := matcher(t, not(expr("=", x, k))), matcher(t, expr("!=", x, k))
	for _, list := range [][]raw{rareETF, {raw("F\x7f\xf8\x00\x00\x00\x00\x00\x00"), {97, 3}, {97, 4}, {106}}} {
		for _, v := range list {
			o := object(EncodingETF, etfRow(field{"x", v}))
			a, aErr := negated.Match(nil, o)
			b, bErr := plain.Match(nil, o)
			if a != b || (aErr == nil) != (bErr == nil) {
				t.Errorf("%q: %t, %v and %t, %v", v, a, aErr, b, bErr)
			}
		}
	}
}

func TestPredicateErrors(t *testing.T) {
	n, v := typed("n", "sint64"), typed("v", "varchar")
	one, a := value1(int64(1)), value1([]byte("a"))
	between := func(f, low, high etf.Term) etf.Term { return etf.Tuple{etf.Atom("between"), f, low, high} }
	for _, c := range []struct {
		name     string
		filter   etf.Term
		path, op string
		msg      string // a part of it
	}{
		{"'not'", etf.Tuple{etf.Atom("not"), expr("=", n, one)}, "1", "", "negation is not_"},
		{"not_ of two", expr("not_", n, one), "", "", "a tuple of 2 elements"},
		{"not_ of a field", not(n), "2.1", "", "unknown operator field"},
		{"inside not_", not(not(expr("=", n, a))), "2.2.3", "=", "no sint64"},
		{"is_null of key", isNull(etf.Atom("key")), "2", "is_null", "only a field"},
		{"is_null of a constant", isNull(one), "2", "is_null", "only a field"},
		{"is_null of nothing", isNull(etf.Tuple{}), "2", "is_null", "only a field"},
		{"is_null without type", isNull(etf.Tuple{etf.Atom("field"), []byte("n")}), "2", "is_null", "no type"},
		{"in of a constant", expr("in", one, consts(int64(1))), "2", "in", "not the constant"},
		{"in of no list", expr("in", n, one), "3", "in", "a list of {const, Value} is wanted"},
		{"in of bare values", expr("in", n, etf.List{int64(1)}), "3", "in", "1 is in it"},
		{"in of a field", expr("in", n, etf.List{n}), "3", "in", "is in it"},
		{"in of NULL", expr("in", v, consts([]byte("a"), etf.List{})), "3", "in", "use is_null"},
		{"in of another type", expr("in", n, consts(int64(1), []byte("a"))), "3", "in", "no sint64"},
		{"between of text", between(v, a, a), "1", "between", "only be tested"},
		{"between of two", expr("between", n, one), "", "", "a tuple of 4 elements"},
		{"between fields", between(n, n, one), "3", "between", "{const, Value} is wanted"},
		{"between, upper bound", between(n, one, a), "4", "between", "no sint64"},
		{"prefix of a number", expr("prefix", n, one), "2", "prefix", "for varchar and key"},
		{"prefix of any", expr("prefix", typed("v", "any"), a), "2", "prefix", "for varchar and key"},
		{"prefix NULL", expr("prefix", v, value1(etf.List{})), "3", "prefix", "no varchar"},
		{"pattern", expr("match", v, value1([]byte("a(b"))), "3", "match", "missing closing )"},
		{"pattern, Perl only", expr("match", v, value1([]byte(`(a)\1`))), "3", "match", "invalid escape"},
		{"pattern, no UTF-8", expr("match", v, value1([]byte{0xff})), "3", "match", "UTF-8"},
		{"pattern, long", expr("match", v, value1([]byte(strings.Repeat("a", maxPattern+1)))), "3", "match", "at most"},
		{"pattern, large", expr("match", v, value1([]byte("(?:(?:ab|c){20}){40}"))), "3", "match", "steps"},
		{"pattern, nested", expr("match", v, value1([]byte("(((abcde{9}){9}){9}){1,1}"))), "3", "match", "steps"},
		{"key and key", expr("=", etf.Atom("key"), etf.Atom("key")), "", "=", "constants only"},
		{"key and field", expr("=", v, etf.Atom("key")), "", "=", "constants only"},
		{"key and number", expr("<", etf.Atom("key"), one), "3", "<", "no key"},
		{"key and NULL", expr("=", value1(etf.List{}), etf.Atom("key")), "2", "=", "no key"},
		{"key misspelt", expr("=", etf.Atom("keys"), a), "2", "=", "an operand is"},
		{"field of type key", expr("=", typed("v", "key"), a), "2", "=", "unknown type"},
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

// TestPredicateBounds: what is counted over a whole filter.
func TestPredicateBounds(t *testing.T) {
	n := typed("n", "sint64")
	list := make(etf.List, maxListed)
	for i := range list {
		list[i] = value1(int64(2 * i))
	}
	full := expr("in", n, list)
	m := matcher(t, full)
	for v, want := range map[int64]bool{0: true, 1: false, 2*maxListed - 2: true, 2 * maxListed: false} {
		if ok, err := m.Match(nil, object(EncodingETF, etfRow(field{"n", v}))); ok != want || err != nil {
			t.Errorf("%d: %t, %v", v, ok, err)
		}
	}
	if _, err := Parse(expr("or_", full, expr("in", n, consts(int64(1))))); err == nil || !strings.Contains(err.Error(), "constants in lists") {
		t.Errorf("%d constants: %v", maxListed+1, err)
	}
	pattern := expr("match", typed("v", "varchar"), value1([]byte("a{800}")))
	if _, err := Parse(pattern); err == nil || !strings.Contains(err.Error(), "steps") {
		t.Errorf("a{800}: %v", err)
	}
	pattern = expr("match", typed("v", "varchar"), value1([]byte("a{400}")))
	if _, err := Parse(pattern); err != nil {
		t.Error(err)
	}
	if _, err := Parse(expr("or_", pattern, expr("or_", pattern, pattern))); err == nil || !strings.Contains(err.Error(), "steps") {
		t.Errorf("three of a{400}: %v", err)
	}
	deep := expr("=", n, value1(int64(5)))
	for range maxDepth - 1 {
		deep = not(deep)
	}
	if ok, err := matcher(t, deep).Match(nil, object(EncodingETF, etfRow(field{"n", int64(4)}))); !ok || err != nil {
		t.Errorf("%d times not_: %t, %v", maxDepth-1, ok, err)
	}
	if _, err := Parse(not(deep)); err == nil || !strings.Contains(err.Error(), "deeper") {
		t.Errorf("%d times not_: %v", maxDepth-1, err)
	}
}

// TestStepsBoundPrograms compares the estimate with what the library compiles.
func TestStepsBoundPrograms(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "abc", ".", "[a-f]", "(?i)k", "^", "$", "\\b", "", "(?:)", "x*", "y+?", "z?"})
	rapid.Check(t, func(t *rapid.T) {
		text := part.Draw(t, "part")
		for range rapid.IntRange(0, 6).Draw(t, "wraps") {
			text = fmt.Sprintf(rapid.SampledFrom([]string{"(%s)", "(?:%s)*", "(?:%s){3}", "(?:%s){0,4}", "(?:%s){2,}", "(?:%s)?", "%s|" + part.Draw(t, "part"), "%s" + part.Draw(t, "part")}).Draw(t, "wrap"), text)
		}
		tree, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			t.Skip(err) // drawn, but no expression: too large a repetition
		}
		estimate := 2 + steps(tree)
		prog, err := syntax.Compile(tree.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if n := len(prog.Inst); estimate <= maxSteps && n > estimate {
			t.Fatalf("%s: %d instructions, %d estimated", text, n, estimate)
		}
	})
}

// TestPredicatesAllocateNothing covers every new test, on field and key. Regular
// expressions take their room from a pool of the library, which may be empty after
// a garbage collection, and which the race detector empties at random.
func TestPredicatesAllocateNothing(t *testing.T) {
	long := consts()
	for i := range 2 * maxLinear {
		long = append(long, value1([]byte{'x', byte(i)}))
	}
	v, n, key := typed("v", "varchar"), typed("n", "sint64"), etf.Atom("key")
	all := expr("=", value1(int64(1)), value1(int64(2)))
	for _, f := range []etf.Term{
		not(not(expr("in", v, long))), expr("in", v, consts([]byte("b"))), expr("in", n, consts(int64(1), int64(2))), expr("in", key, long),
		etf.Tuple{etf.Atom("between"), n, value1(int64(6)), value1(int64(9))}, isNull(v),
		expr("prefix", v, value1([]byte("b"))), expr("prefix", key, value1([]byte("b"))), expr("<", key, value1([]byte("a"))),
	} {
		all = expr("or_", all, f)
	}
	pattern := expr("or_", expr("match", v, value1([]byte("^b.*c|x$"))), expr("match", key, value1([]byte("[x-z]"))))
	m, patterns := matcher(t, all), matcher(t, pattern)
	row := []field{{"v", "abc"}, {"n", int64(5)}}
	for _, o := range [][]byte{object(EncodingETF, etfRow(row...)), object(EncodingMsgpack, msgpackRow(row...))} {
		key := []byte("abc")
		if ok, err := m.Match(key, o); ok || err != nil {
			t.Fatalf("%t, %v", ok, err)
		}
		if n := testing.AllocsPerRun(100, func() { m.Match(key, o) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
		if n := testing.AllocsPerRun(100, func() { patterns.Match(key, o) }); n > 2 {
			t.Errorf("%v allocations for two regular expressions", n)
		}
	}
}
