package msgpack

// Type is the kind of a value, whatever its width.
type Type uint8

// The kinds of the specification. Invalid stands for no bytes and for the lead
// byte c1, which is never used.
const (
	Invalid Type = iota
	Nil
	Bool
	Int   // signed and unsigned, all widths
	Float // 32 and 64 bits
	Str
	Bin
	Array
	Map
	Ext // extension types, timestamps included
)

// Kind returns the kind of the first value of b by its lead byte alone.
func Kind(b []byte) Type {
	if len(b) == 0 {
		return Invalid
	}
	return leads[b[0]].kind
}

// String returns the specification's word for the kind.
func (t Type) String() string {
	names := [...]string{"invalid", "nil", "bool", "int", "float", "str", "bin", "array", "map", "ext"}
	if int(t) < len(names) {
		return names[t]
	}
	return "invalid"
}

// Lead bytes.
const (
	leadFixMap   = 0x80
	leadFixArray = 0x90
	leadFixStr   = 0xa0
	leadNil      = 0xc0
	leadFalse    = 0xc2
	leadTrue     = 0xc3
	leadBin8     = 0xc4
	leadBin16    = 0xc5
	leadBin32    = 0xc6
	leadExt8     = 0xc7
	leadFloat32  = 0xca
	leadFloat64  = 0xcb
	leadUint8    = 0xcc
	leadUint16   = 0xcd
	leadUint32   = 0xce
	leadUint64   = 0xcf
	leadInt8     = 0xd0
	leadInt16    = 0xd1
	leadInt32    = 0xd2
	leadInt64    = 0xd3
	leadFixExt1  = 0xd4
	leadStr8     = 0xd9
	leadStr16    = 0xda
	leadStr32    = 0xdb
	leadArray16  = 0xdc
	leadArray32  = 0xdd
	leadMap16    = 0xde
	leadMap32    = 0xdf
	leadNegative = 0xe0
)

// lead is what a lead byte says. The value takes fixed bytes, and then as many
// bytes (str, bin, ext) or values (array, map) as a number says that stands after
// the lead byte in width bytes, or is small if width is 0.
type lead struct {
	kind  Type
	fixed uint8 // lead byte, number, fixed payload; 0 for c1
	width uint8
	small uint8 // for maps: values, two a pair
}

// leads is the specification's table of formats.
var leads = func() (t [256]lead) {
	for c := range 256 {
		switch {
		case c < leadFixMap:
			t[c] = lead{Int, 1, 0, 0}
		case c < leadFixArray:
			t[c] = lead{Map, 1, 0, 2 * uint8(c&15)}
		case c < leadFixStr:
			t[c] = lead{Array, 1, 0, uint8(c & 15)}
		case c < leadNil:
			t[c] = lead{Str, 1, 0, uint8(c & 31)}
		case c >= leadNegative:
			t[c] = lead{Int, 1, 0, 0}
		}
	}
	t[leadNil] = lead{Nil, 1, 0, 0}
	t[leadFalse], t[leadTrue] = lead{Bool, 1, 0, 0}, lead{Bool, 1, 0, 0}
	t[leadFloat32], t[leadFloat64] = lead{Float, 5, 0, 0}, lead{Float, 9, 0, 0}
	for i := range 3 {
		width := uint8(1) << i
		t[leadBin8+i] = lead{Bin, 1 + width, width, 0}
		t[leadExt8+i] = lead{Ext, 2 + width, width, 0}
		t[leadStr8+i] = lead{Str, 1 + width, width, 0}
	}
	for i := range 2 {
		width := uint8(2) << i
		t[leadArray16+i] = lead{Array, 1 + width, width, 0}
		t[leadMap16+i] = lead{Map, 1 + width, width, 0}
	}
	for i := range 4 {
		t[leadUint8+i] = lead{Int, 1 + uint8(1)<<i, 0, 0}
		t[leadInt8+i] = lead{Int, 1 + uint8(1)<<i, 0, 0}
	}
	for i := range 5 {
		t[leadFixExt1+i] = lead{Ext, 2 + uint8(1)<<i, 0, 0}
	}
	return t
}()
