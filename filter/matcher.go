package filter

import (
	"fmt"
	"strings"
)

// Extractor reads the rows of one encoding. The ones there are come from
// DefaultExtractors.
type Extractor interface {
	// extract walks r.payload until every field r names is found or the row
	// ends. It reads nothing outside of it.
	extract(r *row) error
}

// Extractors says which extractor reads an object, by its encoding byte.
type Extractors map[byte]Extractor

// DefaultExtractors returns a new map with the two row encodings of Riak TS.
func DefaultExtractors() Extractors {
	return Extractors{EncodingETF: etfExtractor{}, EncodingMsgpack: msgpackExtractor{}}
}

// Matcher applies one filter to the rows of one scan. It is not safe for use by
// two goroutines at once.
type Matcher struct {
	program    *program
	row        *row
	extractors [256]Extractor
}

// NewMatcher returns a matcher for e that reads the encodings in xs.
func NewMatcher(e *Expr, xs Extractors) *Matcher {
	m := &Matcher{row: newRow(e)}
	m.program = compile(e, m.row)
	for encoding, x := range xs {
		m.extractors[encoding] = x
	}
	return m
}

// Match reports whether the riak object stored under key passes the filter. A
// tombstone does not. The error is a *RowError: the object is broken, its encoding
// is unknown, or a field the filter names does not fit its type. The verdict
// depends on nothing but key and object, which Match neither changes nor keeps. It
// allocates only for an error, and where a regular expression needs room.
func (m *Matcher) Match(key, object []byte) (bool, error) {
	o, err := ParseObject(object)
	if err != nil {
		return false, err
	}
	x := m.extractors[o.Encoding]
	if x == nil {
		// Differs from eleveldb: deleted keys do not end the scan.
		if o.Tombstone() {
			return false, nil
		}
		return false, m.unknownEncoding(o)
	}
	m.row.reset(key, o.Payload)
	err = x.extract(m.row)
	ok := err == nil && m.program.run(m.row)
	m.row.key, m.row.payload = nil, nil
	return ok, err
}

// unknownEncoding explains an object no extractor reads.
func (m *Matcher) unknownEncoding(o Object) error {
	var known []string
	for encoding, x := range m.extractors {
		if x != nil {
			known = append(known, fmt.Sprint(encoding))
		}
	}
	return &RowError{Msg: fmt.Sprintf("value of encoding %d is no row; rows have encoding %s", o.Encoding, strings.Join(known, " or "))}
}
