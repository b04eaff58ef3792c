package btree

// own is a policy of this project's own. CouchDB reads what it writes, and goes on with it,
// for the nodes are CouchDB's; what differs is how many there are, what is in them, and
// when they are written:
//
//   - A node that changed is not written where it is come to. Its new list waits for the
//     parent, which joins it with neighbours that wait as well and then cuts all of it.
//
//   - Nodes that change for one row's sake are small, since they will be written anew for
//     the next row; those that many rows came to are large. Nothing is kept count of:
//     the rows of one modification and the length of the list tell.
//
//   - A leaf that is a run of its own new list is used again.
//
//   - A large row has a leaf of its own, which nothing but the row itself makes be
//     written again.
//
//   - While rows are only added behind all others, the tree is flat at its right edge:
//     see edge.go.
//
//   - A list that has lost rows is joined with a neighbour where both fit into one node.
//
// What a modification writes is bounded below by the way to the row: all nodes of it
// have to be written, with an entry for each child. The less children, the less is written,
// and the longer the way; with a head of 23 bytes a node the least is written with three or
// four.
//
// Tried, and not kept. Bytes a row for 100,000 rows of 39 bytes in random order, one a root,
// uncompressed, where nothing else is said; Scanode writes 2,103, in seven levels:
//
//	children/entries of a leaf 8/10     2,216
//	8/9, 8/8, 7/10, 7/9                 2,176, 2,181, 2,146, 2,121
//	6/8, 6/9, 6/10                      2,064, 2,076, 2,092, and a fifth more inner nodes
//	leaves of 14 entries with snappy    1 % less where keys and values differ, 0.5 % more where
//	                                    they do not; with Smallest 2 % more
//	three large rows in a leaf also in the first batch of a tree
//	                                    +9 % in batches of 100 rows of 10 KB in random order
type own struct {
	name string
	// fanout is how many children an inner node has that was changed for one row.
	fanout int
	// leaf is how large a leaf may be that was changed for one row, in entries of
	// its parent; packed is leaf where nodes are compressed.
	leaf, packed int
}

// The policies of our own.
var (
	// Scanode writes half of what Compat writes, or less, when rows come one by one, and
	// never noticeably more. What was written in random order has more levels and a
	// tenth more bytes, and is read that much slower.
	Scanode Policy = own{name: "scanode", fanout: 7, leaf: 8, packed: 16}
	// ScanodeWrite writes up to a tenth less for single rows in random order, and leaves a
	// still deeper tree of smaller nodes.
	ScanodeWrite Policy = own{name: "scanode_write", fanout: 5, leaf: 6, packed: 12}
)

// What both have in common. Numbers were found by trying: see TestOwnBytes.
const (
	// denseBytes is the size of a node that many rows came to.
	denseBytes = 4000
	// soloBytes is the size from which on a row has a leaf of its own.
	soloBytes = 640
	// sharedSolos is how many such rows share a leaf when they were added together
	// behind all others: nothing will be inserted between them.
	sharedSolos = 3
	// keptPercent is how full a leaf must be to be used again, in percent of what it
	// may have.
	keptPercent = 80
)

// String returns the policy's name.
func (o own) String() string { return o.name }

func (o own) begin(m *modification) layout {
	m.deferral.own, m.deferral.m = o, m
	return &m.deferral
}

// split cuts rows, which have size bytes, into parts of equal size, as few as make at most
// limit bytes each. A part has one row at least.
func split(parts [][]Row, rows []Row, size, limit int) [][]Row {
	n := min((size+limit-1)/limit, len(rows))
	if n <= 1 {
		return append(parts, rows)
	}
	start, sum, cut := 0, 0, 1
	for i, r := range rows {
		// The row belongs to the part that has its middle.
		if i > start && (2*sum+r.size())*n > 2*size*cut {
			parts = append(parts, rows[start:i])
			start = i
			cut = (2*sum+r.size())*n/(2*size) + 1
		}
		sum += r.size()
	}
	return append(parts, rows[start:])
}

// splitCount cuts rows into parts of equal length, as few as have at most limit rows.
func splitCount(parts [][]Row, rows []Row, limit int) [][]Row {
	n := (len(rows) + limit - 1) / limit
	for i := range n {
		parts = append(parts, rows[len(rows)*i/n:len(rows)*(i+1)/n])
	}
	return parts
}

// sizeOf returns how many bytes rows take in a node.
func sizeOf(rows []Row) int {
	size := 0
	for _, r := range rows {
		size += r.size()
	}
	return size
}
