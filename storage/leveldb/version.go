package leveldb

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
)

// Tags of the fields of an edit. 8 was for large values, once; 10 never reaches the
// disk; 11 is Basho's.
const (
	tagComparator     = 1
	tagLogNumber      = 2
	tagNextFile       = 3
	tagLastSequence   = 4
	tagCompactPointer = 5
	tagDeletedFile    = 6
	tagNewFile        = 7
	tagPrevLogNumber  = 9
	tagNewFile2       = 11
)

// numLevels is how many levels both have.
const numLevels = 7

// comparator is the order of keys that stores of ours have, too.
const comparator = "leveldb.BytewiseComparator"

// tableFile is a table as the manifest has it.
type tableFile struct {
	level  int
	number uint64
	size   int64
	// smallest and largest are internal keys. Their user parts bound what is in it.
	smallest, largest []byte
}

type tableName struct {
	level  int
	number uint64
}

// version is what the edits of a manifest add up to.
type version struct {
	comparator                                 string
	logNumber, prevLogNumber                   uint64
	nextFile, lastSequence                     uint64
	hasComparator, hasLog, hasNext, hasLastSeq bool
	basho                                      bool // has fields only Basho's writes
	files                                      map[tableName]tableFile
}

func newVersion() *version { return &version{files: map[tableName]tableFile{}} }

// apply applies one edit. Within it tables are removed first. b is copied from. After
// an error v is of no use.
func (v *version) apply(b []byte) error {
	var added []tableFile
	for len(b) > 0 {
		tag, rest, ok := readUint32(b)
		if !ok {
			return fmt.Errorf("an edit ends within a field")
		}
		b = rest
		switch tag {
		case tagComparator:
			var name []byte
			name, b, ok = readBytes(b)
			v.comparator, v.hasComparator = string(name), true
		case tagLogNumber:
			v.logNumber, b, ok = readUint(b)
			v.hasLog = true
		case tagPrevLogNumber:
			v.prevLogNumber, b, ok = readUint(b)
		case tagNextFile:
			v.nextFile, b, ok = readUint(b)
			v.hasNext = true
		case tagLastSequence:
			v.lastSequence, b, ok = readUint(b)
			v.hasLastSeq = true
		case tagCompactPointer:
			if _, b, ok = readLevel(b); ok {
				_, b, ok = readBytes(b)
			}
		case tagDeletedFile:
			var n tableName
			if n.level, b, ok = readLevel(b); ok {
				n.number, b, ok = readUint(b)
			}
			delete(v.files, n)
		case tagNewFile, tagNewFile2:
			var f tableFile
			f, b, ok = readFile(b, tag == tagNewFile2)
			added = append(added, f)
			v.basho = v.basho || tag == tagNewFile2
		default:
			return fmt.Errorf("an edit has the unknown field %d: it may be RocksDB's", tag)
		}
		if !ok {
			return fmt.Errorf("field %d of an edit cannot be read", tag)
		}
	}
	for _, f := range added {
		v.files[tableName{f.level, f.number}] = f
	}
	return nil
}

func readLevel(b []byte) (level int, rest []byte, ok bool) {
	n, rest, ok := readUint32(b)
	return int(n), rest, ok && n < numLevels
}

// readFile reads a table. In Basho's form, times at which its rows were written and
// expire come after it.
func readFile(b []byte, times bool) (f tableFile, rest []byte, ok bool) {
	if f.level, b, ok = readLevel(b); !ok {
		return f, nil, false
	}
	if f.number, b, ok = readUint(b); !ok || f.number == 0 {
		return f, nil, false
	}
	size, b, ok := readUint(b)
	if f.size = int64(size); !ok || f.size < 0 {
		return f, nil, false
	}
	for _, key := range []*[]byte{&f.smallest, &f.largest} {
		var k []byte
		if k, b, ok = readBytes(b); !ok {
			return f, nil, false
		}
		if _, ok = parseKey(k); !ok {
			return f, nil, false
		}
		*key = bytes.Clone(k)
	}
	for i := 0; times && i < 3; i++ {
		if _, b, ok = readUint(b); !ok {
			return f, nil, false
		}
	}
	return f, b, true
}

// check says what is missing of a version for which all edits were read.
func (v *version) check() error {
	switch {
	case !v.hasComparator, !v.hasLog, !v.hasNext, !v.hasLastSeq:
		return fmt.Errorf("the manifest lacks the comparator, the number of the log or of the next file, or the last sequence")
	case v.comparator != comparator:
		return fmt.Errorf("keys are ordered by %q; only %s can be read", plain(v.comparator), comparator)
	}
	return nil
}

// plain cuts what a file says to what can be shown.
func plain(text string) string {
	if len(text) > 100 {
		text = text[:100]
	}
	return text
}

// sorted returns the tables by level and, within it, by their smallest key.
func (v *version) sorted() []tableFile {
	files := slices.Collect(maps.Values(v.files))
	slices.SortFunc(files, func(a, b tableFile) int {
		if a.level != b.level {
			return a.level - b.level
		}
		x, _ := parseKey(a.smallest)
		y, _ := parseKey(b.smallest)
		if c := x.compare(&y); c != 0 {
			return c
		}
		return compareUint(a.number, b.number)
	})
	return files
}

func compareUint(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// disjoint parts the tables of one level, sorted, into runs of tables that do not
// overlap: most levels are one run, the upper ones, which may overlap, several.
func disjoint(files []tableFile) [][]tableFile {
	var runs [][]tableFile
	for _, f := range files {
		smallest, _ := parseKey(f.smallest)
		found := false
		for i, run := range runs {
			if largest, _ := parseKey(run[len(run)-1].largest); largest.compare(&smallest) < 0 {
				runs[i] = append(run, f)
				found = true
				break
			}
		}
		if !found {
			runs = append(runs, []tableFile{f})
		}
	}
	return runs
}
