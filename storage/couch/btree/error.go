package btree

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// What is wrong with a tree or with what was asked of it. Faults of the file come as
// that package's errors. Every error of a node is an [*Error] around one of both.
var (
	ErrNode      = errors.New("malformed node")
	ErrOrder     = errors.New("keys out of order")
	ErrLastKey   = errors.New("last key is not that of the child")
	ErrReduction = errors.New("stored reduction is not that of the node")
	ErrSize      = errors.New("stored size is not that of the subtree")
	ErrPointer   = errors.New("impossible pointer")
	ErrDepth     = errors.New("tree too deep")
	ErrDuplicate = errors.New("key comes twice")

	ErrTerm   = errors.New("not one whole term")           // a key, value or root given by the caller
	ErrKey    = errors.New("key of a kind without order")  // what the tree's order does not know
	ErrReduce = errors.New("value that cannot be reduced") // what the tree's reducer does not take
)

// An Error says what is wrong with a node and where in the tree that is.
type Error struct {
	Ptr  int64 // where the node begins in the file
	Path []int // index of the entry taken at each node from the root on; none is the root
	Err  error // wraps ErrNode and so on, or what reading the file gave
}

// Error returns what was found and where: "keys out of order: row 3 (node at 4711, path
// 0/7)".
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v (node at %d, path ", e.Err, e.Ptr)
	if len(e.Path) == 0 {
		b.WriteString("root")
	}
	for i, p := range e.Path {
		if i > 0 {
			b.WriteByte('/')
		}
		b.WriteString(strconv.Itoa(p))
	}
	b.WriteByte(')')
	return b.String()
}

// Unwrap returns what was found, for errors.Is.
func (e *Error) Unwrap() error { return e.Err }

// at gives err its place, unless it has one. path is copied.
func at(err error, ptr int64, path []int) error {
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{Ptr: ptr, Path: append([]int(nil), path...), Err: err}
}
