package filter

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"slices"
	"testing"

	"scanode/etf"
)

// This file holds the package against recorded behaviour of eleveldb. The field
// "strict" of a case is the result wanted here, also where eleveldb differed.

// recordedCase is one line of filter_cases and filter_unstable.
type recordedCase struct {
	ID     string `json:"id"`
	Cat    string `json:"cat"`
	Filter string `json:"filter"`
	Term   string `json:"filter_b64"`
	Record string `json:"record_b64"`
	Strict string `json:"strict"`
}

// recordedScan is one line of multirow_cases.
type recordedScan struct {
	ID     string      `json:"id"`
	Cat    string      `json:"cat"`
	Filter string      `json:"filter"`
	Term   string      `json:"filter_b64"`
	Opts   string      `json:"opts"`
	Rows   [][2]string `json:"rows"`
	Result string      `json:"strict_result"`
	Keys   []string    `json:"strict_keys"`
}

// readLines decodes every line of a compressed JSON file.
func readLines[T any](t testing.TB, name string) []T {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var lines []T
	for d := json.NewDecoder(z); ; {
		var line T
		if err := d.Decode(&line); err == io.EOF {
			return lines
		} else if err != nil {
			t.Fatalf("%s, line %d: %v", name, len(lines)+1, err)
		}
		lines = append(lines, line)
	}
}

// unbase64 decodes s, which a file of ours holds.
func unbase64(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// term decodes an external term with its version byte.
func term(t testing.TB, b []byte) etf.Term {
	t.Helper()
	rest, err := etf.SkipVersion(b)
	if err != nil {
		t.Fatal(err)
	}
	v, rest, err := etf.Decode(rest, etf.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	if len(rest) > 0 {
		t.Fatalf("%d bytes after the term", len(rest))
	}
	return v
}

// verdict runs one filter over one object.
func verdict(t testing.TB, filter etf.Term, object []byte) (string, error) {
	e, err := Parse(filter)
	if err != nil {
		return "start_error", err
	}
	switch ok, err := NewMatcher(e, DefaultExtractors()).Match(nil, object); {
	case err != nil:
		return "stream_error", err
	case ok:
		return "returned", nil
	}
	return "filtered", nil
}

func TestRecordedCases(t *testing.T) {
	for _, name := range []string{"filter_cases.jsonl.gz", "filter_unstable.jsonl.gz"} {
		counts := make(map[string]int)
		for _, c := range readLines[recordedCase](t, name) {
			got, err := verdict(t, term(t, unbase64(t, c.Term)), unbase64(t, c.Record))
			counts[got]++
			if got != c.Strict {
				t.Errorf("%s, case %s %s: %s (%v), want %s\nfilter %s\nobject %q", name, c.ID, c.Cat, got, err, c.Strict, c.Filter, unbase64(t, c.Record))
			}
		}
		t.Logf("%s: %v", name, counts)
	}
}

// TestRecordedScans runs scans over several rows with one matcher each: no state
// may pass from a row to the next, and the rows before a fault count.
func TestRecordedScans(t *testing.T) {
	for _, c := range readLines[recordedScan](t, "multirow_cases.jsonl.gz") {
		limit := map[string]int{"[{limit,1}]": 1, "[{limit,2}]": 2, "[{limit,4}]": 4, "[{limit,5}]": 5, "[{limit,20}]": 20}[c.Opts]
		result, keys := "end", []string{}
		e, err := Parse(term(t, unbase64(t, c.Term)))
		if err != nil {
			result = "start_error"
		} else {
			m := NewMatcher(e, DefaultExtractors())
			for _, row := range c.Rows {
				ok, err := m.Match(nil, unbase64(t, row[1]))
				if err != nil {
					result = "stream_error"
					break
				}
				if ok {
					keys = append(keys, row[0])
				}
				if len(keys) == limit && limit > 0 {
					break
				}
			}
		}
		if result != c.Result || !slices.Equal(keys, c.Keys) {
			t.Errorf("case %s %s %s: %s %q, want %s %q", c.ID, c.Cat, c.Filter, result, keys, c.Result, c.Keys)
		}
	}
}
