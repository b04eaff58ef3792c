package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"sort"

	"scanode/etf"
	"scanode/scan"
	"scanode/storage"
)

// A continuation says where a scan that its limit ended goes on:
//
//	version, 1 byte | hash of the query, 16 bytes | number of the range, 4 bytes | key
//
// It holds all that is needed, so it outlives the scan, the handle and the
// program. One that is made up is refused or names another row of the range.
const (
	continuationVersion = 1
	continuationHead    = 1 + len(queryHash{}) + 4
)

// queryHash stands for the options that decide which rows a scan finds and in
// which form it sends them.
type queryHash [16]byte

// hashQuery hashes the options not taken so far, in the order of their names.
func hashQuery(o *options) queryHash {
	names := make([]string, 0, len(o.values))
	for name := range o.values {
		names = append(names, name)
	}
	sort.Strings(names)
	var b []byte
	for _, name := range names {
		b = etf.AppendAtom(b, etf.Atom(name))
		// A term that cannot be written is no option's value, and is refused
		// as that.
		b, _ = etf.AppendTerm(b, o.values[name])
	}
	sum := sha256.Sum256(b)
	return queryHash(sum[:16])
}

// continuation returns the continuation behind a row.
func (q queryHash) continuation(last scan.Position) []byte {
	b := append([]byte{continuationVersion}, q[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(last.Range))
	return append(b, last.Key...)
}

// position reads a continuation of this query, which has these ranges.
func (q queryHash) position(b []byte, ranges []storage.Range) (*scan.Position, error) {
	if len(b) < continuationHead || b[0] != continuationVersion {
		return nil, reasonf(tagBadOption, "continue is not a continuation that a scan has returned")
	}
	hash, rest := b[1:1+len(q)], b[1+len(q):]
	if !bytes.Equal(hash, q[:]) {
		return nil, reasonf(tagBadOption, "continue is of another query: filter, ranges, order and form of the rows must be the same")
	}
	at := &scan.Position{Range: int(binary.BigEndian.Uint32(rest)), Key: rest[4:]}
	if at.Range >= len(ranges) || !contains(ranges[at.Range], at.Key) {
		return nil, reasonf(tagBadOption, "continue is not a continuation that a scan has returned")
	}
	return at, nil
}

// contains says whether a key is in a range.
func contains(r storage.Range, key []byte) bool {
	if c := bytes.Compare(key, r.Start); r.Start != nil && (c < 0 || c == 0 && r.StartExclusive) {
		return false
	}
	c := bytes.Compare(key, r.End)
	return r.End == nil || c < 0 || c == 0 && r.EndInclusive
}
