package etf

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

var seedFlag = flag.Uint64("seed", 0, "seed of random terms; 0 picks one")

// newRand returns a generator whose seed is logged and can be given with -seed.
func newRand(t testing.TB) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-seed=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// randomTerm returns a term of every kind that AppendTerm takes.
func randomTerm(r *rand.Rand, size int) Term {
	if size <= 1 || r.IntN(3) == 0 {
		return randomLeaf(r)
	}
	n := r.IntN(min(size, 6))
	several := func() []Term {
		ts := make([]Term, n)
		for i := range ts {
			ts[i] = randomTerm(r, size/(n+1))
		}
		return ts
	}
	switch r.IntN(6) {
	case 0:
		return Tuple(several())
	case 1:
		return List(several())
	case 2:
		tail := randomTerm(r, size/2)
		if _, ok := tail.(List); ok || n == 0 {
			return Tuple{tail}
		}
		if i, ok := tail.(Improper); ok {
			return i
		}
		return Improper{several(), tail}
	case 3, 4:
		m := Map{}
		for _, k := range several() {
			next := append(m[:len(m):len(m)], Pair{k, randomTerm(r, size/(n+1))})
			if _, err := AppendTerm(nil, next); err == nil {
				m = next
			}
		}
		return m
	}
	return randomFun(r, size/2)
}

func randomLeaf(r *rand.Rand) Term {
	switch r.IntN(15) {
	case 0:
		return int64(r.IntN(300) - 20)
	case 1:
		return int64(r.Uint64()) >> r.IntN(64)
	case 2:
		return randomBig(r)
	case 3:
		return randomFloat(r)
	case 4:
		return float64(r.IntN(2000)-1000) / 8
	case 5, 6:
		return randomAtom(r)
	case 7:
		return randomBytes(r, r.IntN(20))
	case 8:
		b := randomBytes(r, 1+r.IntN(4))
		bits := uint8(1 + r.IntN(7))
		b[len(b)-1] &= ^byte(0) << (8 - bits)
		return Bitstring{b, bits}
	case 9:
		l := make(List, 1+r.IntN(5))
		for i := range l {
			l[i] = int64(r.IntN(256))
		}
		return l
	case 10:
		return Pid{randomNode(r), r.Uint32() >> r.IntN(32), r.Uint32() >> r.IntN(32), r.Uint32() >> r.IntN(32)}
	case 11:
		return randomRef(r)
	case 12:
		return Port{randomNode(r), r.Uint64() >> r.IntN(64), r.Uint32() >> r.IntN(32)}
	case 13:
		return Export{randomAtom(r), randomAtom(r), uint8(r.IntN(256))}
	}
	return []Term{Tuple{}, List{}, Map{}, []byte{}}[r.IntN(4)]
}

func randomRef(r *rand.Rand) Term {
	ref := Ref{Node: randomNode(r), Creation: r.Uint32() >> r.IntN(32), Len: uint8(1 + r.IntN(5))}
	for i := range ref.Len {
		if ref.ID[i] = r.Uint32() >> r.IntN(32); r.IntN(3) == 0 {
			ref.ID[i] = 0
		}
	}
	return ref
}

// randomBig returns integers about the sizes where the encoding or the
// comparison with floats changes.
func randomBig(r *rand.Rand) Term {
	v := new(big.Int).Lsh(big.NewInt(1), []uint{31, 52, 53, 54, 63, 64, 65, 100, 2040, 3000}[r.IntN(10)])
	v.Add(v, big.NewInt(int64(r.IntN(5)-2)))
	if r.IntN(2) == 0 {
		v.Neg(v)
	}
	if v.IsInt64() {
		return v.Int64()
	}
	return v
}

func randomFloat(r *rand.Rand) float64 {
	for {
		f := math.Float64frombits(r.Uint64())
		if r.IntN(2) == 0 {
			f = math.Ldexp(1, []int{31, 52, 53, 54, 63, 64, 65, 100, 1000}[r.IntN(9)])
			f = math.Nextafter(f, f*float64(r.IntN(3)))
			f = math.Copysign(f, float64(r.IntN(2))-0.5)
		}
		if !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
	}
}

func randomAtom(r *rand.Rand) Atom {
	names := []Atom{"", "a", "b", "aa", "ok", "undefined", "two words", "é", "ÿ", "日本", "𝄞", "A", "_", "a\x00b"}
	return names[r.IntN(len(names))]
}

func randomNode(r *rand.Rand) Atom { return []Atom{"a@h", "b@h", "ä@h"}[r.IntN(3)] }

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
		if r.IntN(2) == 0 {
			b[i] &= 0xc0
		}
	}
	return b
}

// randomFun returns a local fun of a module that no BEAM has loaded.
func randomFun(r *rand.Rand, size int) Term {
	body := append([]byte{}, byte(r.IntN(3)))
	body = append(body, make([]byte, 16)...)
	body = binary.BigEndian.AppendUint32(body, r.Uint32N(3))
	free := r.IntN(3)
	body = binary.BigEndian.AppendUint32(body, uint32(free))
	body = AppendAtom(body, []Atom{"m1", "m2"}[r.IntN(2)])
	body = AppendInt64(body, int64(r.IntN(3)))
	body = AppendInt64(body, int64(r.IntN(1000)-500))
	body = AppendPid(body, Pid{"a@h", 1, 2, 3})
	for range free {
		var err error
		if body, err = AppendTerm(body, randomTerm(r, size/3)); err != nil {
			panic(err) // randomTerm returned no term
		}
	}
	fun := binary.BigEndian.AppendUint32([]byte{TagNewFun}, uint32(len(body)+4))
	return Opaque(append(fun, body...))
}

// randomRecord returns a native record (OTP 29).
func randomRecord(r *rand.Rand, size int) Term {
	names := []string{"a", "b", "c", "d", "é"}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	if r.IntN(2) == 0 {
		names = []string{"a", "b", "c", "d", "é"}
	}
	n := r.IntN(len(names) + 1)
	b := binary.BigEndian.AppendUint32([]byte{TagRecord}, uint32(n))
	b = append(b, byte(r.IntN(4))/3)
	b = AppendAtom(b, []Atom{"m", "n"}[r.IntN(8)/7])
	b = AppendAtom(b, []Atom{"r", "日本"}[r.IntN(8)/7])
	for _, name := range names[:n] {
		b = appendAtomVariant(b, r, Atom(name))
	}
	for range n {
		term := randomNumber(r)
		if r.IntN(2) == 0 {
			term = randomTerm(r, size/(n+1))
		}
		b = appendVariant(b, r, term)
	}
	return Opaque(b)
}

// appendVariant encodes t as some release or library might, with whatever tag
// may stand for it.
func appendVariant(dst []byte, r *rand.Rand, t Term) []byte {
	switch t := t.(type) {
	case Atom:
		return appendAtomVariant(dst, r, t)
	case int64:
		if r.IntN(2) == 0 {
			return AppendInt64(dst, t)
		}
		if t == int64(int32(t)) && r.IntN(2) == 0 {
			return binary.BigEndian.AppendUint32(append(dst, TagInteger), uint32(t))
		}
		return appendBigVariant(dst, r, big.NewInt(t))
	case *big.Int:
		return appendBigVariant(dst, r, t)
	case float64:
		if text := fmt.Sprintf("%.20e", t); r.IntN(2) == 0 {
			return append(append(append(dst, TagFloat), text...), make([]byte, 31-len(text))...)
		}
	case []byte:
		if len(t) > 0 && r.IntN(2) == 0 {
			dst = binary.BigEndian.AppendUint32(append(dst, TagBitBinary), uint32(len(t)))
			return append(append(dst, 8), t...)
		}
	case Bitstring:
		dst, _ := appendBitstring(dst, t)
		dst[len(dst)-1] |= byte(r.Uint32()) & (0xff >> t.Bits)
		return dst
	case Tuple:
		if r.IntN(2) == 0 {
			dst = binary.BigEndian.AppendUint32(append(dst, TagLargeTuple), uint32(len(t)))
		} else {
			dst = AppendTupleHeader(dst, len(t))
		}
		for _, e := range t {
			dst = appendVariant(dst, r, e)
		}
		return dst
	case List:
		return appendListVariant(dst, r, t, nil)
	case Improper:
		return appendListVariant(dst, r, t.Elems, t.Tail)
	case Map:
		dst = AppendMapHeader(dst, len(t))
		for _, i := range r.Perm(len(t)) {
			dst = appendVariant(appendVariant(dst, r, t[i].Key), r, t[i].Value)
		}
		return dst
	case Pid, Ref, Port:
		return appendIdentifierVariant(dst, r, t)
	}
	dst, err := AppendTerm(dst, t)
	if err != nil {
		panic(err)
	}
	return dst
}

func appendAtomVariant(dst []byte, r *rand.Rand, name Atom) []byte {
	latin1 := []byte{}
	for _, c := range name {
		if c > 255 {
			latin1 = nil
			break
		}
		latin1 = append(latin1, byte(c))
	}
	switch k := r.IntN(4); {
	case k == 0:
		return append(binary.BigEndian.AppendUint16(append(dst, TagAtomUTF8), uint16(len(name))), name...)
	case k == 1 && latin1 != nil:
		return append(binary.BigEndian.AppendUint16(append(dst, TagAtom), uint16(len(latin1))), latin1...)
	case k == 2 && latin1 != nil:
		return append(append(dst, TagSmallAtom, byte(len(latin1))), latin1...)
	}
	return AppendAtom(dst, name)
}

func appendBigVariant(dst []byte, r *rand.Rand, v *big.Int) []byte {
	mag := v.Bytes()
	zeros := r.IntN(3)
	if n := len(mag) + zeros; n < 256 && r.IntN(2) == 0 {
		dst = append(dst, TagSmallBig, byte(n))
	} else {
		dst = binary.BigEndian.AppendUint32(append(dst, TagLargeBig), uint32(n))
	}
	dst = append(dst, byte(v.Sign())>>7)
	for i := range mag {
		dst = append(dst, mag[len(mag)-1-i])
	}
	return append(dst, make([]byte, zeros)...)
}

func appendListVariant(dst []byte, r *rand.Rand, l List, tail Term) []byte {
	if bytes, ok := asString(l); ok && tail == nil && r.IntN(2) == 0 {
		return append(binary.BigEndian.AppendUint16(append(dst, TagString), uint16(len(bytes))), bytes...)
	}
	cut := len(l)
	if len(l) > 0 && r.IntN(3) == 0 {
		cut = r.IntN(len(l)) // the rest comes as tail
	}
	if cut > 0 || r.IntN(4) == 0 {
		dst = binary.BigEndian.AppendUint32(append(dst, TagList), uint32(cut))
	}
	for _, e := range l[:cut] {
		dst = appendVariant(dst, r, e)
	}
	if cut < len(l) {
		return appendListVariant(dst, r, l[cut:], tail)
	}
	if tail == nil {
		return append(dst, TagNil)
	}
	return appendVariant(dst, r, tail)
}

func asString(l List) ([]byte, bool) {
	var b []byte
	for _, e := range l {
		c, ok := e.(int64)
		if !ok || c < 0 || c > 255 {
			return nil, false
		}
		b = append(b, byte(c))
	}
	return b, true
}

func appendIdentifierVariant(dst []byte, r *rand.Rand, t Term) []byte {
	old := r.IntN(2) == 0
	switch t := t.(type) {
	case Pid:
		if old && t.Creation < 4 {
			dst = appendAtomVariant(append(dst, TagPid), r, t.Node)
			dst = binary.BigEndian.AppendUint32(dst, t.ID)
			return append(binary.BigEndian.AppendUint32(dst, t.Serial), byte(t.Creation))
		}
	case Port:
		if old && t.Creation < 4 && t.ID < 1<<28 {
			dst = appendAtomVariant(append(dst, TagPort), r, t.Node)
			return append(binary.BigEndian.AppendUint32(dst, uint32(t.ID)), byte(t.Creation))
		}
		if old {
			dst = appendAtomVariant(append(dst, TagV4Port), r, t.Node)
			return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(dst, t.ID), t.Creation)
		}
	case Ref:
		if old && t.Creation < 4 && t.ID[0] < 1<<18 {
			if t.Len == 1 && r.IntN(2) == 0 {
				dst = appendAtomVariant(append(dst, TagReference), r, t.Node)
				return append(binary.BigEndian.AppendUint32(dst, t.ID[0]), byte(t.Creation))
			}
			dst = binary.BigEndian.AppendUint16(append(dst, TagNewReference), uint16(t.Len))
			dst = append(appendAtomVariant(dst, r, t.Node), byte(t.Creation))
			for _, w := range t.ID[:t.Len] {
				dst = binary.BigEndian.AppendUint32(dst, w)
			}
			return dst
		}
	}
	dst, err := AppendTerm(dst, t)
	if err != nil {
		panic(err)
	}
	return dst
}

// mustAppend encodes a term that the test knows to be one.
func mustAppend(t testing.TB, term Term) []byte {
	t.Helper()
	b, err := AppendTerm(nil, term)
	if err != nil {
		t.Fatalf("AppendTerm(%v): %v", term, err)
	}
	return b
}
