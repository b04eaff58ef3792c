// Package lsm keeps stores in log-structured merge trees: it is the storage
// contract over Pebble, one Pebble database a directory.
package lsm
