package check

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
	"scanode/storage/couch"
)

// TestStores looks at stores of the engine, open and closed, in both ways to commit. The
// oracle is what was written to them; and every byte of the file is for something.
func TestStores(t *testing.T) {
	for _, mode := range []string{"log", "header"} {
		fs := vfs.NewMem()
		s, err := couch.New(couch.Config{FS: fs}).Open("/data", storage.Options{CreateIfMissing: true,
			Engine: map[string]any{"commit": mode, "log_batches": int64(100), "compact_percent": int64(0)}})
		if err != nil {
			t.Fatal(err)
		}
		const batches = 250
		for i := range batches {
			op := storage.Op{Key: fmt.Appendf(nil, "%04d", i*7919%1000), Value: []byte(strings.Repeat("v", i))}
			if err := s.Apply([]storage.Op{op}, mode == "log" || i%10 == 9); err != nil {
				t.Fatal(err)
			}
		}
		look := func(open bool) {
			t.Helper()
			r, err := File(fs, "/data/store.couch", Options{})
			if err != nil {
				t.Fatal(err)
			}
			rows, behind := int64(batches), int64(0)
			if open && mode == "log" {
				rows, behind = 200, 50
			}
			if r.FileType != TypeStore || r.Damaged() || r.Bytes.Total != r.FileSize || r.Bytes.Unknown+r.Bytes.Unreadable+r.Bytes.OrphanTerms > 0 ||
				*r.UpdateSeq != rows || r.TreeInfo[0].Rows != rows || r.Bytes.Log > 0 != (behind > 0) || r.Bytes.OrphanLog > 0 != (mode == "log") {
				t.Fatalf("%s, open %v: %+v, %+v", mode, open, r, r.Bytes)
			}
			var text bytes.Buffer
			if err := r.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("%d batches lie in a log", behind); strings.Contains(text.String(), "in a log") != (behind > 0) || behind > 0 && !strings.Contains(text.String(), want) {
				t.Fatalf("%s, open %v: %s", mode, open, text.String())
			}
		}
		look(true)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		look(false)
	}
}
