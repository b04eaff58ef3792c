package couch

import (
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"scanode/storage"
)

var (
	optionRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| `([a-z0-9]+)` \\| (.*?) \\| .* \\|$")
	quoted    = regexp.MustCompile("`([a-z0-9_]+)`")
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

// TestOptionsAreDocumented compares the table of options in docs/protocol.md with what
// is accepted: names, defaults, values and bounds.
func TestOptionsAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(b), "Options of the engine `couch`")
	section, _, _ = strings.Cut(section, "\nA store lives")
	var names []string
	for _, row := range optionRow.FindAllStringSubmatch(section, -1) {
		name, standard, values := row[1], row[2], row[3]
		names = append(names, name)
		set := func(v any) error {
			_, err := parseSettings(map[string]any{name: v})
			if err != nil && !errors.Is(err, storage.ErrOption) {
				t.Errorf("%s: %v: %v is no ErrOption", name, v, err)
			}
			return err
		}
		if s, err := parseSettings(map[string]any{name: optionValue(standard)}); err != nil || s != defaultSettings() {
			t.Errorf("%s: %s is not the default: %v", name, standard, err)
		}
		for _, q := range quoted.FindAllStringSubmatch(values, -1) {
			if err := set(optionValue(q[1])); err != nil {
				t.Error(err)
			}
		}
		bad := []any{1.5, nil, []byte("x"), "perhaps", "", strings.Repeat("x", 1000), int64(-1), true}
		if m := fromTo.FindStringSubmatch(values); m != nil {
			low, _ := strconv.ParseInt(m[1], 10, 64)
			high, _ := strconv.ParseInt(m[2], 10, 64)
			if set(low) != nil || set(high) != nil {
				t.Errorf("%s: %d or %d is refused", name, low, high)
			}
			bad = append(bad, low-1, high+1)
		}
		for _, v := range bad {
			if set(v) == nil && !strings.Contains(values, "`true`") {
				t.Errorf("%s: %v is taken", name, v)
			}
		}
	}
	slices.Sort(names)
	if known := slices.Sorted(maps.Keys(options)); !slices.Equal(names, known) {
		t.Errorf("documented are %q, known are %q", names, known)
	}
}
