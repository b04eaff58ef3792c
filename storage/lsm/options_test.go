package lsm

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	optionRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (?:`([a-z0-9]+)`|none) \\| (.*?) \\| .* \\|$")
	quoted    = regexp.MustCompile("`([a-z0-9]+)`")
	fromTo    = regexp.MustCompile(`([0-9]+) to ([0-9]+)`)
)

// optionValue is a value as it comes from the protocol.
func optionValue(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if text == "true" || text == "false" {
		return text == "true"
	}
	return text
}

// TestOptionsAreDocumented compares the table of options in docs/protocol.md
// with what is accepted: names, defaults, values and bounds.
func TestOptionsAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(b), "Options of the engine `lsm`.")
	section, _, _ = strings.Cut(section, "Options of the engine `couch`")
	var names []string
	for _, row := range optionRow.FindAllStringSubmatch(section, -1) {
		name, standard, values := row[1], row[2], row[3]
		names = append(names, name)
		set := func(v any) (settings, error) { return parseSettings(map[string]any{name: v}) }
		if values == "a path" {
			for v, want := range map[any]bool{"/fast": true, "": true, true: false, int64(1): false, strings.Repeat("x", 256): false} {
				if _, err := set(v); (err == nil) != want {
					t.Errorf("%s: %v: %v", name, v, err)
				}
			}
			continue
		}
		if s, err := set(optionValue(standard)); err != nil || s != defaultSettings() {
			t.Errorf("%s: %s is not the default: %v", name, standard, err)
		}
		listed := map[any]bool{}
		for _, q := range quoted.FindAllStringSubmatch(values, -1) {
			listed[optionValue(q[1])] = true
			if _, err := set(optionValue(q[1])); err != nil {
				t.Error(err)
			}
		}
		for _, v := range []any{true, false, "snappy", "zstd", "none", "lz4"} {
			if _, err := set(v); (err == nil) != listed[v] {
				t.Errorf("%s: %v is listed: %v, but %v", name, v, listed[v], err)
			}
		}
		bounds := fromTo.FindStringSubmatch(values)
		if bounds == nil {
			continue
		}
		low, high := optionValue(bounds[1]).(int64), optionValue(bounds[2]).(int64)
		for v, want := range map[int64]bool{low - 1: listed[low-1], low: true, high: true, high + 1: false} {
			if _, err := set(v); (err == nil) != want {
				t.Errorf("%s: %d: %v", name, v, err)
			}
		}
	}
	slices.Sort(names)
	if known := slices.Sorted(maps.Keys(optionSetters)); !slices.Equal(names, known) {
		t.Errorf("documented are %q, known %q", names, known)
	}
}
