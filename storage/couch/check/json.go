package check

import (
	"encoding/json"
	"math/big"
	"strconv"
	"unicode/utf8"

	"scanode/etf"
)

// appendJSON appends t as JSON. CouchDB keeps an object as {[{Name, Value}]}; where
// object is true a bare list of pairs is one too.
func appendJSON(dst []byte, t etf.Term, object bool) ([]byte, error) {
	switch t := t.(type) {
	case etf.Atom:
		switch t {
		case "true", "false", "null":
			return append(dst, t...), nil
		}
		return appendString(dst, string(t)), nil
	case int64:
		return strconv.AppendInt(dst, t, 10), nil
	case *big.Int:
		return t.Append(dst, 10), nil
	case float64:
		b, err := json.Marshal(t)
		return append(dst, b...), err
	case []byte:
		return appendString(dst, string(t)), nil
	case etf.Tuple:
		if len(t) == 1 {
			if members, ok := t[0].(etf.List); ok {
				return appendObject(dst, members)
			}
		}
	case etf.List:
		if object {
			return appendObject(dst, t)
		}
		return appendArray(dst, t)
	}
	return nil, shape("no JSON value")
}

func appendArray(dst []byte, items etf.List) ([]byte, error) {
	dst = append(dst, '[')
	var err error
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendJSON(dst, item, false); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func appendObject(dst []byte, members etf.List) ([]byte, error) {
	dst = append(dst, '{')
	for i, m := range members {
		pair, ok := m.(etf.Tuple)
		if !ok || len(pair) != 2 {
			return nil, shape("a member of an object")
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		switch name := pair[0].(type) {
		case []byte:
			dst = appendString(dst, string(name))
		case etf.Atom:
			dst = appendString(dst, string(name))
		default:
			return nil, shape("the name of a member")
		}
		dst = append(dst, ':')
		var err error
		if dst, err = appendJSON(dst, pair[1], false); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func appendString(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strconv.QuoteToASCII(s)
	}
	b, err := json.Marshal(s)
	if err != nil {
		return append(dst, `""`...) // a string always can
	}
	return append(dst, b...)
}
