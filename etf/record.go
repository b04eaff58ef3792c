package etf

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// A native record, RECORD_EXT, as OTP 29 writes it, the first release to have
// them:
//
//	67 fields:32 flags:8 module name fieldname*fields value*fields
//
// Bit 0 of the flags says that other modules may look inside; the BEAM refuses
// any other bit, a field name that comes twice, and names that are no atoms. The
// fields stay in the order of their declaration.

const (
	recordParts    = 6 // offset of the module
	recordExported = 1
)

// walkRecord walks a record and looks at its contents.
func walkRecord(b []byte, off, depth int, how strictness) (int, error) {
	next, n, err := head(b, off)
	if err != nil {
		return 0, err
	}
	if depth >= MaxDepth {
		return 0, tooDeep(off)
	}
	if b[off+5]&^recordExported != 0 {
		return 0, badValue(off+5, "flags of a native record")
	}
	fields := (n - 2) / 2
	for range 2 { // module and name
		if next, err = walkAtom(b, next, how); err != nil {
			return 0, err
		}
	}
	names := make([][]byte, 0, min(fields, 64))
	for range fields {
		start := next
		if next, err = walkAtom(b, start, how); err != nil {
			return 0, err
		}
		name, _, err := ReadAtom(b[start:next])
		if err != nil {
			return 0, shift(err, start)
		}
		names = append(names, name)
	}
	slices.SortFunc(names, bytes.Compare)
	for i := 1; i < len(names); i++ {
		if bytes.Equal(names[i-1], names[i]) {
			return 0, badValue(off, "field of a native record that comes twice")
		}
	}
	return walkParts(b, next, fields, depth, how)
}

// record compares native records: by module and name, then those that other
// modules may look inside come last, then by the number of fields, their names
// in the order of declaration, and their values.
func (c *comparer) record(i, j, depth int, exact bool) (r, ni, nj int, err error) {
	for _, side := range []struct {
		b   []byte
		off int
	}{{c.a, i}, {c.b, j}} {
		if _, _, err := head(side.b, side.off); err != nil {
			return 0, 0, 0, err
		}
	}
	r, ni, nj, err = c.terms(i+recordParts, j+recordParts, 2, depth, exact)
	if r != 0 || err != nil {
		return r, 0, 0, err
	}
	n, m := binary.BigEndian.Uint32(c.a[i+1:]), binary.BigEndian.Uint32(c.b[j+1:])
	if r = cmp.Or(cmp.Compare(c.a[i+5], c.b[j+5]), cmp.Compare(n, m)); r != 0 {
		return r, 0, 0, nil
	}
	return c.terms(ni, nj, 2*int(n), depth, exact)
}
