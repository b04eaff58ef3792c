package etf

import "errors"

// Compare orders two encoded terms as Erlang does.
func Compare(a, b []byte) (int, error) { return 0, errors.New("not yet") }
