package home

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"scanode/storage"
)

// FuzzParseMarker: what is taken for a marker begins with the two lines that
// its values make.
func FuzzParseMarker(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		engine, format, _, ok := ParseMarker(b)
		if !ok {
			return
		}
		if format == 0 || engine == "" {
			t.Fatalf("engine %q, format %d", engine, format)
		}
		line1, rest, _ := bytes.Cut(b, []byte("\n"))
		line2, _, _ := bytes.Cut(rest, []byte("\n"))
		if string(line1) != "engine "+engine || string(bytes.TrimLeft(line2[len("format "):], "0")) != fmt.Sprint(format) {
			t.Fatalf("%q gave %q, %d", b, engine, format)
		}
	})
}

// TestMarker: what WriteMarker writes is read as what it was given, also after loss of
// power, and a directory below it is refused.
func TestMarker(t *testing.T) {
	fs := vfs.NewCrashableMem()
	if err := MakeDir(fs, "/a/b"); err != nil {
		t.Fatal(err)
	}
	if err := NotInside(fs, "/a/b/c"); err != nil {
		t.Fatal(err)
	}
	if err := WriteMarker(fs, "/a/b", "wood", 7, "more\n"); err != nil {
		t.Fatal(err)
	}
	fs = fs.CrashClone(vfs.CrashCloneCfg{})
	b, err := ReadSmall(fs, "/a/b/"+MarkerName)
	if err != nil {
		t.Fatal(err)
	}
	engine, format, rest, ok := ParseMarker(b)
	if engine != "wood" || format != 7 || rest != "more\n" || !ok {
		t.Fatalf("%q, %d, %q, %v", engine, format, rest, ok)
	}
	for _, dir := range []string{"/a/b/c", "/a/b/c/d"} {
		if err := NotInside(fs, dir); !errors.Is(err, storage.ErrForeign) {
			t.Fatalf("%s: %v", dir, err)
		}
	}
}

// TestBook: one of many that ask for a directory gets it, until he gives it back, and
// under another name it is the same.
func TestBook(t *testing.T) {
	var b Book
	dir := t.TempDir()
	name, err := b.Enter(vfs.Default, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Enter(vfs.Default, dir+"/."); !errors.Is(err, storage.ErrLocked) || b.Len() != 1 {
		t.Fatalf("%v, %d booked", err, b.Len())
	}
	b.Leave(name)
	if _, err := b.Enter(vfs.Default, dir); err != nil || b.Len() != 1 {
		t.Fatalf("%v, %d booked", err, b.Len())
	}
	if _, err := b.Enter(vfs.Default, dir+"/absent"); err == nil {
		t.Fatal("a directory that is not there was booked")
	}
}
