package btree

import (
	"fmt"
	"math"

	"scanode/storage/couch/file"
)

// Chunks is what a tree needs of its file; [*file.File] has it.
type Chunks interface {
	// Begin starts what a modification writes.
	Begin() *file.Batch
	// ReadChunk appends the payload of the chunk at ptr to dst. It may be called from
	// any goroutine, also during a batch.
	ReadChunk(dst []byte, ptr int64) ([]byte, file.ChunkInfo, error)
}

// Defaults of Options, which are CouchDB's.
const (
	DefaultChunkSize    = 1279
	DefaultFill         = 0.5
	DefaultMaxNodeBytes = 256 << 20
)

// MaxDepth is how many levels a tree may have. No writer comes near it; it bounds what
// a forged file can make a reader do.
const MaxDepth = 256

// Options say how a tree is read and written. Order and Reducer have to be those that
// the file was written with; all else may change from one opening to the next.
type Options struct {
	Order   Order   // of the keys; nil is TermOrder
	Reducer Reducer // nil: every reduction is []
	Policy  Policy  // how nodes are laid out; the zero value is Compat

	// ChunkSize is the size of an uncompressed node, in bytes, above which it is cut
	// in parts (couch_btree: btree_chunk_size); 0 is DefaultChunkSize.
	ChunkSize int
	// Fill is the part of ChunkSize that an unchanged node must have to be used
	// again beside new ones; 0 is DefaultFill.
	Fill float64
	// Compression of the nodes written. Reading needs no telling.
	Compression file.Compression
	// HoldBytes is how many bytes of nodes a tree may have in memory: Modify then writes
	// nothing before they are more, and Flush has to be called before a root is kept.
	// 0 means none: each Modify writes.
	HoldBytes int
	// ShortKeys lets the policies of our own write shorter keys than the last ones of
	// children into inner nodes, where both the child's and its neighbour's are binaries:
	// any will do that keeps them apart. Where keys have few bytes in common, as
	// random identifiers have, that saves a good part of what is written. It is only
	// for trees in TermOrder whose keys are binaries, and where nobody looks at the keys
	// that FoldReduce and traversing folds give of inner nodes; CouchDB reads that,
	// but calls a group function with these keys.
	ShortKeys bool
	// Smallest writes of each node the smallest that None, Snappy and Deflate make of
	// it, whatever Compression says. CouchDB reads that.
	Smallest bool
	// MaxNodeBytes is the largest node that is read, uncompressed; 0 is
	// DefaultMaxNodeBytes.
	MaxNodeBytes int
	// Cache holds nodes of this file. It may be shared by all trees of the file and
	// by no other file's. nil: every node is read from the file.
	Cache *Cache
}

// A Tree is a version of a tree: a root and how to read what is below. It is a value
// that never changes. Modify makes a new version and leaves the old one readable for as
// long as the file is there. Any number of goroutines may read; those that modify trees
// of one file take turns, since a version that nobody commits is lost.
//
// Rows, keys and reductions that are returned must not be changed.
type Tree struct {
	chunks Chunks
	root   Pointer
	o      Options
	shape  shape
	held   memory
}

// shape is what the policies of our own know of a tree. It is nothing they could not do
// without.
type shape struct {
	streak  uint8 // how many times in a row rows were only added behind all others
	counted uint8 // levels with which the tree was found to be not too deep
}

// New returns the tree below root. Nothing is read yet.
func New(c Chunks, root Pointer, o Options) Tree {
	if o.Order == nil {
		o.Order = TermOrder
	}
	if o.Reducer == nil {
		o.Reducer = noReducer{}
	}
	if o.Policy == nil {
		o.Policy = Compat
	}
	if o.ChunkSize <= 0 {
		o.ChunkSize = DefaultChunkSize
	}
	if o.Fill <= 0 {
		o.Fill = DefaultFill
	}
	if o.MaxNodeBytes <= 0 {
		o.MaxNodeBytes = DefaultMaxNodeBytes
	}
	o.MaxNodeBytes = min(o.MaxNodeBytes, math.MaxUint32)
	return Tree{chunks: c, root: root, o: o}
}

// Root returns the pointer to keep in a header. A tree with nodes in memory has none: Flush
// it first.
func (t Tree) Root() Pointer { return t.root }

// At returns the version of t with this root, which is in the same file.
func (t Tree) At(root Pointer) Tree {
	return New(t.chunks, root, t.o)
}

// place is where a node hangs in a tree: what leads to it, and between which keys its
// own have to be.
type place struct {
	Pointer
	held  *node  // the node itself, if it is in memory only
	after []byte // all keys are behind this one; nil at the left edge
	upto  []byte // no key is behind this one; nil for the root
}

// top returns the place of the root.
func (t *Tree) top() place { return place{Pointer: t.root, held: t.held.root} }

// child returns the place of n's i-th child, n being at p.
func (p place) child(n *node, i int) place {
	c := place{n.child(i), n.heldChild(i), p.after, n.key(i)}
	if i > 0 {
		c.after = n.key(i - 1)
	}
	return c
}

// fetch returns the node at p. reuse, if not nil, is a node of the caller's that may be
// filled. keep puts what was read into the cache.
func (t *Tree) fetch(p place, reuse *node, keep caching) (*node, error) {
	if p.held != nil {
		return p.held, nil
	}
	n, err := t.load(p.Ptr, reuse, keep)
	if err != nil {
		return nil, err
	}
	return n, t.fits(n, p)
}

// fits says whether the keys of a node are those that its place is for. Its last key may
// be less than the one that leads to it: separators are legal.
func (t *Tree) fits(n *node, p place) error {
	if p.upto != nil {
		c, err := t.o.Order(n.last(), p.upto)
		if err != nil {
			return err
		}
		if c > 0 {
			return ErrLastKey
		}
	}
	if p.after != nil {
		c, err := t.o.Order(p.after, n.key(0))
		if err != nil {
			return err
		}
		if c >= 0 {
			return fmt.Errorf("%w: row 0 belongs to the left of the node", ErrOrder)
		}
	}
	return nil
}

// caching says whether a node that was read is put into the cache.
type caching uint8

const (
	cacheInner caching = iota // of folds: leaves come once
	cacheAll                  // of lookups and modifications
)

// load returns the node at ptr.
func (t *Tree) load(ptr int64, reuse *node, keep caching) (*node, error) {
	if n := t.o.Cache.get(ptr); n != nil {
		return n, nil
	}
	if reuse == nil {
		reuse = &node{}
	}
	if err := t.read(reuse, ptr); err != nil {
		return nil, err
	}
	if keep == cacheAll || !reuse.leaf {
		t.o.Cache.put(reuse)
	}
	return reuse, nil
}

// read fills n with the node at ptr. It uses n's own memory where that suffices.
func (t *Tree) read(n *node, ptr int64) error {
	packed, info, err := t.chunks.ReadChunk(n.packed[:0], ptr)
	if err != nil {
		return err
	}
	n.packed = packed
	n.ptr, n.chunk = ptr, info.Size
	if file.IsPlain(packed) {
		if len(packed) > t.o.MaxNodeBytes {
			return fmt.Errorf("%w: %d bytes, limit %d", file.ErrTooLarge, len(packed), t.o.MaxNodeBytes)
		}
		n.plain, n.packed = packed, n.plain
	} else if n.plain, err = file.Decompress(n.plain[:0], packed, t.o.MaxNodeBytes); err != nil {
		return err
	}
	return n.parse(t.o.Order)
}
