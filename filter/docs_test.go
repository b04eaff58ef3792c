package filter

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"scanode/etf"
	"scanode/etf/etftext"
)

// example is one fenced block of docs/filters.md. Its parts begin with a word at
// the start of a line; indented lines belong to the part before.
var example = regexp.MustCompile("(?s)```example( etf)?\n(.*?)```")

// TestDocumentedExamples runs every example of docs/filters.md, in both
// encodings unless it is marked etf. Texts of errors are those of ETF rows.
func TestDocumentedExamples(t *testing.T) {
	doc, err := os.ReadFile("../docs/filters.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := example.FindAllStringSubmatch(string(doc), -1)
	if len(blocks) < 30 {
		t.Fatalf("found %d examples", len(blocks))
	}
	for _, block := range blocks {
		parts := make(map[string]string)
		name := ""
		for line := range strings.Lines(block[2]) {
			if line[0] != ' ' {
				word, rest, _ := strings.Cut(line, " ")
				name, line = word, rest
			}
			parts[name] += " " + strings.TrimSpace(line)
		}
		want := strings.TrimSpace(parts["result"])
		filter, err := etftext.Parse(parts["filter"])
		if err != nil {
			t.Fatalf("%v in %s", err, block[2])
		}
		e, err := Parse(filter)
		if err != nil {
			if got := "refused " + err.Error(); got != want {
				t.Errorf("%s\ngives    %s", block[2], got)
			}
			continue
		}
		row, err := etftext.Parse(parts["row"])
		if err != nil {
			t.Fatalf("%v in %s", err, block[2])
		}
		m := NewMatcher(e, DefaultExtractors())
		key := []byte(strings.TrimSpace(parts["key"]))
		ok, err := m.Match(key, object(EncodingETF, documentedRow(t, row)))
		if got := outcome(ok, err); got != want {
			t.Errorf("%s\ngives    %s", block[2], got)
		}
		if block[1] != "" {
			continue
		}
		packed, packedErr := m.Match(key, object(EncodingMsgpack, packedRow(t, row)))
		if packed != ok || (packedErr == nil) != (err == nil) {
			t.Errorf("%s\ngives, as MessagePack, %s", block[2], outcome(packed, packedErr))
		}
	}
}

func outcome(ok bool, err error) string {
	switch {
	case err != nil:
		return "error " + err.Error()
	case ok:
		return "match"
	}
	return "no match"
}

// documentedRow encodes a row with its version byte. term_to_binary writes the
// empty list as NIL, which is no row; an example with no fields means a list
// header that counts none.
func documentedRow(t *testing.T, row etf.Term) []byte {
	t.Helper()
	if l, ok := row.(etf.List); ok && len(l) == 0 {
		return etfRow()
	}
	b, err := etf.AppendTerm(etf.AppendVersion(nil), row)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// packedRow encodes the same row as MessagePack.
func packedRow(t *testing.T, row etf.Term) []byte {
	t.Helper()
	var fields []field
	for _, pair := range row.(etf.List) {
		f := field{name: string(pair.(etf.Tuple)[0].([]byte))}
		switch v := pair.(etf.Tuple)[1].(type) {
		case []byte:
			f.value = string(v)
		case etf.List:
			f.value = null{}
		default:
			f.value = v
		}
		fields = append(fields, f)
	}
	return msgpackRow(fields...)
}
