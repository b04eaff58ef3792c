// Package btree is CouchDB's B+tree: rows of encoded terms in an append-only file, as
// couch_btree reads and writes them.
//
// A tree is a root and the nodes below. Nodes are chunks of the file and never change;
// a modification writes new ones for the leaves it touches and for all above them:
//
//	root {9216, 7, 611}                      place, reduction, bytes of all nodes
//	        │
//	        ▼ 9216
//	{kp_node, [{c, {8192, 3, 250}}, {g, {8704, 4, 260}}]}     last keys and pointers
//	                 │                    │
//	                 ▼ 8192               ▼ 8704
//	{kv_node, [{a,1},{b,1},{c,1}]}   {kv_node, [{d,1},{e,1},{f,1},{g,1}]}
//
// The reduction of a node is what a [Reducer], here Count, makes of its rows or of its
// children's reductions: it answers how many rows there are before a place, or what they
// add up to, without reading them.
//
// # Terms
//
// Keys, values and reductions are encoded terms without their version byte, in and out.
// They stay encoded, so a term comes out in the bytes it has in the file. What is written
// has the form that term_to_binary gives it with minor_version 1, which is what CouchDB
// writes: ATOM_EXT, NEW_FLOAT_EXT, STRING_EXT for lists of bytes, the shortest integer. Rows
// given in another form are rewritten, so nodes are cut where CouchDB would cut them.
//
// # Policies
//
// Which nodes a list of rows becomes is up to a [Policy]. [Compat] does what CouchDB does
// today, byte for byte when nothing is compressed; [V0], [V1] and [V1b] do what it did
// before and in between. [Scanode] and [ScanodeWrite] are our own: they write less. All of
// them go on with what any of them wrote, and so does CouchDB.
//
// # Memory
//
// With Options.HoldBytes, Modify makes nodes in memory and writes nothing before Flush, or
// before they are more bytes than that. Reading sees them. A node is then written once for
// all that came to it in between, which saves more than any policy.
//
// # Lifetime
//
// A [Tree] is a value and never changes; Modify and Flush return another one, and its
// nodes in memory live as long as a version that has them. What Get, Lookup and
// Modify return stays valid and must not be changed. A row of an [Iter], and what Fold and
// FoldReduce give to callbacks, is valid until the next row.
//
// # Goroutines
//
// Any number may read any trees of a file while one modifies. Those that modify take turns.
//
// # Bounds
//
// The file is not trusted: most nodes have no checksum. Nothing is allocated for a
// length that is only claimed, no term is too deep to be skipped, depth is at most
// [MaxDepth], and pointers lead to earlier places only, so nothing loops. Keys are
// held to their order within each node that is read, and to the two keys of inner nodes
// that it lies between. What a damaged byte within a
// value does, only [Tree.Verify] can tell, and only with a reducer that looks at values.
//
// # Source of truth
//
// couch_btree of CouchDB (August 2026), whose recorded work the tests replay.
package btree
