package etf

// Term is any Erlang term as Go value:
//
//	Atom                    atoms
//	int64, *big.Int         integers; *big.Int only beyond int64
//	float64                 floats, always finite
//	[]byte, Bitstring       binaries; Bitstring only where the bits are no whole bytes
//	Tuple                   tuples
//	List, Improper          lists, STRING_EXT included
//	Map                     maps, pairs in the order they were encoded in
//	Pid, Ref, Port, Export  the rest that has a shape
//	Opaque                  funs and whatever is carried undecoded
//
// AppendTerm takes an int as well. The empty list is a List without elements.
type Term any

// Atom is an atom's name in UTF-8, at most 255 characters.
type Atom string

// Pid is a process identifier. It is comparable and may be a map key.
type Pid struct {
	Node                 Atom
	ID, Serial, Creation uint32
}

// Ref is a reference of Len words, 1 to 5, in ID; words beyond Len are zero.
// It is comparable and may be a map key.
type Ref struct {
	Node     Atom
	Creation uint32
	Len      uint8
	ID       [5]uint32
}

// Port is a port identifier.
type Port struct {
	Node     Atom
	ID       uint64
	Creation uint32
}

// Export is the external fun Module:Function/Arity.
type Export struct {
	Module, Function Atom
	Arity            uint8
}

// Tuple is a tuple's elements.
type Tuple []Term

// List is a proper list's elements.
type List []Term

// Improper is a list of at least one element whose Tail is no list.
type Improper struct {
	Elems List
	Tail  Term
}

// Map is a map's pairs, no key twice.
type Map []Pair

// Pair is one association of a Map.
type Pair struct{ Key, Value Term }

// Bitstring is a binary whose last byte is used in its upper Bits bits only,
// 1 to 7; the other bits of it are zero.
type Bitstring struct {
	Bytes []byte
	Bits  uint8
}

// Opaque is one encoded term without version byte, carried undecoded. Decode
// returns it for funs, native records (OTP 29) and local terms.
type Opaque []byte
