package etf

// Version is the byte that starts every term written by term_to_binary.
const Version = 131

// Tags, named after the ERTS manual without its _EXT.
const (
	TagRecord         = 67  // RECORD_EXT (OTP 29): fields:32, flags:8, module, name, field names, values
	TagNewFloat       = 70  // NEW_FLOAT_EXT: 8 bytes, IEEE 754
	TagBitBinary      = 77  // BIT_BINARY_EXT: length:32, bits:8, bytes
	TagCompressed     = 80  // zlib; refused everywhere
	TagNewPid         = 88  // NEW_PID_EXT: node, id:32, serial:32, creation:32
	TagNewPort        = 89  // NEW_PORT_EXT: node, id:32, creation:32
	TagNewerReference = 90  // NEWER_REFERENCE_EXT: words:16, node, creation:32, id:32 each
	TagSmallInteger   = 97  // SMALL_INTEGER_EXT: 0..255
	TagInteger        = 98  // INTEGER_EXT: signed, 32 bits
	TagFloat          = 99  // FLOAT_EXT: 31 bytes of text, zero padded
	TagAtom           = 100 // ATOM_EXT: length:16, Latin-1
	TagReference      = 101 // REFERENCE_EXT: node, id:32, creation:8
	TagPort           = 102 // PORT_EXT: node, id:32, creation:8
	TagPid            = 103 // PID_EXT: node, id:32, serial:32, creation:8
	TagSmallTuple     = 104 // SMALL_TUPLE_EXT: arity:8
	TagLargeTuple     = 105 // LARGE_TUPLE_EXT: arity:32
	TagNil            = 106 // NIL_EXT: []
	TagString         = 107 // STRING_EXT: length:16, a list of bytes
	TagList           = 108 // LIST_EXT: length:32, elements, tail
	TagBinary         = 109 // BINARY_EXT: length:32, bytes
	TagSmallBig       = 110 // SMALL_BIG_EXT: length:8, sign:8, little-endian magnitude
	TagLargeBig       = 111 // LARGE_BIG_EXT: length:32, sign:8, little-endian magnitude
	TagNewFun         = 112 // NEW_FUN_EXT: size:32 and so on
	TagExport         = 113 // EXPORT_EXT: module, function, arity
	TagNewReference   = 114 // NEW_REFERENCE_EXT: words:16, node, creation:8, id:32 each
	TagSmallAtom      = 115 // SMALL_ATOM_EXT: length:8, Latin-1
	TagMap            = 116 // MAP_EXT: pairs:32, key and value in turn
	TagFun            = 117 // FUN_EXT: the fun of releases before OTP 23
	TagAtomUTF8       = 118 // ATOM_UTF8_EXT: length:16
	TagSmallAtomUTF8  = 119 // SMALL_ATOM_UTF8_EXT: length:8
	TagV4Port         = 120 // V4_PORT_EXT: node, id:64, creation:32
	TagLocal          = 121 // LOCAL_EXT: readable to the node that wrote it only
)
