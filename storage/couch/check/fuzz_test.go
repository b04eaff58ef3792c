package check

import (
	"errors"
	"strings"
	"testing"

	"scanode/storage/couch/file"
)

// FuzzFile: whatever a file holds, looking at it ends without an error, every byte of
// it has a use, and where no damage is found another reader finds as many rows.
func FuzzFile(f *testing.F) {
	for _, name := range []string{
		"db_deleted_all.couch", "db_empty.couch", "db_purged.couch", "view_md5.view", "view_empty.view", "tree_deflate_9_60.cf",
		"hdr_base.cf", "bitflip_header3_len.cf", "root_flag_checksum.cf", "checksummed_chunk.cf", "exact_block_end.cf", "torn_data.cf", "tiny.cf",
	} {
		f.Add(readVector(f, name), false)
		f.Add(readVector(f, name), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, small bool) {
		if len(b) > 1<<20 {
			t.Skip()
		}
		o := Options{Headers: 10, Conflicts: 10}
		if small {
			o.SortRecords, o.TempDir = 64, t.TempDir()
		}
		r := inspectBytes(t, "fuzz.file", b, o)
		if r.FileType == TypeError && !r.Damaged() {
			t.Fatal("no header and no damage")
		}
		if r.Damaged() || r.FileType == TypeCompact {
			return
		}
		for _, tree := range r.TreeInfo {
			if tree.Separators > 0 || tree.Collation == "raw" || r.FileType == TypeTree {
				return // read in another order
			}
		}
		rows, err := allRows(t, "fuzz.file", b)
		var want int64
		for _, tree := range r.TreeInfo {
			want += tree.Rows
		}
		if err != nil || int64(strings.Count(rows, "\n")) != want {
			t.Fatalf("no damage and %d rows; another reader finds %d, %v", want, strings.Count(rows, "\n"), err)
		}
	})
}

// FuzzSalvage: of any file there is a new one in which nothing is wrong, or a reason; and
// where nothing was wrong with it, nothing is lost, orphans aside.
func FuzzSalvage(f *testing.F) {
	for _, name := range []string{
		"db_deleted_all.couch", "db_empty.couch", "db_purged.couch", "view_md5.view", "view_empty.view", "tree_deflate_9_60.cf", "root_flag_checksum.cf", "torn_first.cf",
	} {
		f.Add(readVector(f, name), false)
		f.Add(readVector(f, name), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, orphans bool) {
		if len(b) > 1<<20 {
			t.Skip()
		}
		damaged := inspectBytes(t, "in.file", b, Options{}).Damaged()
		s, fs, err := salvageBytes(t, "in.file", b, SalvageOptions{Orphans: orphans})
		switch {
		case err == nil && s.LostCount > 0 && !damaged && !orphans:
			t.Fatalf("nothing was wrong, lost: %v", s.Lost)
		case err == nil:
			mustFile(t, fs, "out.file")
		case errors.Is(err, file.ErrNoHeader), errors.Is(err, ErrNotSalvaged):
			if _, err := fs.Stat("out.file"); err == nil {
				t.Fatal("a failure left a file")
			}
		default:
			t.Fatal(err)
		}
	})
}
