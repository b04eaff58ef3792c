package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"scanode/etf"
	"scanode/etf/etftext"
	"scanode/filter"
)

// clientWords reads the atoms of scanode_port:words/0.
func clientWords(t *testing.T) map[string]bool {
	t.Helper()
	source, err := os.ReadFile("../../src/scanode_port.erl")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(source), "\nwords() ->")
	if !found {
		t.Fatal("src/scanode_port.erl has no words()")
	}
	list = list[strings.Index(list, "["):]
	list = list[:strings.Index(list, "].")+1]
	term, err := etftext.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]bool{}
	for _, atom := range term.(etf.List) {
		words[string(atom.(etf.Atom))] = true
	}
	return words
}

// TestClientKnowsAllWords: the client decodes what the program says without making
// atoms, so it must know every atom that can be said: all literals in the packages
// that write messages, all tags of reasons, and what explain makes of filters.
func TestClientKnowsAllWords(t *testing.T) {
	words := clientWords(t)
	for _, pkg := range []string{"port", "server", "scan", "filter"} {
		files, _ := filepath.Glob(filepath.Join("..", "..", pkg, "*.go"))
		if len(files) == 0 {
			t.Fatalf("no files in %s", pkg)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || pkg == "filter" && filepath.Base(file) != "explain.go" {
				continue
			}
			for _, atom := range saidIn(t, file) {
				if !words[atom] {
					t.Errorf("%s says %s, which src/scanode_port.erl does not know", file, etftext.Format(etf.Atom(atom)))
				}
			}
		}
	}
	for _, text := range []string{
		`{and_, {or_, {'=', {field,<<"a">>,varchar}, {const,<<"x">>}}, {'!=', {field,<<"b">>,sint64}, {const,1}}}, {not_, {'<', {field,<<"c">>,double}, {const,1.5}}}}`,
		`{and_, {'==', {field,<<"a">>,boolean}, {const,true}}, {'>', {field,<<"b">>,timestamp}, {const,1}}}`,
		`{and_, {'>=', {field,<<"a">>,sint64}, {const,1}}, {'<=', {field,<<"a">>,sint64}, {const,3}}}`,
		`{not_, {and_, {is_null, {field,<<"a">>,any}}, {'=<', {field,<<"b">>,sint64}, {field,<<"c">>,sint64}}}}`,
		`{or_, {in, {field,<<"a">>,sint64}, [{const,1},{const,2}]}, {between, {field,<<"a">>,sint64}, {const,1}, {const,3}}}`,
		`{or_, {prefix, {field,<<"a">>,varchar}, {const,<<"x">>}}, {not_, {match, key, {const,<<"x.*">>}}}}`,
		`{'=', {field,<<"a">>,varchar}, {const,[]}}`,
		`{not_, {'=', {field,<<"a">>,varchar}, {const,[]}}}`,
	} {
		term, err := etftext.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		expr, err := filter.Parse(term)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		checkAtoms(t, words, filter.Explain(expr, "z"))
	}
}

// saidIn returns the string literals that a file turns into atoms, and those of
// constants of the types tag, outcome and handleKind.
func saidIn(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	literal := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, _ := strconv.Unquote(lit.Value)
			said = append(said, text)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Atom" || sel.Sel.Name == "AppendAtom") {
				literal(n.Args[len(n.Args)-1])
			}
		case *ast.ValueSpec:
			if typ, ok := n.Type.(*ast.Ident); ok && (typ.Name == "tag" || typ.Name == "outcome" || typ.Name == "handleKind") {
				for _, v := range n.Values {
					literal(v)
				}
			}
		}
		return true
	})
	return said
}

func checkAtoms(t *testing.T, words map[string]bool, term etf.Term) {
	t.Helper()
	switch term := term.(type) {
	case etf.Atom:
		if !words[string(term)] {
			t.Errorf("explain says %s, which src/scanode_port.erl does not know", etftext.Format(term))
		}
	case etf.Tuple:
		for _, e := range term {
			checkAtoms(t, words, e)
		}
	case etf.List:
		for _, e := range term {
			checkAtoms(t, words, e)
		}
	case etf.Map:
		for _, p := range term {
			checkAtoms(t, words, p.Key)
			checkAtoms(t, words, p.Value)
		}
	}
}
