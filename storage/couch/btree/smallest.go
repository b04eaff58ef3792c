package btree

import "scanode/storage/couch/file"

// minDeflate is the size of a node below which deflate is not tried: it takes far more time
// than all else, and the head of its stream most of what it wins.
const minDeflate = 200

// smallestDeflate is what Deflate is in Options.Smallest.
var smallestDeflate = file.Compression{Method: file.Deflate, Level: 6}

// packs says whether nodes are compressed.
func (o *Options) packs() bool { return o.Smallest || o.Compression.Method != file.None }

// packSmallest returns the smallest of what can be stored of a plain node: plain itself, or
// in m.packed[i].
func (m *modification) packSmallest(i int, plain []byte) []byte {
	best := plain
	m.packed[i] = file.DefaultCompression.Append(m.packed[i][:0], plain)
	if len(m.packed[i]) < len(best) {
		best = m.packed[i]
	}
	if len(plain) < minDeflate {
		return best
	}
	m.deflated = smallestDeflate.Append(m.deflated[:0], plain)
	if len(m.deflated) < len(best) {
		m.packed[i], m.deflated = m.deflated, m.packed[i]
		best = m.packed[i]
	}
	return best
}
