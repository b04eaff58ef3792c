package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// imports is the dependency table of ARCHITECTURE.md: what each package may
// import of this module, and which modules from outside. Tests may in addition
// import what their package may, and what testImports says. Arrows point
// downwards only; a package that is not listed is an error.
var imports = map[string]struct{ inside, outside []string }{
	"etf":          {},
	"etf/etftext":  {inside: []string{"etf"}},
	"msgpack":      {},
	"storage":      {},
	"port":         {inside: []string{"etf"}},
	"filter":       {inside: []string{"etf", "etf/etftext", "msgpack"}},
	"storage/home": {inside: []string{"storage"}, outside: []string{"github.com/cockroachdb/pebble/v2"}},
	"storage/lsm":  {inside: []string{"storage", "storage/home"}, outside: []string{"github.com/cockroachdb/pebble/v2"}},
	"storage/couch/file": {
		inside:  []string{"etf"},
		outside: []string{"github.com/cockroachdb/pebble/v2", "github.com/golang/snappy", "github.com/klauspost/compress", "github.com/zeebo/xxh3"},
	},
	"storage/couch/btree": {
		inside:  []string{"etf", "storage/couch/file"},
		outside: []string{"golang.org/x/text"},
	},
	"storage/couch/check": {
		inside:  []string{"etf", "etf/etftext", "storage", "storage/couch", "storage/couch/file", "storage/couch/btree"},
		outside: []string{"github.com/cockroachdb/pebble/v2"},
	},
	"storage/couch": {
		inside:  []string{"etf", "storage", "storage/home", "storage/couch/file", "storage/couch/btree"},
		outside: []string{"github.com/cockroachdb/pebble/v2", "github.com/tidwall/btree"},
	},
	"storage/leveldb": {
		inside:  []string{"storage"},
		outside: []string{"github.com/golang/snappy", "github.com/pierrec/lz4/v4"},
	},
	"storage/dump": {inside: []string{"etf", "storage"}, outside: []string{"github.com/zeebo/xxh3"}},
	"storage/transfer": {
		inside:  []string{"storage", "storage/home", "storage/dump"},
		outside: []string{"github.com/cockroachdb/pebble/v2"},
	},
	"storage/storetest": {inside: []string{"storage"}, outside: []string{"pgregory.net/rapid"}},
	"scan":              {inside: []string{"filter", "storage", "etf", "etf/etftext", "msgpack"}},
	"node":              {inside: []string{"etf"}},
	"server":            {inside: []string{"scan", "filter", "storage", "etf", "etf/etftext"}, outside: []string{"golang.org/x/sync"}},
	"cmd/scanode": {
		inside:  []string{"etf", "etf/etftext", "msgpack", "storage", "port", "filter", "storage/lsm", "storage/couch", "storage/couch/check", "storage/home", "storage/leveldb", "storage/dump", "storage/transfer", "scan", "node", "server"},
		outside: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/schollz/progressbar/v3", "github.com/cockroachdb/pebble/v2", "golang.org/x/sys", "golang.org/x/term"},
	},
}

// testImports is what test files may import beyond their package's row.
var testImports = struct{ inside, outside []string }{
	inside:  []string{"etf", "etf/etftext", "msgpack", "storage", "storage/storetest", "storage/lsm"},
	outside: []string{"pgregory.net/rapid", "github.com/vmihailenco/msgpack/v5", "github.com/goerlang/etf", "github.com/cockroachdb/pebble/v2"},
}

// TestImports reads the files itself instead of asking the go command, whose
// answers the test cache would keep.
func TestImports(t *testing.T) {
	root := filepath.Join("..", "..")
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (name == "testdata" || name == "_build" || strings.HasPrefix(name, ".")) {
				return filepath.SkipDir
			}
			// A folder with a go.mod of its own is another module.
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(name, ".go") {
			rel, _ := filepath.Rel(root, path)
			pkg := filepath.ToSlash(filepath.Dir(rel))
			seen[pkg] = true
			checkImports(t, rel, pkg)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range imports {
		if !seen[pkg] {
			t.Errorf("package %s is in the table and has no file", pkg)
		}
	}
}

func checkImports(t *testing.T, rel, pkg string) {
	row, ok := imports[pkg]
	if !ok {
		t.Errorf("%s: package %s is not in the table of imports_test.go", rel, pkg)
		return
	}
	inside, outside := row.inside, row.outside
	if strings.HasSuffix(rel, "_test.go") {
		inside = append(append([]string{pkg}, inside...), testImports.inside...)
		outside = append(append([]string{}, outside...), testImports.outside...)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", rel), nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if !allowed(path, inside, outside) {
			t.Errorf("%s: package %s must not import %s", rel, pkg, path)
		}
	}
}

func allowed(path string, inside, outside []string) bool {
	if in, ok := strings.CutPrefix(path, "scanode/"); ok {
		for _, p := range inside {
			if in == p {
				return true
			}
		}
		return false
	}
	if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
		return true // the standard library
	}
	for _, module := range outside {
		if path == module || strings.HasPrefix(path, module+"/") {
			return true
		}
	}
	return false
}
