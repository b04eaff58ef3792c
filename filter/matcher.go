package filter

import (
	"fmt"
	"strings"
)

// Extractor reads the rows of one encoding. The ones there are come from
// DefaultExtractors.
type Extractor interface {
	// walk goes over r.payload, from where the stage before has left off, until
	// every field of the stage is found or the row ends. It reads nothing outside
	// of it.
	walk(r *row, g *guesses, until stage) error
	// learn marks the structure of the row b up to the last name in t, and reports
	// whether it is a template then.
	learn(r *row, b []byte, t *template) bool
	// set decodes the value payload[off:off+size] into the cell and the slots of
	// name i.
	set(r *row, i, off, size int) error
	sizes() *[256]cellSize
}

// Extractors says which extractor reads an object, by its encoding byte.
type Extractors map[byte]Extractor

// DefaultExtractors returns a new map with the two row encodings of Riak TS.
func DefaultExtractors() Extractors {
	return Extractors{EncodingETF: etfExtractor{}, EncodingMsgpack: msgpackExtractor{}}
}

// Matcher applies one filter to the rows of one scan and finds the columns of
// those that pass. It is not safe for use by two goroutines at once.
type Matcher struct {
	program  *program // nil: every row passes
	row      *row
	encoding byte          // of the last object
	guesses  [256]*guesses // by encoding
}

// NewMatcher returns a matcher for e that reads the encodings in xs. Without an
// expression, nil, every row passes that is no tombstone. Cell returns the columns;
// a name may occur several times and in e.
func NewMatcher(e *Expr, xs Extractors, columns ...string) *Matcher {
	m := &Matcher{row: newRow(e, columns)}
	if e != nil {
		m.program = compile(e, m.row)
	}
	for encoding, x := range xs {
		m.guesses[encoding] = newGuesses(x, len(m.row.names))
	}
	return m
}

// Match reports whether the riak object stored under key passes the filter. A
// tombstone does not. The error is a *RowError: the object is broken, its encoding
// is unknown, or a field the filter names does not fit its type. The verdict
// depends on nothing but key and object, which Match does not change. It keeps
// them only if there are columns, until it is called again. It allocates only for
// an error, and where a regular expression needs room.
//
// Columns are looked for in rows that pass, and only then may damage behind the
// fields of the filter become an error.
func (m *Matcher) Match(key, object []byte) (bool, error) {
	r := m.row
	o, err := ParseObject(object)
	if err != nil {
		return false, r.release(err)
	}
	g := m.guesses[o.Encoding]
	if g == nil {
		r.release(nil)
		// Differs from eleveldb: deleted keys do not end the scan.
		if o.Tombstone() {
			return false, nil
		}
		return false, m.unknownEncoding(o)
	}
	r.reset(key, o.Payload)
	r.settle(g)
	if err := r.extract(g, stageFilter); err != nil {
		return false, r.release(err)
	}
	ok := m.program == nil || m.program.run(r)
	if len(r.columns) == 0 || !ok {
		return ok, r.release(nil)
	}
	m.encoding = o.Encoding
	if err := r.extract(g, stageColumns); err != nil {
		return false, r.release(err)
	}
	return true, nil
}

// release lets go of the object and returns err.
func (r *row) release(err error) error {
	r.key, r.payload = nil, nil
	return err
}

// unknownEncoding explains an object no extractor reads.
func (m *Matcher) unknownEncoding(o Object) error {
	var known []string
	for encoding, g := range m.guesses {
		if g != nil {
			known = append(known, fmt.Sprint(encoding))
		}
	}
	return &RowError{Msg: fmt.Sprintf("value of encoding %d is no row; rows have encoding %s", o.Encoding, strings.Join(known, " or "))}
}
