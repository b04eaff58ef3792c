package btree

import (
	"bytes"

	"scanode/etf"
)

// shorten gives entries for neighbouring leaves, which were cut from one list into parts,
// keys that are as short as keeps the leaves apart. bound is what stood for the last row
// until now; nothing is known of what is behind.
func shorten(entries []Row, parts [][]Row, bound []byte) {
	for i := range entries[1:] {
		last, first := parts[i][len(parts[i])-1].Key, parts[i+1][0].Key
		if s := separator(last, first); s != nil {
			entries[i].Key = s
		}
	}
	if end := &entries[len(entries)-1]; len(bound) < len(end.Key) && leadsTo(bound, end.Key) {
		end.Key = bound
	}
}

// leadsTo says whether bound, which stood for a node before, may go on doing so if its last
// key is last.
func leadsTo(bound, last []byte) bool {
	return len(bound) >= 5 && len(last) >= 5 && bound[0] == etf.TagBinary && last[0] == etf.TagBinary &&
		bytes.Compare(bound[5:], last[5:]) >= 0
}

// separator returns the shortest binary that is not before last and before first, which is
// behind it, or nil if that is no shorter than last, or one of them is no binary.
func separator(last, first []byte) []byte {
	const head = 5
	if len(last) < head || len(first) < head || last[0] != etf.TagBinary || first[0] != etf.TagBinary {
		return nil
	}
	a, b := last[head:], first[head:]
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	if same >= len(a) || same >= len(b) || a[same] > b[same] {
		return nil // a is the beginning of b, and so the shortest itself
	}
	var s []byte
	switch {
	case a[same]+1 < b[same], len(b) > same+1:
		// One more than a's byte: it is before b, or a beginning of it.
		s = append(bytes.Clone(a[:same]), a[same]+1)
	default:
		// b is that itself. The next byte of a that can be counted up.
		i := same + 1
		for i < len(a) && a[i] == 0xFF {
			i++
		}
		if i >= len(a) {
			return nil
		}
		s = append(bytes.Clone(a[:i]), a[i]+1)
	}
	if len(s) >= len(a) {
		return nil
	}
	return etf.AppendBinary(make([]byte, 0, head+len(s)), s)
}
