package etf

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"unicode/utf8"
)

// AppendTerm appends any term, each list as LIST_EXT. What it
// appends, every release from OTP 23 reads, Opaque terms aside, which are
// checked as [Check] does and copied.
//
// Errors: ErrValue for what is no term: NaN and infinities, a map key twice,
// names that are no UTF-8 or too long, Go types other than those of [Term];
// ErrLimit for terms nested deeper than MaxDepth. On error dst is returned as
// it was.
func AppendTerm(dst []byte, t Term) ([]byte, error) {
	out, err := appendTerm(dst, t, 0)
	if err != nil {
		return dst, err
	}
	return out, nil
}

func appendTerm(dst []byte, t Term, depth int) ([]byte, error) {
	switch t := t.(type) {
	case Atom:
		return appendAtomChecked(dst, t)
	case int64:
		return AppendInt64(dst, t), nil
	case int:
		return AppendInt64(dst, int64(t)), nil
	case *big.Int:
		return appendBig(dst, t)
	case float64:
		if math.IsNaN(t) || math.IsInf(t, 0) {
			return nil, badValue(len(dst), "a float that is not finite")
		}
		return AppendFloat64(dst, t), nil
	case []byte:
		if uint64(len(t)) > math.MaxUint32 {
			return nil, badValue(len(dst), "binary of 4 GiB or more")
		}
		return AppendBinary(dst, t), nil
	case Bitstring:
		return appendBitstring(dst, t)
	case Tuple:
		return appendTerms(AppendTupleHeader(dst, len(t)), t, depth)
	case List:
		return appendList(dst, t, List(nil), depth)
	case Improper:
		return appendList(dst, t.Elems, t.Tail, depth)
	case Map:
		return appendMap(dst, t, depth)
	case Pid, Ref, Port, Export:
		return appendIdentifier(dst, t)
	case Opaque:
		return appendOpaque(dst, t, depth)
	}
	return nil, badValue(len(dst), fmt.Sprintf("Go type %T", t))
}

func appendAtomChecked(dst []byte, name Atom) ([]byte, error) {
	if !utf8.ValidString(string(name)) || utf8.RuneCountInString(string(name)) > maxAtomChars {
		return nil, badValue(len(dst), "atom that is no UTF-8 or longer than 255 characters")
	}
	return AppendAtom(dst, name), nil
}

func appendBig(dst []byte, v *big.Int) ([]byte, error) {
	if v == nil {
		return nil, badValue(len(dst), "nil *big.Int")
	}
	if v.IsInt64() {
		return AppendInt64(dst, v.Int64()), nil
	}
	sign := byte(0)
	if v.Sign() < 0 {
		sign = 1
	}
	mag := v.Bytes()
	if len(mag) < 256 {
		dst = append(dst, TagSmallBig, byte(len(mag)), sign)
	} else {
		dst = append(binary.BigEndian.AppendUint32(append(dst, TagLargeBig), uint32(len(mag))), sign)
	}
	for i := len(mag) - 1; i >= 0; i-- {
		dst = append(dst, mag[i])
	}
	return dst, nil
}

func appendBitstring(dst []byte, t Bitstring) ([]byte, error) {
	if len(t.Bytes) == 0 || t.Bits < 1 || t.Bits > 7 || uint64(len(t.Bytes)) > math.MaxUint32 {
		return nil, badValue(len(dst), "Bitstring without bytes or not of 1 to 7 bits in the last")
	}
	dst = binary.BigEndian.AppendUint32(append(dst, TagBitBinary), uint32(len(t.Bytes)))
	dst = append(append(dst, t.Bits), t.Bytes...)
	dst[len(dst)-1] &= ^byte(0) << (8 - t.Bits)
	return dst, nil
}

func appendTerms(dst []byte, ts []Term, depth int) ([]byte, error) {
	if len(ts) > 0 && depth >= MaxDepth {
		return nil, tooDeep(len(dst))
	}
	var err error
	for _, t := range ts {
		if dst, err = appendTerm(dst, t, depth+1); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func appendList(dst []byte, elems List, tail Term, depth int) ([]byte, error) {
	if len(elems) == 0 {
		if l, ok := tail.(List); !ok || len(l) > 0 {
			return nil, badValue(len(dst), "Improper without elements")
		}
		return AppendNil(dst), nil
	}
	dst, err := appendTerms(AppendListHeader(dst, len(elems)), elems, depth)
	if err != nil {
		return nil, err
	}
	return appendTerm(dst, tail, depth+1)
}

func appendMap(dst []byte, m Map, depth int) ([]byte, error) {
	start := len(dst)
	dst = AppendMapHeader(dst, len(m))
	if len(m) > 0 && depth >= MaxDepth {
		return nil, tooDeep(start)
	}
	pairs := make([]pair, len(m))
	var err error
	for i, p := range m {
		pairs[i].key = len(dst)
		if dst, err = appendTerm(dst, p.Key, depth+1); err != nil {
			return nil, err
		}
		pairs[i].value = len(dst)
		if dst, err = appendTerm(dst, p.Value, depth+1); err != nil {
			return nil, err
		}
	}
	return dst, checkKeys(dst, pairs, len(dst)-start)
}

func appendIdentifier(dst []byte, t Term) ([]byte, error) {
	start := len(dst)
	switch t := t.(type) {
	case Pid:
		dst = AppendPid(dst, t)
	case Ref:
		if t.Len < 1 || t.Len > maxRefWords {
			return nil, badValue(start, "Ref of no words or more than 5")
		}
		dst = AppendRef(dst, t)
	case Port:
		dst = AppendPort(dst, t)
	case Export:
		dst = AppendAtom(append(dst, TagExport), t.Module)
		dst = AppendAtom(dst, t.Function)
		dst = append(dst, TagSmallInteger, t.Arity)
	}
	_, err := walk(dst, start, 0, sendable)
	return dst, err
}

func appendOpaque(dst []byte, t Opaque, depth int) ([]byte, error) {
	next, err := walk(t, 0, depth, sendable)
	if err != nil {
		return nil, shift(err, len(dst))
	}
	if next != len(t) {
		return nil, badValue(len(dst)+next, "Opaque of more than one term")
	}
	return append(dst, t...), nil
}
