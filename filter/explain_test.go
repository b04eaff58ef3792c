package filter

import (
	"testing"

	"pgregory.net/rapid"

	"scanode/etf"
	"scanode/etf/etftext"
)

// explained returns one entry of an explanation.
func explained(t testing.TB, m etf.Term, key string) etf.Term {
	t.Helper()
	for _, p := range m.(etf.Map) {
		if p.Key == etf.Term(etf.Atom(key)) {
			return p.Value
		}
	}
	t.Fatalf("no %s in %v", key, m)
	return nil
}

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		filter  string
		columns []string
		want    string
	}{
		{"", nil, `#{filter => none,outcome => all,key => false,fields => [],every_row => [],matching_rows => []}`},
		{"", []string{"a", "b", "a"}, `#{filter => none,outcome => all,key => false,fields => [],every_row => [],matching_rows => [<<"a">>,<<"b">>]}`},
		{`{not_, {and_, {between, {field, <<"n">>, sint64}, {const, 1}, {const, 2.0}}, {'!=', {field, <<"v">>, varchar}, {const, []}}}}`, []string{"v", "w"},
			`#{filter => {or_,{or_,{'<',{field,<<"n">>,sint64},{const,1}},{'>',{field,<<"n">>,sint64},{const,2}}},{is_null,{field,<<"v">>,varchar}}},
			outcome => depends,key => false,fields => [{<<"n">>,[sint64]},{<<"v">>,[varchar]}],every_row => [<<"n">>,<<"v">>],matching_rows => [<<"w">>]}`},
		{`{not_, {or_, {'<', {field, <<"d">>, double}, {const, 20}}, {in, {field, <<"d">>}, [{const, 1}]}}}`, nil,
			`#{filter => {and_,{not_,{'<',{field,<<"d">>,double},{const,20.0}}},{not_,{in,{field,<<"d">>,double},[{const,1.0}]}}},
			outcome => depends,key => false,fields => [{<<"d">>,[double]}],every_row => [<<"d">>],matching_rows => []}`},
		{`{and_, {prefix, key, {const, <<"a">>}}, {match, {field, <<"v">>, varchar}, {const, <<"b$">>}}}`, nil,
			`#{filter => {and_,{prefix,key,{const,<<"a">>}},{match,{field,<<"v">>,varchar},{const,<<"b$">>}}},
			outcome => depends,key => true,fields => [{<<"v">>,[varchar]}],every_row => [<<"v">>],matching_rows => []}`},
		{`{or_, {in, {field, <<"n">>, sint64}, []}, {'<', {const, 2}, {const, 1}}}`, nil,
			`#{filter => {or_,{in,{field,<<"n">>,sint64},[]},{'=',{const,1},{const,0}}},
			outcome => none,key => false,fields => [{<<"n">>,[sint64]}],every_row => [<<"n">>],matching_rows => []}`},
	} {
		var e *Expr
		if c.filter != "" {
			term, err := etftext.Parse(c.filter)
			if err != nil {
				t.Fatal(err)
			}
			if e, err = Parse(term); err != nil {
				t.Fatal(err)
			}
		}
		got := Explain(e, c.columns...).(etf.Map)
		want, err := etftext.Parse(c.want)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := etftext.Format(got[:len(got)-1]), etftext.Format(want); got != want {
			t.Errorf("%s\ngives %s\nwant  %s", c.filter, got, want)
		}
		if x := etftext.Format(explained(t, got, "extractors")); x != "[{0,etf},{2,msgpack}]" {
			t.Errorf("extractors %s", x)
		}
		if _, err := etf.AppendTerm(nil, got); err != nil {
			t.Error(err)
		}
	}
}

// TestNormalFormMeansTheSame: it is a filter, its own normal form, and answers as
// the original does.
func TestNormalFormMeansTheSame(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		filter := drawFilter(r, allTypes, 4)
		e, err := Parse(filter)
		if err != nil {
			r.Skip(err)
		}
		form := explained(t, Explain(e), "filter")
		again, err := Parse(form)
		if err != nil {
			r.Fatalf("%s is no filter: %v", etftext.Format(form), err)
		}
		if a, b := etftext.Format(form), etftext.Format(explained(t, Explain(again), "filter")); a != b {
			r.Fatalf("%s becomes %s", a, b)
		}
		m, n := NewMatcher(e, DefaultExtractors()), NewMatcher(again, DefaultExtractors())
		for range 4 {
			o := object(EncodingETF, etfRow(drawRow(r, rareETF)...))
			ok, err := sameVerdict(r, m, filter, o)
			ok2, err2 := sameVerdict(r, n, form, o)
			if ok != ok2 || (err == nil) != (err2 == nil) {
				r.Fatalf("%s: %t, %v; %s: %t, %v", etftext.Format(filter), ok, err, etftext.Format(form), ok2, err2)
			}
		}
	})
}
