package btree

// own is a policy of this project's own. CouchDB reads what it writes, and goes on with it,
// for the nodes are CouchDB's; what differs is how many there are, what is in them, and
// when they are written:
//
//   - A node that changed is not written where it is come to. Its new list waits for the
//     parent, which joins it with neighbours that wait as well and then cuts all of it.
//   - Nodes that change for one row's sake are small, since they will be written anew for
//     the next row; those that many rows came to are large. Nothing is kept count of:
//     the rows of one modification and the length of the list tell.
//   - A leaf that is a run of its own new list is used again.
//   - A large row has a leaf of its own, which nothing but the row itself makes be
//     written again.
//   - While rows are only added behind all others, the tree is flat at its right edge:
//     see edge.go.
//
// Lists are bounded below by what a modification must write at least, whatever the tree is
// like: each node on the way to a row, with an entry for each child. The less children, the
// less is written, and the longer the way; with a head of 23 bytes a node the least is
// written with three or four.
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
	// Scanode writes about half of what Compat writes, or less, when rows come one by
	// one, and never noticeably more. The tree it leaves is as fast to read.
	Scanode Policy = own{name: "scanode", fanout: 7, leaf: 8, packed: 16}
	// ScanodeWrite writes still less for single rows in random order, a tenth about,
	// and leaves a deeper tree of smaller nodes.
	ScanodeWrite Policy = own{name: "scanode_write", fanout: 5, leaf: 6, packed: 12}
)

// What both have in common. Numbers were found by trying: see TestBytes and bench/couch.
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
