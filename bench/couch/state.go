package main

import (
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// A state is a policy, by the name it has in tables: a state of couch_btree, or one of our
// own.
type state struct {
	name   string
	policy btree.Policy
}

// theirs are the states of couch_btree of which figures were recorded.
var theirs = []state{{"v0", btree.V0}, {"v1", btree.V1}, {"v1b", btree.V1b}, {"compat", btree.Compat}}

// ours are the policies of our own.
var ours = []state{{"own-b", btree.Scanode}, {"own-w", btree.ScanodeWrite}}

// all are the columns of most tables. Whoever adds a policy adds it here or to ours.
func all() []state { return append(append([]state(nil), theirs...), ours...) }

// encodings are how nodes are compressed; best is the smallest of the others for each node.
var encodings = []string{"none", "snappy", "best"}

// options returns those of a tree in state s.
func (s state) options(encoding string) btree.Options {
	o := btree.Options{Policy: s.policy, Cache: btree.NewCache(64 << 20)}
	switch encoding {
	case "snappy":
		o.Compression = file.DefaultCompression
	case "best":
		o.Smallest = true
	}
	return o
}
