package check

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"testing"
)

// TestCFCheck compares the report with what cfcheck printed for files of its time,
// member by member. Where cfcheck was wrong, the test names the fault:
//
//	(a) kv_nodes' min and max are mixed with the lengths of the kp nodes above
//	(f) conflicts counts root branches, and so misses those below a common root
func TestCFCheck(t *testing.T) {
	var recorded []map[string]any
	readJSON(t, "cfcheck.details.json", &recorded)
	deviations := map[string]string{}
	for _, want := range recorded {
		name := filepath.Base(want["file_name"].(string))
		r := inspect(t, name, Options{})
		fine(t, r)
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		delete(want, "file_name")
		for member, value := range want {
			compareMember(t, name+"/"+member, value, got[member], deviations)
		}
	}
	// The recorded data in the manifest, which was made by reading the nodes, is the
	// oracle for (a); see TestCouchFiles. These are all the places.
	want := map[string]string{
		"db_v6_small.couch/conflicts":                         "f",
		"db_v6_many_compacted.couch/tree_info/0/kv_nodes/min": "a",
		"db_v6_many_compacted.couch/tree_info/1/kv_nodes/min": "a",
		"view_md5.view/tree_info/1/kv_nodes/min":              "a",
		"view_md5.view/tree_info/2/kv_nodes/min":              "a",
	}
	if !reflect.DeepEqual(deviations, want) {
		t.Errorf("deviations: %v, want %v", deviations, want)
	}
}

// compareMember compares what cfcheck has with what we have. We may have more.
func compareMember(t *testing.T, path string, want, got any, deviations map[string]string) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		have, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s: %v, cfcheck has %v", path, got, want)
			return
		}
		for member, value := range want {
			p := path + "/" + member
			switch member {
			case "id_tree", "seq_tree", "local_tree", "view_tree":
				p = path // one member, the tree's name
			}
			compareMember(t, p, value, have[member], deviations)
		}
	case []any:
		have, ok := got.([]any)
		if !ok || len(have) < len(want) {
			t.Errorf("%s: %v, cfcheck has %v", path, got, want)
			return
		}
		for i, value := range want {
			compareMember(t, path+"/"+string(rune('0'+i)), value, have[i], deviations)
		}
	default:
		if reflect.DeepEqual(want, got) {
			return
		}
		switch filepath.Base(path) {
		case "min", "max":
			deviations[path] = "a"
		case "conflicts":
			deviations[path] = "f"
		default:
			t.Errorf("%s: %v, cfcheck has %v", path, got, want)
		}
	}
}

// TestCFCheckSummary adds up the same files.
func TestCFCheckSummary(t *testing.T) {
	var sum Summary
	for _, name := range []string{"db_v6_many.couch", "db_v6_many_compacted.couch", "db_v6_small.couch", "view_md5.view"} {
		sum.Add(inspect(t, name, Options{}))
	}
	var want Summary
	readJSON(t, "cfcheck.summary.json", &want)
	want.DB.Conflicts = 1 // fault (f)
	if !reflect.DeepEqual(sum, want) {
		t.Errorf("%+v, cfcheck has %+v", sum, want)
	}
}
